package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/config"
)

// authority is one that answers for its health.
func authority(t *testing.T, change func(*api.Health)) string {
	t.Helper()
	var h api.Health
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != api.PathHealth {
			http.NotFound(w, r)
			return
		}
		json.NewEncoder(w).Encode(h)
	}))
	t.Cleanup(s.Close)
	h = api.Health{Status: "ok", Version: "1", Issuer: s.URL, Epoch: 1, Bearer: "none", Time: now().UnixMilli(), LogKey: "vogt/x/log+1+AAA", SetUp: true}
	if change != nil {
		change(&h)
	}
	return s.URL
}

func now() time.Time { return time.Unix(1_800_000_000, 0) }

// subject is a home in a temporary folder, as `vogt up` leaves it.
func subject(t *testing.T, authority string) Subject {
	t.Helper()
	dir := t.TempDir()
	paths := config.Paths{
		System: filepath.Join(dir, "etc"), Config: filepath.Join(dir, "config"),
		Data: filepath.Join(dir, "data"), State: filepath.Join(dir, "state"),
	}
	for _, d := range []string{paths.Config, paths.Data, paths.State} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(paths.Config, "vogt.toml"), "authority = \""+authority+"\"\n", 0o600)
	bin := filepath.Join(dir, "bin")
	os.Mkdir(bin, 0o755)
	write(t, filepath.Join(bin, "vogt"), "#!/bin/sh\n", 0o755)
	env := map[string]string{"PATH": bin}
	return Subject{
		Paths: paths, Vogt: filepath.Join(bin, "vogt"), Version: "1", Getenv: func(n string) string { return env[n] },
		Home: filepath.Join(dir, "home"), Now: now, Memory: filepath.Join(paths.State, "log"), Proc: filepath.Join(dir, "proc"),
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// find returns one finding of an examination.
func find(t *testing.T, s Subject, name string) Check {
	t.Helper()
	for _, c := range Examine(t.Context(), s).Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q", name)
	return Check{}
}

// expect compares a finding and demands a way out where something is to do.
func expect(t *testing.T, c Check, want State, text string) {
	t.Helper()
	if c.State != want || !strings.Contains(c.Text, text) {
		t.Errorf("%s: got %v: %s; want %v: …%s…", c.Name, c.State, c.Text, want, text)
	}
	if c.State == Failed && c.Fix == "" {
		t.Errorf("%s failed without a way to mend it", c.Name)
	}
}

// TestActingAgent examines with an agent's login only, as there is in its box, and
// with the default address in the settings.
func TestActingAgent(t *testing.T) {
	s := subject(t, "http://127.0.0.1:1")
	url := authority(t, nil)
	login, err := json.Marshal(map[string]any{
		"idp": url, "email": "demo@example.org", "act": "agent", "access_token": "t", "expires_at": now().Add(time.Hour).Unix(),
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.Paths.Config, "agents", "demo", "auth.json"), string(login), 0o600)
	expect(t, find(t, s, "authority"), Failed, "http://127.0.0.1:1 cannot be reached")
	s.Agent = "other"
	expect(t, find(t, s, "authority"), Failed, "http://127.0.0.1:1 cannot be reached")
	s.Agent, s.Box = "demo", "agent"
	expect(t, find(t, s, "authority"), InForce, "it answers")
	r := Examine(t.Context(), s)
	if r.Authority != url || r.Identity != "demo@example.org" {
		t.Errorf("the authority is %s, the identity %s", r.Authority, r.Identity)
	}
	for _, c := range r.Checks {
		if c.Fix != "" && !strings.HasPrefix(c.Fix, "outside of the box: ") {
			t.Errorf("%s: advice for a box: %s", c.Name, c.Fix)
		}
	}
}

func TestAuthorityChecks(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		check  string
		change func(*api.Health)
		want   State
		text   string
	}{
		{"authority", nil, InForce, "it answers"},
		{"owner", nil, InForce, "has an owner"},
		{"owner", func(h *api.Health) { h.SetUp = false }, NotInForce, "nobody owns"},
		{"issuer", nil, InForce, "calls itself"},
		{"issuer", func(h *api.Health) { h.Issuer = "http://127.0.0.1:1" }, Failed, "http://127.0.0.1:1"},
		{"clock", nil, InForce, "differ by 0s"},
		{"clock", func(h *api.Health) { h.Time += 5000 }, InForce, "differ by 5s"},
		{"clock", func(h *api.Health) { h.Time += 5001 }, Failed, "5.001s"},
		{"clock", func(h *api.Health) { h.Time -= day.Milliseconds() }, Failed, "-24h"},
		{"bearer-decisions", nil, InForce, "permits nothing"},
		{"bearer-decisions", func(h *api.Health) { h.Bearer = "medium" }, NotInForce, `"medium"`},
		{"bearer-decisions", func(h *api.Health) { h.Bearer = "" }, InPart, "does not say"},
		{"log-key", nil, InPart, "not pinned"},
		{"log", nil, InPart, "nobody is logged in"},
	}
	for _, test := range tests {
		t.Run(test.check+" "+test.want.String(), func(t *testing.T) {
			expect(t, find(t, subject(t, authority(t, test.change)), test.check), test.want, test.text)
		})
	}
}

func TestLogKey(t *testing.T) {
	for key, want := range map[string]State{
		"vogt/x/log+1+AAA":           InForce,
		"vogt/other-name/log+99+AAA": InForce, // the log's name follows the address
		"vogt/x/log+1+BBB":           Failed,
	} {
		s := subject(t, "http://127.0.0.1:1")
		url := authority(t, nil)
		write(t, filepath.Join(s.Paths.Config, "vogt.toml"), "authority = \""+url+"\"\nauthority_key = \""+key+"\"\n", 0o600)
		expect(t, find(t, s, "log-key"), want, "log")
	}
}

// TestAuthorityDown: everything that can be told is told, and exactly the
// authority is what failed.
func TestAuthorityDown(t *testing.T) {
	s := subject(t, "http://127.0.0.1:1")
	r := Examine(t.Context(), s)
	if r.OK {
		t.Error("an authority that is down is no failure")
	}
	for _, c := range r.Checks {
		if c.State == Failed && c.Name != "authority" {
			t.Errorf("%s failed: %s", c.Name, c.Text)
		}
	}
	expect(t, find(t, s, "authority"), Failed, "refused")
	expect(t, find(t, s, "bearer-decisions"), InPart, "cannot be told")
}

// TestAQuickStartIsNotBroken: advisory is not a failure.
func TestAQuickStartIsNotBroken(t *testing.T) {
	s := subject(t, authority(t, nil))
	r := Examine(t.Context(), s)
	for _, c := range r.Checks {
		if c.State == Failed {
			t.Errorf("%s failed: %s", c.Name, c.Text)
		}
	}
	if !r.OK || r.Enforcement != "advisory" {
		t.Errorf("ok %v, enforcement %q", r.OK, r.Enforcement)
	}
}

func TestBadSettings(t *testing.T) {
	s := subject(t, "")
	write(t, filepath.Join(s.Paths.Config, "vogt.toml"), "authority = 3\n", 0o600)
	expect(t, find(t, s, "settings"), Failed, "vogt.toml:1")
	write(t, filepath.Join(s.Paths.Config, "vogt.toml"), "authority = \"ftp://x\"\n", 0o600)
	expect(t, find(t, s, "settings"), Failed, "ftp://x")
}

// TestLoginElsewhere: what counts is the authority that the login is at.
func TestLoginElsewhere(t *testing.T) {
	s := subject(t, "http://127.0.0.1:1")
	url := authority(t, nil)
	write(t, filepath.Join(s.Paths.Config, "auth.json"), `{"idp":"`+url+`","email":"a@b.c","act":"human"}`, 0o600)
	expect(t, find(t, s, "authority"), InForce, "it answers")
	expect(t, find(t, s, "settings"), InPart, url)
}

func TestReport(t *testing.T) {
	r := Report{Enforcement: "advisory", Checks: []Check{
		inForce("clock", "this clock and the authority's differ by 0s"),
		finding("database", NotInForce, "sudo a-long-command --with options --that --must --stay --on --one --line", "this user can open it and read every key that lies in it"),
		{Name: "forgotten", Text: "the zero value is a failure"},
	}}
	var b bytes.Buffer
	if err := r.Write(&b, 60); err != nil {
		t.Fatal(err)
	}
	const want = `Enforcement in force: advisory

in force       clock
               this clock and the authority's differ by 0s
not in force   database
               this user can open it and read every key that
               lies in it
               fix: sudo a-long-command --with options --that --must --stay --on --one --line
failed         forgotten
               the zero value is a failure

1 in force, 0 in part, 1 not in force, 1 failed.
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	text, err := json.Marshal(r.Checks[1])
	if err != nil || !strings.Contains(string(text), `"state":"not in force"`) {
		t.Errorf("JSON %s, %v", text, err)
	}
}

// TestProofsExist: every test that the threat model names is there.
func TestProofsExist(t *testing.T) {
	text, err := os.ReadFile("../../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`test:([a-z/]+)\\.(Test[A-Za-z]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 10 {
		t.Fatalf("the threat model names only %d tests", len(named))
	}
	for _, m := range named {
		files, err := filepath.Glob(filepath.Join("../..", m[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(f string) bool {
			source, err := os.ReadFile(f)
			return err == nil && strings.Contains(string(source), "func "+m[2]+"(t *testing.T)")
		}) {
			t.Errorf("docs/threat-model.md names %s in %s, which does not exist", m[2], m[1])
		}
	}
}

// TestEveryCheckIsInTheThreatModel: the document names each check, and names
// none that does not exist.
func TestEveryCheckIsInTheThreatModel(t *testing.T) {
	text, err := os.ReadFile("../../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, c := range Examine(context.Background(), subject(t, "http://127.0.0.1:1")).Checks {
		have[c.Name] = true
		if !strings.Contains(string(text), "doctor:"+c.Name+"`") {
			t.Errorf("docs/threat-model.md does not name the check %s", c.Name)
		}
	}
	text = bytes.ReplaceAll(text, []byte("`doctor:NAME`"), nil) // the form, not a check
	for _, part := range strings.Split(string(text), "`doctor:")[1:] {
		name, _, ok := strings.Cut(part, "`")
		if !ok || !have[name] {
			t.Errorf("docs/threat-model.md names a check %q that does not exist", name)
		}
	}
}
