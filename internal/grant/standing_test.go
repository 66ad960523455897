package grant

import (
	"reflect"
	"strings"
	"testing"

	"vogt/internal/detail"
)

func TestComplete(t *testing.T) {
	tests := []struct {
		name    string
		pattern Pattern
		err     string // part of the error; empty when it is taken
	}{
		{"reads of a folder", Pattern{Agent: "a@x", Read: []string{"/p/**"}}, ""},
		{"anything in a box", Pattern{Agent: "*", Does: []Deed{DeedAny}, Box: &Box{Profile: "default", Workspace: "/home/me/*"}}, ""},
		{"nobody", Pattern{Read: []string{"/p"}}, "agent is missing"},
		{"critical", Pattern{Agent: "*", Read: []string{"/p"}, MaxRisk: detail.Critical}, "critical"},
		{"anything without a box", Pattern{Agent: "*", Does: []Deed{DeedAny}, Read: []string{"/p"}}, "needs a box"},
		{"a deed that is none", Pattern{Agent: "*", Does: []Deed{"rule"}, Read: []string{"/p"}}, `"rule"`},
		{"no folder", Pattern{Agent: "*"}, "name the folders"},
		{"writes nowhere", Pattern{Agent: "*", Does: []Deed{DeedWrite}, Read: []string{"/p"}}, "write is missing"},
		{"hosts of nobody", Pattern{Agent: "*", Programs: []string{"curl"}, Does: []Deed{DeedConnect}}, "hosts is missing"},
		{"a box with a network", Pattern{Agent: "*", Does: []Deed{DeedConnect}, Hosts: []string{"a.example"}, Box: &Box{Profile: "default"}}, "leave connect out"},
		{"the whole machine", Pattern{Agent: "*", Read: []string{"/"}}, "whole machine"},
		{"the whole machine by **", Pattern{Agent: "*", Read: []string{"/**"}}, "whole machine"},
		{"the whole machine by * and **", Pattern{Agent: "*", Read: []string{"/*/**"}}, "whole machine"},
		{"a relative path", Pattern{Agent: "*", Read: []string{"p/**"}}, "absolute"},
		{"a shell's pattern", Pattern{Agent: "*", Read: []string{"/p/[ab]"}}, "only * and **"},
		{"** within a name", Pattern{Agent: "*", Read: []string{"/p/a**"}}, "stands alone"},
		{"a control character", Pattern{Agent: "*", Read: []string{"/p/a\n"}}, "control"},
		{"any program of high risk", Pattern{Agent: "*", Read: []string{"/p/**"}, MaxRisk: detail.High}, "any program"},
		{"a program's path", Pattern{Agent: "*", Programs: []string{"/bin/ls"}, Read: []string{"/p"}}, "one name"},
		{"a star as operation", Pattern{Agent: "*", Operations: []string{"git.*"}, Read: []string{"/p"}}, "operation"},
		{"hosts of a whole top level", Pattern{Agent: "*", Programs: []string{"curl"}, Does: []Deed{DeedConnect}, Hosts: []string{"*.com"}}, "host name"},
		{"a host with a port", Pattern{Agent: "*", Programs: []string{"curl"}, Does: []Deed{DeedConnect}, Hosts: []string{"a.example:22"}}, "host name"},
		{"too many", Pattern{Agent: "*", Programs: strings.Fields(strings.Repeat("x ", 1)), Read: many(65)}, "limit is 64"},
		{"a negative rate", Pattern{Agent: "*", Read: []string{"/p"}, Limits: Limits{PerMinute: -1}}, "per_minute"},
	}
	for _, test := range tests {
		got, err := test.pattern.Complete()
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, want an error with %q", test.name, err, test.err)
		}
		if err != nil {
			continue
		}
		if again, err := got.Complete(); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%s: completed again it is %+v, %v, not %+v", test.name, again, err, got)
		}
	}
	a, _ := Pattern{Agent: "*", Read: []string{"/p/b/", "/p/a", "/p/b"}}.Complete()
	if !reflect.DeepEqual(a.Read, []string{"/p/a", "/p/b"}) || a.MaxRisk != detail.Medium || a.Limits.PerMinute != 60 || a.Limits.Deletes != 50 {
		t.Errorf("completed: %+v", a)
	}
	if (&Standing{}).Active(1) || (&Standing{}).For("", "", nil, "", "") {
		t.Error("the zero standing grant is in force")
	}
}

func many(n int) (paths []string) {
	for i := range n {
		paths = append(paths, "/p/"+strings.Repeat("x", i+1))
	}
	return paths
}
