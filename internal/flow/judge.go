// Package flow is the path of one action, in two halves that meet at the
// authority: Judge reads a request and says what becomes of it, Run carries
// an answer out at a door.
//
// It owns the order of the steps and nothing of what they do: reading,
// catalog and coverage judge, executors act, the authority records. Doors
// enter through Run, the authority through Judge.
package flow

import (
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

// Verdict is one outcome and its reason; Grant is set when an existing grant
// allows.
type Verdict struct {
	Outcome Outcome
	Reason  string
	Grant   *grant.Grant
}

// Reading is what the authority itself derived from a request.
type Reading struct {
	reading.Reading
	Details []detail.Detail
	Risk    detail.Risk
}

// Read derives what a request would do, from its argument list alone. What a
// client says about risk, program or details plays no part; its working
// directory only completes paths.
func Read(rd *reading.Reader, req grant.Request) (Reading, error) {
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

// Judge compares a read request with the grants that may cover it.
func Judge(r Reading, identity statement.Digest, candidates []grant.Grant, now grant.Millis) Verdict {
	if len(r.Details) == 0 {
		return Verdict{Outcome: Refuse, Reason: "the request could not be read"}
	}
	covered := coverage.Check(identity, r.Details, candidates, now)
	if covered.Grant == nil {
		return Verdict{Outcome: Ask, Reason: covered.Reason}
	}
	return Verdict{Outcome: Allow, Reason: covered.Reason, Grant: covered.Grant}
}
