package doctor

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"vogt/internal/execution/confine/plan"
	"vogt/internal/execution/confine/trial"
)

func TestBox(t *testing.T) {
	full := plan.Report{Level: plan.Full, Landlock: 7, Filter: "0123456789abcdef"}
	for _, tt := range []struct {
		name    string
		verdict trial.Verdict
		err     error
		state   State
		text    string
	}{
		{"holds", trial.Verdict{Report: full, Held: []string{"a", "b"}}, nil, InForce, "2 of 2 attempts"},
		{"not all shown", trial.Verdict{Report: full, Held: []string{"a"}, Unshown: []string{"trace (EPERM)"}}, nil, InForce, "not shown here"},
		{"leaks", trial.Verdict{Report: full, Held: []string{"a"}, Open: []string{"read a key"}}, nil, Failed, "could read a key"},
		{"refused", trial.Verdict{Refused: "no namespaces", Remedy: "a switch"}, nil, NotInForce, "no namespaces"},
		{"reduced", trial.Verdict{Report: plan.Report{Level: plan.Reduced}}, nil, InPart, "reduced"},
		{"through bwrap", trial.Verdict{Report: plan.Report{Level: plan.Bwrap, Lacks: []string{"a user namespace"}}, Held: []string{"a"}}, nil, InForce, "level full (bwrap)"},
		{"lacks", trial.Verdict{Report: plan.Report{Level: plan.Bwrap, Lacks: []string{"a user namespace"}}, Held: []string{"a"}}, nil, InForce, "lacks a user namespace."},
		{"no group", trial.Verdict{Report: full, Held: []string{"a"}}, nil, InForce, "hold for each process"},
		{"a group", trial.Verdict{Report: full, Held: []string{"a"}, Group: []string{"pids.max"}}, nil, InForce, "as a whole: pids.max"},
		{"refused but for reduced", trial.Verdict{Refused: "no namespaces", Remedy: "a switch", Reduced: true}, nil, InPart, "reduced = true"},
		{"no helper", trial.Verdict{}, &fs.PathError{Op: "exec", Path: "vogt-confine", Err: fs.ErrNotExist}, NotInForce, "no vogt-confine"},
		{"broken", trial.Verdict{}, errors.New("no answer"), Failed, "no answer"},
	} {
		x := &exam{Subject: Subject{Try: func(context.Context) (trial.Verdict, error) { return tt.verdict, tt.err }}}
		c := x.box(t.Context())
		if c.State != tt.state || !strings.Contains(c.Text, tt.text) || tt.verdict.Remedy != "" && c.Fix != tt.verdict.Remedy {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
	if c := (&exam{Subject: Subject{Box: "agent"}}).box(t.Context()); c.State != InPart || !strings.Contains(c.Text, "profile agent") {
		t.Errorf("in a box: %+v", c)
	}
	if c := (&exam{}).box(t.Context()); c.State != NotInForce {
		t.Errorf("without a trial: %+v", c)
	}
}
