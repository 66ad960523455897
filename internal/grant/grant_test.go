package grant

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

var (
	statuses = []Status{"", Pending, Approved, Denied, Revoked, Expired, Used, "other"}
	kinds    = []Type{"", Once, Timed, Always, "standing"}
)

func TestTerminal(t *testing.T) {
	for _, s := range statuses {
		if want := s != Pending && s != Approved; s.Terminal() != want {
			t.Errorf("%q: terminal %v, want %v", s, s.Terminal(), want)
		}
	}
}

func TestStrengthAtLeast(t *testing.T) {
	order := []Strength{Bearer, Click, Passkey, Independent}
	rank := func(s Strength) int {
		for i, o := range order {
			if s == o {
				return i + 1
			}
		}
		return 0
	}
	all := append([]Strength{"", "standing", "PASSKEY"}, order...)
	for _, s := range all {
		for _, least := range all {
			want := rank(s) > 0 && rank(least) > 0 && rank(s) >= rank(least)
			if got := s.AtLeast(least); got != want {
				t.Errorf("%q at least %q: %v, want %v", s, least, got, want)
			}
		}
	}
}

// There is one rule of expiry, and it holds at equality.
func TestReached(t *testing.T) {
	tests := []struct {
		deadline, now Millis
		want          bool
	}{
		{0, 0, false}, {0, 1 << 60, false}, // not set
		{100, 99, false}, {100, 100, true}, {100, 101, true},
	}
	for _, test := range tests {
		if got := test.deadline.Reached(test.now); got != test.want {
			t.Errorf("deadline %d at %d: %v", test.deadline, test.now, got)
		}
	}
}

func TestMillis(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	m := At(at)
	if !m.Time().Equal(at) || m.Seconds() != at.Unix() {
		t.Errorf("%v became %d ms, %d s, %v", at, m, m.Seconds(), m.Time())
	}
}

func approve(kind Type, at, until Millis) Approve {
	return Approve{Type: kind, Until: until, Decision: Decision{By: "owner", At: at, Strength: Click}}
}

// TestTransitions is the whole state machine as a table: from every state, by
// every event, at a time at which nothing has run out.
func TestTransitions(t *testing.T) {
	const now = 50
	events := map[string]Event{
		"approve once":   approve(Once, now, 100),
		"approve timed":  approve(Timed, now, 100),
		"approve always": approve(Always, now, 0),
		"deny":           Deny{Decision{By: "owner", At: now}},
		"revoke":         Revoke{By: "owner", At: now},
		"consume":        Consume{At: now},
		"expire":         Lapse{At: now},
	}
	// What is not listed is refused.
	want := map[Status]map[string]Status{
		Pending: {
			"approve once": Approved, "approve timed": Approved, "approve always": Approved,
			"deny": Denied, "revoke": Revoked, "expire": Expired,
		},
		Approved: {"revoke": Revoked, "expire": Expired, "consume": ""}, // consume depends on the type
	}
	for _, from := range statuses {
		for _, kind := range kinds {
			for name, ev := range events {
				g := Grant{ID: "g", Version: 3, Status: from, Type: kind, ValidUntil: 100, Decision: &Decision{}}
				next, err := g.Apply(ev)
				to, ok := want[from][name]
				if name == "consume" && ok {
					to = Approved
					if kind == Once {
						to = Used
					}
				}
				if !ok {
					if err == nil || !reflect.DeepEqual(next, g) {
						t.Errorf("%q of type %q, %s: became %+v, %v; want a refusal", from, kind, name, next, err)
					}
					continue
				}
				if err != nil || next.Status != to || next.Version != 4 {
					t.Errorf("%q of type %q, %s: %q version %d, %v; want %q", from, kind, name, next.Status, next.Version, err, to)
				}
			}
		}
	}
}

func TestApplyRefusalNamesTheState(t *testing.T) {
	g := Grant{Status: Approved, Type: Once, ValidUntil: 10, Decision: &Decision{}}
	_, err := g.Apply(Consume{At: 10})
	var te *TransitionError
	if !errors.As(err, &te) || te.Status != Expired || te.Event != "consume" {
		t.Errorf("consuming at the deadline: %v", err)
	}
	if _, err := g.Apply(nil); err == nil {
		t.Error("no event at all changes the grant")
	}
}

// At the very millisecond of the deadline everything but the writing down of
// it is refused.
func TestDeadlineAtEquality(t *testing.T) {
	const end = 1000
	pending := Grant{Status: Pending, Type: Once, ValidUntil: end}
	approved := Grant{Status: Approved, Type: Timed, ValidUntil: end, Decision: &Decision{}}
	tests := []struct {
		name string
		g    Grant
		at   func(Millis) Event
	}{
		{"approve", pending, func(at Millis) Event { return approve(Once, at, end+500) }},
		{"deny", pending, func(at Millis) Event { return Deny{Decision{At: at}} }},
		{"revoke pending", pending, func(at Millis) Event { return Revoke{At: at} }},
		{"revoke approved", approved, func(at Millis) Event { return Revoke{At: at} }},
		{"consume", approved, func(at Millis) Event { return Consume{At: at} }},
	}
	for _, test := range tests {
		if _, err := test.g.Apply(test.at(end - 1)); err != nil {
			t.Errorf("%s one millisecond before: %v", test.name, err)
		}
		for _, at := range []Millis{end, end + 1} {
			if _, err := test.g.Apply(test.at(at)); err == nil {
				t.Errorf("%s at the deadline %+d ms is allowed", test.name, at-end)
			}
		}
	}
	if !approved.Permits(end-1) || approved.Permits(end) || approved.As(end).Status != Expired {
		t.Errorf("permits before %v, at %v, state at the deadline %s", approved.Permits(end-1), approved.Permits(end), approved.As(end).Status)
	}
}

// The end of an approval must fit its type.
func TestApprovalEnds(t *testing.T) {
	const now = 50
	tests := []struct {
		kind  Type
		until Millis
		ok    bool
	}{
		{Once, 51, true}, {Once, 50, false}, {Once, 49, false}, {Once, 0, false}, {Once, -1, false},
		{Timed, 51, true}, {Timed, 50, false}, {Timed, 0, false},
		{Always, 0, true}, {Always, 51, false},
		{"", 51, false}, {"standing", 51, false}, {"ONCE", 51, false},
	}
	for _, test := range tests {
		g := Grant{Status: Pending, Type: Once}
		next, err := g.Apply(approve(test.kind, now, test.until))
		if (err == nil) != test.ok {
			t.Errorf("type %q until %d: %v", test.kind, test.until, err)
		}
		if err != nil && !reflect.DeepEqual(g, next) {
			t.Errorf("type %q until %d: refused, but the grant changed", test.kind, test.until)
		}
		if err == nil && (next.Type != test.kind || next.ValidUntil != test.until || !next.Permits(now)) {
			t.Errorf("type %q until %d: became %+v", test.kind, test.until, next)
		}
	}
}

// randomEvent makes any event at any time, fitting or not.
func randomEvent(r *rand.Rand) Event {
	at := Millis(r.IntN(2000))
	switch r.IntN(6) {
	case 0, 1:
		until := Millis(r.IntN(3000))
		if r.IntN(3) == 0 {
			until = 0
		}
		return approve(kinds[r.IntN(len(kinds))], at, until)
	case 2:
		return Deny{Decision{At: at}}
	case 3:
		return Revoke{At: at}
	case 4:
		return Consume{At: at}
	default:
		return Lapse{At: at}
	}
}

// TestRandomLives runs random events over grants and checks what must hold on
// every path.
func TestRandomLives(t *testing.T) {
	ends := map[Status]int{}
	for seed := range uint64(4_000) {
		r := rand.New(rand.NewPCG(seed, 7))
		g := Grant{ID: "g", Version: 1, Status: Pending, Type: Once, ValidUntil: Millis(1 + r.IntN(2000))}
		consumed := 0
		for range 12 {
			ev := randomEvent(r)
			next, err := g.Apply(ev)
			if err != nil {
				if !reflect.DeepEqual(next, g) {
					t.Fatalf("seed %d: %T was refused (%v) and changed the grant", seed, ev, err)
				}
				continue
			}
			if g.Status.Terminal() {
				t.Fatalf("seed %d: %T left the terminal state %s for %s", seed, ev, g.Status, next.Status)
			}
			if next.Version != g.Version+1 {
				t.Fatalf("seed %d: %T took version %d to %d", seed, ev, g.Version, next.Version)
			}
			if c, ok := ev.(Consume); ok {
				if !g.Permits(c.At) {
					t.Fatalf("seed %d: consumed a grant that does not permit: %+v", seed, g)
				}
				if next.Uses != g.Uses+1 || next.LastUsed != c.At {
					t.Fatalf("seed %d: a use was not counted: %+v", seed, next)
				}
				if consumed++; g.Type == Once && consumed > 1 {
					t.Fatalf("seed %d: a once-grant was consumed %d times", seed, consumed)
				}
			}
			if _, ok := ev.(Approve); !ok && next.Type != g.Type {
				t.Fatalf("seed %d: %T changed the type", seed, ev)
			}
			if next.Status == Approved && next.Decision == nil {
				t.Fatalf("seed %d: %T approved without a decision", seed, ev)
			}
			g = next
		}
		if !g.Status.Terminal() && g.Status != Pending && g.Status != Approved {
			t.Fatalf("seed %d: ended in %q", seed, g.Status)
		}
		ends[g.Status]++
	}
	// The property says nothing about states that no path reached.
	for _, s := range []Status{Pending, Approved, Denied, Revoked, Expired, Used} {
		if s != Pending && ends[s] == 0 {
			t.Errorf("no path ended in %s: %v", s, ends)
		}
	}
}

// The zero Grant permits nothing and nothing makes it permit.
func TestZeroGrantRefuses(t *testing.T) {
	for seed := range uint64(1_000) {
		r := rand.New(rand.NewPCG(seed, 11))
		var g Grant
		for range 6 {
			ev := randomEvent(r)
			next, err := g.Apply(ev)
			if err == nil || !reflect.DeepEqual(next, Grant{}) {
				t.Fatalf("seed %d: %T took the zero grant to %+v, %v", seed, ev, next, err)
			}
			g = next
		}
		if g.Permits(Millis(r.IntN(2000))) {
			t.Fatal("the zero grant permits")
		}
	}
}

// Permits needs everything: state, type, decision, time.
func TestPermits(t *testing.T) {
	full := Grant{Status: Approved, Type: Always, Decision: &Decision{}}
	if !full.Permits(1) {
		t.Fatal("an approved always-grant does not permit")
	}
	for name, change := range map[string]func(*Grant){
		"pending":     func(g *Grant) { g.Status = Pending },
		"denied":      func(g *Grant) { g.Status = Denied },
		"used":        func(g *Grant) { g.Status = Used },
		"no type":     func(g *Grant) { g.Type = "" },
		"foreign":     func(g *Grant) { g.Type = "standing" },
		"no decision": func(g *Grant) { g.Decision = nil },
		"over":        func(g *Grant) { g.ValidUntil = 1 },
	} {
		g := full
		change(&g)
		if g.Permits(1) {
			t.Errorf("%s: permits", name)
		}
	}
}

// Apply must not reach through to the grant that it was called on.
func TestApplyKeepsTheOld(t *testing.T) {
	g := Grant{Status: Pending, Type: Once, ValidUntil: 100}
	d := Decision{By: "owner", At: 1}
	next, err := g.Apply(Approve{Type: Always, Decision: d})
	if err != nil {
		t.Fatal(err)
	}
	next.Decision.By = "other"
	if g.Decision != nil || d.By != "owner" {
		t.Error("the grants share a decision")
	}
}

// TestWireNames: the names are read by clients that nobody here can change.
func TestWireNames(t *testing.T) {
	uid, cwd := uint64(1), "null"
	req := Request{
		Requester: "r", Host: "h", Audience: "a", Type: Timed, Duration: 1, Command: []string{"c"}, CmdHash: "x", RunAs: "u", Reason: "y",
		Permissions: []string{"p"}, Context: &Context{
			Argv: []string{"c"}, ArgvHash: "h", AdapterID: "i", AdapterVer: "v", AdapterDig: "d", Executable: "e",
			Bindings: map[string]string{"k": "v"}, UID: &uid, Stdin: &cwd,
		},
	}
	b, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(b, &top); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"requester", "target_host", "audience", "grant_type", "duration", "command", "cmd_hash", "run_as", "reason", "permissions", "execution_context"} {
		if top[name] == nil {
			t.Errorf("request has no %s: %s", name, b)
		}
	}
	var inner map[string]json.RawMessage
	if err := json.Unmarshal(top["execution_context"], &inner); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"argv", "argv_hash", "adapter_id", "adapter_version", "adapter_digest", "resolved_executable", "context_bindings"} {
		if inner[name] == nil {
			t.Errorf("context has no %s: %s", name, top["execution_context"])
		}
	}
	var back Request
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, req) {
		t.Errorf("%+v came back as %+v, %v", req, back, err)
	}
}
