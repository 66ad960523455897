package flow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

// TestLinksDecideForPatterns: a standing grant has answered for where the paths
// led; when they lead elsewhere at the start, it has not. A person has seen what
// the request says, and that it says nothing of links.
func TestLinksDecideForPatterns(t *testing.T) {
	none, there, elsewhere := map[string]string(nil), map[string]string{"/src/a": "/src/b"}, map[string]string{"/src/a": "/root/a"}
	for _, tt := range []struct {
		name     string
		was, is  map[string]string
		standing string
		runs     bool
	}{
		{"the same", there, there, "s", true},
		{"none", none, none, "s", true},
		{"one that came", none, elsewhere, "s", false},
		{"one that went", there, none, "s", false},
		{"another", there, elsewhere, "s", false},
		{"one that came, and a person has answered", none, elsewhere, "", true},
		{"another, and a person has answered", there, elsewhere, "", false},
	} {
		s := newScene(grant.Approved)
		s.tamper = func(g *api.Grant) {
			granted := *g.Request.Context
			granted.Links = tt.was
			g.Request.Context, g.Standing = &granted, tt.standing
		}
		door := s.door()
		door.Links = func(grant.Request) (map[string]string, error) { return tt.is, nil }
		_, err := Run(context.Background(), door, asking(0))
		if ran := slices.Contains(s.steps, "run"); ran != tt.runs || (err == nil) != tt.runs {
			t.Errorf("%s: ran %v, %v", tt.name, ran, err)
		}
	}
}

// TestLinksThatComeWhileItWaits: a pattern that answers what waits has answered for
// where the paths led when it was asked.
func TestLinksThatComeWhileItWaits(t *testing.T) {
	for _, standing := range []string{"s", ""} {
		for _, swapped := range []bool{true, false} {
			s := newScene(grant.Pending, grant.Approved)
			s.tamper = func(g *api.Grant) {
				if g.Status == grant.Approved {
					g.Standing = standing
				}
			}
			door, looks := s.door(), 0
			door.Links = func(grant.Request) (map[string]string, error) {
				if looks++; looks > 1 && swapped {
					return map[string]string{"/src/a": "/root/a"}, nil
				}
				return nil, nil
			}
			_, err := Run(context.Background(), door, asking(time.Minute))
			if ran, want := slices.Contains(s.steps, "run"), standing == "" || !swapped; ran != want || (err == nil) != want {
				t.Errorf("answered by a pattern: %v, a link came: %v: ran %v, %v", standing != "", swapped, ran, err)
			}
		}
	}
}

// TestPatternsStartWhatTheyWereAskedFor: a grant that no person has seen names its
// program, and starts no other.
func TestPatternsStartWhatTheyWereAskedFor(t *testing.T) {
	for name, change := range map[string]func(*grant.Context){
		"no file":         func(c *grant.Context) { c.File = nil },
		"another program": func(c *grant.Context) { c.Executable = "/usr/bin/cat" },
	} {
		for _, standing := range []string{"s", ""} {
			s := newScene(grant.Approved)
			s.tamper = func(g *api.Grant) {
				granted := *g.Request.Context
				change(&granted)
				g.Request.Context, g.Standing = &granted, standing
			}
			_, err := Run(context.Background(), s.door(), asking(0))
			if ran, want := slices.Contains(s.steps, "run"), standing == ""; ran != want || (err == nil) != want {
				t.Errorf("%s, by a pattern: %v: ran %v, %v", name, standing != "", ran, err)
			}
		}
	}
}

func ptr[T any](v T) *T { return &v }

// scene is an authority, a ledger and an executor in one, small enough to play
// every way in which a step can go wrong. It keeps the grant's state itself and
// notes in which order it was used.
type scene struct {
	status  []grant.Status // of the grant, from question to question; the last one stays
	tamper  func(*api.Grant)
	fail    map[string]error // by step
	context grant.Context    // what the executor binds
	exit    Exit

	asked    grant.Request
	steps    []string
	redeemed string // use that was acknowledged
	outcome  api.Outcome
	reported context.Context
	cancel   func() // called when the child starts
}

func (s *scene) step(name string) error {
	s.steps = append(s.steps, name)
	return s.fail[name]
}

func (s *scene) answer() api.Grant {
	g := api.Grant{ID: "g1", Status: s.status[0], Request: ptr(s.asked)}
	if len(s.status) > 1 {
		s.status = s.status[1:]
	}
	if s.tamper != nil {
		s.tamper(&g)
	}
	return g
}

func (s *scene) Ask(_ context.Context, req grant.Request) (api.Grant, error) {
	s.asked = req
	return s.answer(), s.step("ask")
}

func (s *scene) Wait(_ context.Context, id string, limit time.Duration) (api.Grant, error) {
	return s.answer(), s.step(fmt.Sprintf("wait %s %s", id, limit))
}

func (s *scene) Redeem(_ context.Context, id string, req grant.Request) (string, error) {
	if err := s.step("redeem " + id); err != nil {
		return "", err
	}
	s.redeemed = "use-of-" + id
	return s.redeemed, nil
}

func (s *scene) Report(ctx context.Context, id string, outcome api.Outcome) error {
	s.outcome, s.reported = outcome, ctx
	return s.step("report " + id)
}

func (s *scene) Bind(argv []string, folder string) (Bound, error) {
	if err := s.step("bind"); err != nil {
		return nil, err
	}
	return boundScene{s}, nil
}

type boundScene struct{ *scene }

func (b boundScene) Context() grant.Context { return b.context }
func (b boundScene) Close() error           { return b.step("close") }
func (b boundScene) Run(context.Context) (Exit, error) {
	if b.cancel != nil {
		b.cancel()
	}
	return b.exit, b.step("run")
}

func newScene(status ...grant.Status) *scene {
	return &scene{
		status: status,
		fail:   map[string]error{},
		context: grant.Context{
			Argv:         []string{"make", "test"},
			Executable:   "/usr/bin/make",
			Interpreters: []statement.File{{Path: ptr("/bin/sh"), SHA256: ptr("aa")}},
			File:         &statement.File{Path: ptr("/usr/bin/make"), Device: ptr(uint64(1)), Inode: ptr(uint64(2)), SHA256: ptr("aa"), Size: ptr(uint64(3))},
			Cwd:          &statement.File{Path: ptr("/src"), Device: ptr(uint64(1)), Inode: ptr(uint64(9))},
			UID:          ptr(uint64(1000)),
		},
	}
}

func (s *scene) door() Door {
	now := time.Unix(1_700_000_000, 0)
	return Door{Authority: s, Ledger: s, Executor: s, Now: func() time.Time {
		now = now.Add(1500 * time.Millisecond)
		return now
	}}
}

func asking(wait time.Duration) Asking {
	return Asking{Argv: []string{"make", "test"}, Type: grant.Timed, Duration: time.Hour, Host: "h", Reason: "why", Wait: wait}
}

func TestRunEndings(t *testing.T) {
	const minute = time.Minute
	tests := []struct {
		name   string
		status []grant.Status
		wait   time.Duration
		want   Ending
		steps  []string
	}{
		{"covered", []grant.Status{grant.Approved}, 0, Ran, []string{"bind", "ask", "redeem g1", "run", "report g1", "close"}},
		{"covered, would wait", []grant.Status{grant.Approved}, minute, Ran, []string{"bind", "ask", "redeem g1", "run", "report g1", "close"}},
		{"approved in the wait", []grant.Status{grant.Pending, grant.Approved}, minute, Ran, []string{"bind", "ask", "wait g1 1m0s", "redeem g1", "run", "report g1", "close"}},
		{"not waited", []grant.Status{grant.Pending}, 0, Waiting, []string{"bind", "ask", "close"}},
		{"nobody answers", []grant.Status{grant.Pending}, minute, Unanswered, []string{"bind", "ask", "wait g1 1m0s", "close"}},
		{"denied in the wait", []grant.Status{grant.Pending, grant.Denied}, minute, Denied, []string{"bind", "ask", "wait g1 1m0s", "close"}},
		{"revoked in the wait", []grant.Status{grant.Pending, grant.Revoked}, minute, Revoked, []string{"bind", "ask", "wait g1 1m0s", "close"}},
		{"expired in the wait", []grant.Status{grant.Pending, grant.Expired}, minute, Expired, []string{"bind", "ask", "wait g1 1m0s", "close"}},
		{"used by another", []grant.Status{grant.Pending, grant.Used}, minute, Used, []string{"bind", "ask", "wait g1 1m0s", "close"}},
		{"denied by rule", []grant.Status{grant.Denied}, minute, Denied, []string{"bind", "ask", "close"}},
		{"unknown state", []grant.Status{"superapproved"}, minute, Refused, []string{"bind", "ask", "close"}},
		{"no state", []grant.Status{""}, minute, Refused, []string{"bind", "ask", "close"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(tt.status...)
			s.exit = Exit{Code: 143, Signal: "SIGTERM"}
			got, err := Run(context.Background(), s.door(), asking(tt.wait))
			if err != nil {
				t.Fatal(err)
			}
			if got.Ending != tt.want || !slices.Equal(s.steps, tt.steps) {
				t.Errorf("ending %d after %q, want %d after %q", got.Ending, s.steps, tt.want, tt.steps)
			}
			if got.Grant.ID != "g1" {
				t.Errorf("the result is about grant %q", got.Grant.ID)
			}
			if tt.want == Ran && (got.Exit != s.exit || s.outcome != (api.Outcome{Use: "use-of-g1", ExitCode: 143, Signal: "SIGTERM", DurationMS: 1500})) {
				t.Errorf("exit %+v, reported %+v", got.Exit, s.outcome)
			}
		})
	}
	var zero Ending
	if zero != Refused {
		t.Error("the zero value does not refuse")
	}
}

func TestRunAsksForWhatWasBound(t *testing.T) {
	s := newScene(grant.Pending)
	announced := 0
	door := s.door()
	door.Announce = func(g api.Grant) { announced++ }
	if _, err := Run(context.Background(), door, asking(time.Second)); err != nil {
		t.Fatal(err)
	}
	r := s.asked
	if !slices.Equal(r.Command, s.context.Argv) || r.Audience != Audience || r.Host != "h" || r.Type != grant.Timed ||
		r.Duration != 3600 || r.Reason != "why" || *r.Context.File.SHA256 != "aa" || *r.Context.Cwd.Path != "/src" {
		t.Errorf("asked %+v", r)
	}
	if announced != 1 {
		t.Errorf("the wait was announced %d times", announced)
	}
}

// A step that fails ends the path with its error, and nothing after it happens.
func TestRunStopsAtTheFirstFailure(t *testing.T) {
	for _, step := range []string{"bind", "ask", "wait g1 1m0s", "redeem g1"} {
		s := newScene(grant.Pending, grant.Approved)
		s.fail[step] = errors.New("broken")
		got, err := Run(context.Background(), s.door(), asking(time.Minute))
		if !errors.Is(err, s.fail[step]) || got.Ending != Refused {
			t.Errorf("%s: %+v, %v", step, got, err)
		}
		if slices.Contains(s.steps, "run") {
			t.Errorf("%s failed, and the command ran: %q", step, s.steps)
		}
	}
}

func TestRunRefusesAnotherAction(t *testing.T) {
	tests := []struct {
		name   string
		tamper func(*api.Grant)
		text   string
	}{
		{"command", func(g *api.Grant) { g.Request.Command = []string{"make test"} }, "command"},
		{"no command", func(g *api.Grant) { g.Request.Command = nil }, "command"},
		{"host", func(g *api.Grant) { g.Request.Host = "other" }, "host"},
		{"content", func(g *api.Grant) {
			g.Request.Context = &grant.Context{File: &statement.File{SHA256: ptr("bb")}}
		}, "program"},
		{"inode", func(g *api.Grant) {
			g.Request.Context = &grant.Context{File: &statement.File{Inode: ptr(uint64(7))}}
		}, "program"},
		{"interpreter", func(g *api.Grant) {
			g.Request.Context = &grant.Context{Interpreters: []statement.File{{Path: ptr("/bin/sh"), SHA256: ptr("bb")}}}
		}, "interpreter"},
		{"no interpreter", func(g *api.Grant) {
			g.Request.Context = &grant.Context{Interpreters: []statement.File{{SHA256: ptr("aa")}, {Path: ptr("/bin/env")}}}
		}, "interpreter"},
		{"folder", func(g *api.Grant) {
			g.Request.Context = &grant.Context{Cwd: &statement.File{Path: ptr("/other")}}
		}, "it says /other, here it is /src"},
		{"another folder of the same name", func(g *api.Grant) {
			g.Request.Context = &grant.Context{Cwd: &statement.File{Path: ptr("/src"), Inode: ptr(uint64(10))}}
		}, "folder"},
		{"more interpreters here than were bound", func(g *api.Grant) {
			g.Request.Context = &grant.Context{Interpreters: []statement.File{{Path: ptr("/bin/sh"), SHA256: ptr("aa")}}}
		}, "another interpreter"},
		{"user", func(g *api.Grant) { g.Request.Context = &grant.Context{UID: ptr(uint64(0))} }, "another user: it says 0, here it is 1000"},
		{"box", func(g *api.Grant) { g.Request.Context = &grant.Context{Confinement: ptr("default sha256:00 in /w")} }, "another box: it says default sha256:00 in /w, here it is not bound"},
		{"network", func(g *api.Grant) { g.Request.Context = &grant.Context{NetworkMode: ptr("none")} }, "another network: it says none, here it is not bound"},
		{"standard input, which nothing here enforces", func(g *api.Grant) {
			g.Request.Context = &grant.Context{Stdin: ptr("null")}
		}, "another standard input"},
		{"hidden", func(g *api.Grant) { g.Request = nil }, "somebody else"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(grant.Approved)
			if strings.HasPrefix(tt.name, "more interpreters") {
				s.context.Interpreters = append(s.context.Interpreters, statement.File{Path: ptr("/bin/env")})
			}
			s.tamper = tt.tamper
			_, err := Run(context.Background(), s.door(), asking(0))
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want an error about %q", err, tt.text)
			}
			if slices.Contains(s.steps, "run") || s.redeemed != "" {
				t.Errorf("went on to %q", s.steps)
			}
		})
	}
}

// A field of the context that is compared by nobody would be shown, signed and
// then ignored. So each field, also one that is added later, either stops the
// run when the grant has another value, or is named here with the reason.
func TestRunComparesEveryFieldOfTheContext(t *testing.T) {
	notInTheStatement := map[string]string{
		"Argv":       "Request.Command is what is shown and compared",
		"ArgvHash":   "a hash of the same",
		"AdapterID":  "names the software that asked",
		"AdapterVer": "names the software that asked",
		"AdapterDig": "names the software that asked",
		"Executable": "File.Path is what is shown and compared",
		"Bindings":   "words of the software that asked",
	}
	fields := reflect.TypeFor[grant.Context]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		s := newScene(grant.Approved)
		s.tamper = func(g *api.Grant) {
			other := grant.Context{}
			fill(t, reflect.ValueOf(&other).Elem().Field(i))
			g.Request.Context = &other
		}
		_, err := Run(context.Background(), s.door(), asking(0))
		_, refused := errors.AsType[*MismatchError](err)
		if _, exempt := notInTheStatement[name]; refused == exempt {
			t.Errorf("%s: a grant with another value gave %v", name, err)
		}
		if refused && slices.Contains(s.steps, "run") {
			t.Errorf("%s differs, and the command ran", name)
		}
	}
	files := reflect.TypeFor[statement.File]()
	for i := range files.NumField() {
		var other statement.File
		fill(t, reflect.ValueOf(&other).Elem().Field(i))
		if found := newScene().context.File; sameFile(&other, found) {
			t.Errorf("files that differ in %s pass for the same", files.Field(i).Name)
		}
	}
}

// fill sets a value, and all that it consists of, to something that no scene
// has.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("another")
	case reflect.Uint64:
		v.SetUint(987654321)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("another"), reflect.ValueOf("another"))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("no other value is known for a %s", v.Type())
	}
}

// What a grant does not bind, it was approved without.
func TestRunAcceptsWhatIsNotBound(t *testing.T) {
	for _, c := range []*grant.Context{nil, {}, {File: &statement.File{Path: ptr("/usr/bin/make")}}} {
		s := newScene(grant.Approved)
		s.tamper = func(g *api.Grant) { g.Request.Context = c }
		if got, err := Run(context.Background(), s.door(), asking(0)); err != nil || got.Ending != Ran {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

func TestRunUsesAnExistingGrant(t *testing.T) {
	s := newScene(grant.Pending, grant.Approved)
	s.asked = asking(0).request(s.context)
	ask := asking(time.Minute)
	ask.Grant = "g1"
	got, err := Run(context.Background(), s.door(), ask)
	if err != nil || got.Ending != Ran {
		t.Fatal(got, err)
	}
	if want := []string{"bind", "wait g1 0s", "wait g1 1m0s", "redeem g1", "run", "report g1", "close"}; !slices.Equal(s.steps, want) {
		t.Errorf("steps %q, want %q", s.steps, want)
	}
}

func TestRunRefusesAnswersAboutOtherGrants(t *testing.T) {
	s := newScene(grant.Pending, grant.Approved)
	first := true
	s.tamper = func(g *api.Grant) {
		if !first {
			g.ID = "g2"
		}
		first = false
	}
	if _, err := Run(context.Background(), s.door(), asking(time.Minute)); err == nil || !strings.Contains(err.Error(), `"g2"`) {
		t.Errorf("got %v", err)
	}
	if s.redeemed != "" {
		t.Errorf("went on to %q", s.steps)
	}
}

func TestRunReportsWhatDidNotStart(t *testing.T) {
	s := newScene(grant.Approved)
	s.fail["run"] = errors.New("program changed")
	got, err := Run(context.Background(), s.door(), asking(0))
	if !errors.Is(err, s.fail["run"]) || got.Ending != Refused {
		t.Errorf("%+v, %v", got, err)
	}
	if s.outcome != (api.Outcome{Use: "use-of-g1", ExitCode: 126, DurationMS: 1500, Error: "program changed"}) {
		t.Errorf("reported %+v", s.outcome)
	}
}

// An interrupt that reached this process while the child ran does not swallow
// the report, and a report that fails does not change the exit code.
func TestRunReportsAfterInterrupt(t *testing.T) {
	s := newScene(grant.Approved)
	s.exit = Exit{Code: 3}
	s.fail["report g1"] = errors.New("unreachable, and the disk is full")
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	got, err := Run(ctx, s.door(), asking(0))
	if err != nil || got.Ending != Ran || got.Exit.Code != 3 || !errors.Is(got.Unreported, s.fail["report g1"]) {
		t.Errorf("%+v, %v", got, err)
	}
	if s.reported.Err() != nil {
		t.Error("the report was made with a context that has ended")
	}
}

// The property that all else serves: whatever the steps answer, a command runs
// only after Redeem has acknowledged the grant, and Redeem is tried only for a
// grant that was approved for the bound action.
func TestNothingRunsWithoutRedemption(t *testing.T) {
	statuses := []grant.Status{grant.Pending, grant.Approved, grant.Denied, grant.Revoked, grant.Expired, grant.Used, "", "other"}
	steps := []string{"bind", "ask", "wait g1 1m0s", "wait g1 0s", "redeem g1", "run", "report g1", "close"}
	r := rand.New(rand.NewPCG(1, 2))
	ran := 0
	for range 20_000 {
		s := newScene(statuses[r.IntN(len(statuses))], statuses[r.IntN(len(statuses))], statuses[r.IntN(len(statuses))])
		s.asked = asking(0).request(s.context)
		sound := true
		if r.IntN(4) == 0 {
			sound = false
			s.tamper = func(g *api.Grant) { g.Request.Command = []string{"rm"} }
		}
		for _, step := range steps {
			if r.IntN(6) == 0 {
				s.fail[step] = errors.New(step)
			}
		}
		ask := asking(time.Duration(r.IntN(2)) * time.Minute)
		if r.IntN(2) == 0 {
			ask.Grant = "g1"
		}
		seen := slices.Clone(s.status)
		result, err := Run(context.Background(), s.door(), ask)
		at := slices.Index(s.steps, "run")
		if at < 0 {
			if result.Ending == Ran {
				t.Fatalf("nothing ran, but the ending says so: %q", s.steps)
			}
			continue
		}
		ran++
		redeem := slices.Index(s.steps, "redeem g1")
		switch {
		case redeem < 0 || redeem > at || s.redeemed == "" || s.fail["redeem g1"] != nil:
			t.Fatalf("ran without redemption: %q", s.steps)
		case !sound:
			t.Fatalf("ran another action: %q", s.steps)
		case !slices.Contains(seen, grant.Approved):
			t.Fatalf("ran without approval: %q, %q", seen, s.steps)
		case slices.Index(s.steps[at+1:], "report g1") != 0:
			t.Fatalf("ran without a report: %q", s.steps)
		case err == nil && result.Ending != Ran:
			t.Fatalf("ran, and the ending is %d", result.Ending)
		}
	}
	if ran < 100 {
		t.Fatalf("only %d of the cases ran: the test shows nothing", ran)
	}
}
