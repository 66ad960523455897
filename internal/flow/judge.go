// Package flow is the path of one action, in two halves that meet at the
// authority: Judge reads a request and says what becomes of it, Run carries
// an answer out at a door.
//
// It owns the order of the steps and nothing of what they do: reading,
// catalog and coverage judge, executors act, the authority records. Doors
// enter through Run, the authority through Judge.
package flow

import (
	"slices"
	"strings"

	"vogt/internal/coverage"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/reading"
	"vogt/internal/statement"
)

// Outcome is a verdict's answer. The zero value refuses.
type Outcome uint8

// The outcomes.
const (
	Refuse Outcome = iota
	Ask
	Allow
)

// Verdict is one outcome and its reason. When an existing permission allows,
// Grant is set, or Standing, which together cover every call.
type Verdict struct {
	Outcome  Outcome
	Reason   string
	Grant    *grant.Grant
	Standing []*grant.Standing
	Covered  []int // calls that standing grants cover; all of them when allowed
}

// Reading is what the authority itself derived from a request.
type Reading struct {
	reading.Reading
	Details []detail.Detail
	Risk    detail.Risk
	Kind    string // what the catalog knows of the host of a connection
	// Sinks and Credentials are the links of the request that lead to such a file,
	// and where. The reading itself knows paths by their names only.
	Sinks, Credentials map[string]string
	// Elsewhere are the programs that the request says were found outside of the
	// system's folders, by their names, and where; "" stands for the first.
	Elsewhere map[string]string
}

// Read derives what a request would do, from its argument list alone. What a
// client says about risk, program or details plays no part; its working
// directory only completes paths.
func Read(rd *reading.Reader, req grant.Request) (Reading, error) {
	if req.Connect != nil {
		return readConnect(rd, *req.Connect)
	}
	at, resolved := reading.Place{}, ""
	if req.Context != nil {
		resolved = req.Context.Executable
		if req.Context.Cwd != nil && req.Context.Cwd.Path != nil {
			at.Cwd = *req.Context.Cwd.Path
		}
	}
	r, err := rd.Argv(req.Command, resolved, at)
	if err != nil {
		return Reading{}, err
	}
	out := Reading{Reading: r, Details: r.Details(), Risk: r.Risk}
	if req.Context != nil {
		out.follow(rd, req.Context.Links)
		if strings.HasPrefix(resolved, "/") && !reading.System(resolved) {
			out.Elsewhere = with(out.Elsewhere, "", resolved)
		}
	}
	if req.RunAs != "" {
		for i, d := range out.Details {
			if c, ok := d.(detail.Command); ok {
				out.Details[i] = detail.Crossing{User: req.RunAs, Command: c}
			}
		}
		out.Risk = detail.Critical
	}
	out.Risk = max(out.Risk, detail.Highest(out.Details))
	return out, nil
}

// Judge compares a read request with what may cover it: an earlier answer to
// this very request first, then the standing grants.
func Judge(r Reading, identity statement.Digest, candidates []grant.Grant, standing []*grant.Standing, w coverage.Where, now grant.Millis) Verdict {
	if len(r.Details) == 0 {
		return Verdict{Outcome: Refuse, Reason: "the request could not be read"}
	}
	covered := coverage.Check(identity, r.Details, candidates, now)
	if covered.Grant != nil {
		return Verdict{Outcome: Allow, Reason: covered.Reason, Grant: covered.Grant}
	}
	verdict := Verdict{Outcome: Ask, Reason: covered.Reason}
	if len(standing) == 0 || detail.Highest(r.Details) == detail.Critical || r.Risk == detail.Critical {
		return verdict
	}
	calls := r.Covered()
	uses, missing := coverage.Standing(calls, w, standing, now)
	for _, u := range uses {
		verdict.Covered = append(verdict.Covered, u.Calls...)
	}
	slices.Sort(verdict.Covered)
	if len(missing) > 0 {
		return verdict
	}
	verdict.Outcome, verdict.Reason = Allow, "a standing grant covers it"
	for _, u := range uses {
		verdict.Standing = append(verdict.Standing, u.Standing)
	}
	return verdict
}
