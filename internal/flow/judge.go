// Package flow is the path of one action, in two halves that meet at the
// authority: Judge reads a request and says what becomes of it, Run carries
// an answer out at a door.
//
// It owns the order of the steps and nothing of what they do: reading,
// catalog and coverage judge, executors act, the authority records. Doors
// enter through Run, the authority through Judge.
package flow

import (
	"path"
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
		for _, f := range append([]statement.File{known(req.Context.File)}, req.Context.Interpreters...) {
			if f.Path != nil && !ofSystem(*f.Path) {
				out.Elsewhere = with(out.Elsewhere, "", *f.Path)
			}
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

func known(f *statement.File) statement.File {
	if f == nil {
		return statement.File{}
	}
	return *f
}

// ofSystem reports whether a file that a program's name leads to in the end lies
// where systems keep programs.
func ofSystem(file string) bool {
	if path.Clean(file) != file || reading.System(file) {
		return reading.System(file)
	}
	return slices.ContainsFunc([]string{"/usr/", "/lib/", "/nix/store/", "/gnu/store/", "/opt/homebrew/", "/snap/", "/System/"}, func(dir string) bool {
		return strings.HasPrefix(file, dir)
	})
}

// Judge compares a read request with earlier answers to this very request.
func Judge(r Reading, identity statement.Digest, candidates []grant.Grant, now grant.Millis) Verdict {
	if len(r.Details) == 0 {
		return Verdict{Outcome: Refuse, Reason: "the request could not be read"}
	}
	covered := coverage.Check(identity, r.Details, candidates, now)
	if covered.Grant != nil {
		return Verdict{Outcome: Allow, Reason: covered.Reason, Grant: covered.Grant}
	}
	return Verdict{Outcome: Ask, Reason: covered.Reason}
}

// Coverable reports whether a pattern may cover a request that Judge would ask
// about: never what is critical.
func (r *Reading) Coverable() bool {
	return len(r.Details) > 0 && r.Risk.Within(detail.High) && detail.Highest(r.Details).Within(detail.High)
}

// JudgeStanding looks whether standing grants cover what Judge would ask about.
func JudgeStanding(r Reading, asked Verdict, standing []*grant.Standing, w coverage.Where, now grant.Millis) Verdict {
	if asked.Outcome != Ask || len(standing) == 0 || !r.Coverable() {
		return asked
	}
	by, missing := coverage.Standing(r.Covered(), w, standing, now)
	if len(missing) > 0 {
		return asked
	}
	return Verdict{Outcome: Allow, Reason: "a standing grant covers it", Standing: by}
}
