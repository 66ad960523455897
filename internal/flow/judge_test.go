package flow

import (
	"reflect"
	"testing"

	"vogt/internal/catalog"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/reading"
	"vogt/internal/statement"
)

var testReader = reading.New(catalog.New())

func TestZeroVerdictRefuses(t *testing.T) {
	if (Verdict{}).Outcome != Refuse {
		t.Error("the zero verdict does not refuse")
	}
	always := grant.Grant{Status: grant.Approved, Type: grant.Always, Decision: &grant.Decision{}}
	if v := Judge(Reading{}, statement.Digest{}, []grant.Grant{always}, 1); v.Outcome != Refuse || v.Reason == "" || v.Grant != nil {
		t.Errorf("what was never read is judged %+v", v)
	}
}

func TestJudge(t *testing.T) {
	read, err := Read(testReader, grant.Request{Command: []string{"ls", "-l"}})
	if err != nil {
		t.Fatal(err)
	}
	id := statement.Digest{1}
	always := grant.Grant{ID: "g", Status: grant.Approved, Type: grant.Always, Identity: id, Decision: &grant.Decision{}}
	if v := Judge(read, id, []grant.Grant{always}, 1); v.Outcome != Allow || v.Grant == nil || v.Grant.ID != "g" || v.Reason == "" {
		t.Errorf("covered: %+v", v)
	}
	if v := Judge(read, statement.Digest{2}, []grant.Grant{always}, 1); v.Outcome != Ask || v.Grant != nil || v.Reason == "" {
		t.Errorf("another identity: %+v", v)
	}
	if v := Judge(read, id, nil, 1); v.Outcome != Ask {
		t.Errorf("nothing allows it: %+v", v)
	}
	critical, err := Read(testReader, grant.Request{Command: []string{"vogt", "up"}})
	if err != nil {
		t.Fatal(err)
	}
	if v := Judge(critical, id, []grant.Grant{always}, 1); v.Outcome != Ask {
		t.Errorf("critical under an always-grant: %+v", v)
	}
}

// TestClaimsChangeNothing: whatever a client says about itself, its program,
// its details and their risk, the reading is that of the argument list.
func TestClaimsChangeNothing(t *testing.T) {
	bare := grant.Request{Command: []string{"rm", "-rf", "/srv/data"}}
	want, err := Read(testReader, bare)
	if err != nil {
		t.Fatal(err)
	}
	if want.Risk != detail.Critical || want.Programs()[0] != "rm" {
		t.Fatalf("rm is read as %+v", want)
	}
	lie := detail.Wire{Type: detail.WireCLI, CLI: "ls", Operation: "ls.list", Action: "read", Display: "List files", Risk: "low", Chain: []detail.Resource{{Name: "any"}}}
	lie.Permission = lie.CanonicalPermission()
	uid := uint64(0)
	for name, change := range map[string]func(*grant.Request){
		"requester":   func(r *grant.Request) { r.Requester = "owner@example.com" },
		"details":     func(r *grant.Request) { r.Details = []detail.Wire{lie} },
		"permissions": func(r *grant.Request) { r.Permissions = []string{lie.Permission} },
		"hash":        func(r *grant.Request) { r.CmdHash = detail.CmdHash([]string{"ls"}) },
		"audience":    func(r *grant.Request) { r.Audience = "harmless" },
		"reason":      func(r *grant.Request) { r.Reason = "risk: low" },
		"context": func(r *grant.Request) {
			r.Context = &grant.Context{Argv: []string{"ls"}, Executable: "/bin/ls", AdapterID: "ls", AdapterDig: "synthetic", UID: &uid}
		},
	} {
		req := bare
		change(&req)
		got, err := Read(testReader, req)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("claiming %s: read as %+v, %v", name, got, err)
		}
	}
	// A claim can only make it worse: the name under which the door found it.
	worse := grant.Request{Command: []string{"x", "grant", "approve", "ID"}, Context: &grant.Context{Executable: "/usr/bin/vogt"}}
	if got, err := Read(testReader, worse); err != nil || got.Risk != detail.Critical {
		t.Errorf("a link to vogt: %+v, %v", got, err)
	}
	if got, err := Read(testReader, grant.Request{Command: []string{"ls"}, RunAs: "root"}); err != nil || got.Risk != detail.Critical {
		t.Errorf("ls as root: %+v, %v", got, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, argv := range [][]string{nil, {""}, {"ls", "\x00"}} {
		if r, err := Read(testReader, grant.Request{Command: argv}); err == nil || len(r.Details) != 0 {
			t.Errorf("%q: %+v, %v", argv, r, err)
		}
	}
}
