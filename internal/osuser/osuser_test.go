package osuser

import (
	"strings"
	"testing"
)

func TestSpecComplete(t *testing.T) {
	long := strings.Repeat("a", 33)
	tests := []struct {
		spec Spec
		want string // part of the error; "" for none
	}{
		{Spec{Name: "coder"}, ""},
		{Spec{Name: "a-b_c9", User: "agents"}, ""},
		{Spec{Name: strings.Repeat("a", 27)}, ""},
		{Spec{Name: strings.Repeat("a", 28)}, "33 bytes"},
		{Spec{Name: long, User: "x"}, "33 bytes"},
		{Spec{Name: "x", User: long}, "33 bytes"},
		{Spec{}, "empty"},
		{Spec{Name: "../x"}, "letter"},
		{Spec{Name: "a/../x"}, "'/'"},
		{Spec{Name: ".archive"}, "letter"},
		{Spec{Name: "-x"}, "letter"},
		{Spec{Name: "1000"}, "letter"},
		{Spec{Name: "root"}, "administrator"},
		{Spec{Name: "x", User: "root"}, "administrator"},
		{Spec{Name: "x", User: "-x"}, "letter"},
		{Spec{Name: "x", User: "a:b"}, "':'"},
		{Spec{Name: "a b"}, "' '"},
		{Spec{Name: "a\n"}, `'\n'`},
		{Spec{Name: "a\x00"}, `'\x00'`},
		{Spec{Name: "Ab"}, "letter"},
		{Spec{Name: "aB"}, "'B'"},
		{Spec{Name: "a$"}, "'$'"},
		{Spec{Name: "a%i"}, "'%'"},
		{Spec{Name: `a\x2d`}, `'\\'`},
		{Spec{Name: `a"`}, `'"'`},
		{Spec{Name: "bäcker"}, "'ä'"},
		{Spec{Name: "аgent"}, "letter"}, // Cyrillic
		{Spec{Name: "a\u202eb"}, `'\u202e'`},
		{Spec{Name: "a\xff"}, "'�'"},
		{Spec{Name: "a*"}, "'*'"},
		{Spec{Name: "x", Base: "agents"}, "absolute"},
		{Spec{Name: "x", Base: "/srv/../etc"}, "shortest"},
		{Spec{Name: "x", Base: "/"}, "shortest"},
		{Spec{Name: "x", Base: "/srv/a:b"}, "misread"},
		{Spec{Name: "x", Base: "/srv/a\nb"}, "misread"},
		{Spec{Name: "x", Shell: "sh"}, "absolute"},
		{Spec{Name: "x", Shell: "/bin/sh\nroot::0:0::/:/bin/sh"}, "misread"},
		{Spec{Name: "x", Start: []string{"vogt"}}, "absolute"},
		{Spec{Name: "x", Start: []string{"/bin/x", "a\nExecStartPre=/bin/y"}}, "unit"},
		{Spec{Name: "x", Range: Range{70010, 70001}}, "empty"},
		{Spec{Name: "x", Range: Range{61000, 64999}}, "dynamic users"},
		{Spec{Name: "x", Range: Range{65530, 70000}}, "nobody"},
		{Spec{Name: "x", Range: Range{0, 0xffffffff}}, "the system"},
		{Spec{Name: "x", Range: Range{90000, 600000}}, "containers"},
		{Spec{Name: "x", Limits: Limits{Tasks: -1}}, "negative"},
		{Spec{Name: "x", Machine: Machine{Root: "scratch"}}, "root"},
		{Spec{Name: "x", Machine: Machine{State: "state"}}, "absolute"},
	}
	for _, tt := range tests {
		_, err := tt.spec.complete()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %v, want %q", tt.spec, err, tt.want)
		}
	}
}

// The slices of two agents must not lie in each other, whatever their names.
func TestSliceNamesDoNotNest(t *testing.T) {
	const above = "vogt-agent-"
	for _, name := range []string{"a", "a-b", "a-b-c", "x2d", "a_b"} {
		slice := Spec{Name: name}.slice()
		if rest := strings.TrimPrefix(slice, above); rest == slice || strings.Contains(rest, "-") {
			t.Errorf("the agent %s has the slice %s, which lies in another agent's", name, slice)
		}
	}
}
