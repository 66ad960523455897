//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/client/clienttest"
	"vogt/internal/execution"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/statement"
	"vogt/internal/token"
)

// user is somebody who calls vogt with a home of its own.
type user struct {
	t    *testing.T
	home string
	ctx  context.Context
	env  []string // beside VOGT_HOME and PATH
}

func newUser(t *testing.T) *user {
	return &user{t: t, home: t.TempDir(), ctx: context.Background()}
}

// result is how a call ended.
type result struct {
	code           int
	stdout, stderr string
}

// vogt calls the program in this process.
func (u *user) vogt(args ...string) result {
	u.t.Helper()
	open := func(name string) *os.File {
		f, err := os.CreateTemp(u.t.TempDir(), name)
		if err != nil {
			u.t.Fatal(err)
		}
		return f
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		u.t.Fatal(err)
	}
	defer null.Close()
	out, errs := open("stdout"), open("stderr")
	defer out.Close()
	defer errs.Close()
	code := Run(u.ctx, args, &env{
		stdin: null, stdout: out, stderr: errs, now: time.Now,
		environ: append([]string{"HOME=" + u.home, "VOGT_HOME=" + u.home, "PATH=" + os.Getenv("PATH")}, u.env...),
	})
	read := func(f *os.File) string {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			u.t.Fatal(err)
		}
		return string(text)
	}
	return result{code, read(out), read(errs)}
}

// must is vogt that has to succeed.
func (u *user) must(args ...string) result {
	u.t.Helper()
	r := u.vogt(args...)
	if r.code != 0 {
		u.t.Fatalf("vogt %q: exit code %d\n%s", args, r.code, r.stderr)
	}
	return r
}

// key makes an SSH key in the user's home.
func (u *user) key(name string) (path string, public sshkey.Public) {
	u.t.Helper()
	pem, public, err := sshkey.Generate(rand.Reader, name)
	if err != nil {
		u.t.Fatal(err)
	}
	path = filepath.Join(u.home, name)
	if err := sshkey.WriteNew(path, pem, public); err != nil {
		u.t.Fatal(err)
	}
	return path, public
}

// newOwner is a user who is logged in as the owner, with an agent "bot".
func newOwner(t *testing.T) (*clienttest.Authority, *user) {
	t.Helper()
	a, u := clienttest.New(t), newUser(t)
	key, public := u.key("owner-key")
	a.AddPerson(ownerEmail, "", public)
	u.must("login", ownerEmail, "--idp", a.URL, "--key", key)
	u.must("agent", "add", "bot")
	return a, u
}

// ask asks as the agent and returns the identifier of the request.
func (u *user) ask(argv ...string) string {
	u.t.Helper()
	r := u.vogt(append([]string{"run", "--agent", "bot", "--"}, argv...)...)
	if r.code != exitUndecided {
		u.t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	return regexp.MustCompile(`(?m)^Grant: (.*)$`).FindStringSubmatch(r.stderr)[1]
}

// Whatever an authority answers wrongly on the way, the command does not run,
// the exit code is that of a refusal, and nothing reaches standard output.
func TestNothingRunsUnderALyingAuthority(t *testing.T) {
	forge := func(change func(*token.Grant)) func(*clienttest.Authority) {
		return func(a *clienttest.Authority) { a.Forge = change }
	}
	lie := func(suffix string, change func(map[string]any)) func(*clienttest.Authority) {
		return func(a *clienttest.Authority) {
			a.Lie = func(path string, _ http.Header, answer map[string]any) {
				if strings.HasSuffix(path, suffix) {
					change(answer)
				}
			}
		}
	}
	grants := func(change func(map[string]any)) func(*clienttest.Authority) { return lie("/grants", change) }
	tests := []struct {
		name string
		lie  func(*clienttest.Authority)
		code int
	}{
		{"wrong command in the token", forge(func(c *token.Grant) { c.Command[0] = "rm" }), exitRefused},
		{"token for another grant", forge(func(c *token.Grant) { c.GrantID = "x" }), exitRefused},
		{"token for another host", forge(func(c *token.Grant) { c.Host = "x" }), exitRefused},
		{"token by an unknown key", func(a *clienttest.Authority) {
			published := a.Published
			a.Published = token.Keys{}
			a.NewSigningKey()
			a.Published = published
		}, exitRefused},
		{"approved for another command", grants(func(g map[string]any) { g["request"].(map[string]any)["command"] = []any{"rm"} }), exitCannotRun},
		{"approved without a request", grants(func(g map[string]any) { delete(g, "request") }), exitInternal},
		{"approved for another grant", grants(func(g map[string]any) { g["id"] = "0000000f-0000-4000-8000-000000000000" }), exitUsage},
		{"approved for a grant without a name", grants(func(g map[string]any) { g["id"] = "x" }), exitInternal},
		{"consume without a receipt", lie("/consume", func(c map[string]any) { delete(c, "receipt") }), exitRefused},
		{"an unknown state", grants(func(g map[string]any) { g["status"] = "approvedd" }), exitRefused},
		{"no state", grants(func(g map[string]any) { g["status"] = "" }), exitInternal},
		{"consume without acknowledgement", lie("/consume", func(c map[string]any) { delete(c, "use_id") }), exitInternal},
		{"consume refused", lie("/consume", func(c map[string]any) { c["error"], c["status"] = "already_consumed", "used" }), exitSpent},
		{"receipt for another command", lie("/consume", func(c map[string]any) {
			c["receipt"].(map[string]any)["statement"].(map[string]any)["argv"] = []any{"rm"}
		}), exitRefused},
		{"forked log", func(a *clienttest.Authority) {
			a.Restore(2)
			for range 20 {
				a.Write("other")
			}
		}, exitRefused},
		{"shorter log", func(a *clienttest.Authority) { a.Restore(2) }, exitRefused},
		{"another log key", func(a *clienttest.Authority) { a.NewLog() }, exitRefused},
		{"redirect", func(a *clienttest.Authority) {
			a.Before = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
				return true
			}
		}, exitRefused},
		{"away", func(a *clienttest.Authority) { a.Stop() }, exitUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, u := newOwner(t)
			marker := filepath.Join(t.TempDir(), "ran")
			argv := []string{"sh", "-c", "echo ran; echo >" + marker}
			a.Settle(u.ask(argv...), grant.Approved, grant.Always)
			run := append([]string{"run", "--agent", "bot", "--"}, argv...)
			if r := u.must(run...); r.stdout != "ran\n" {
				t.Fatalf("honest: %+v", r)
			}
			if err := os.Remove(marker); err != nil {
				t.Fatal(err)
			}
			tt.lie(a)
			r := u.vogt(run...)
			if r.code != tt.code || r.stdout != "" || r.stderr == "" {
				t.Errorf("exit code %d, want %d; stdout %q\n%s", r.code, tt.code, r.stdout, r.stderr)
			}
			if _, err := os.Stat(marker); err == nil {
				t.Error("it ran")
			}
		})
	}
}

func TestForkAlarm(t *testing.T) {
	a, u := newOwner(t)
	u.must("grant", "list")
	a.Restore(2)
	for range 20 {
		a.Write("other")
	}
	r := u.vogt("grant", "list")
	file := regexp.MustCompile(`(?m)^vogt: evidence: (.*)$`).FindStringSubmatch(r.stderr)
	if r.code != exitRefused || !strings.Contains(r.stderr, "ALARM") || file == nil {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	if _, err := os.Stat(file[1]); err != nil {
		t.Error(err)
	}
	// The person, and nobody else, can put an end to it.
	u.must("audit", "accept")
	u.must("grant", "list")
	if r := u.vogt("audit", "verify"); r.code != 0 {
		t.Error(r.stderr)
	}
}

func TestVerifyNamesTheRecord(t *testing.T) {
	a, u := newOwner(t)
	a.Write("test")
	a.Falsify(3)
	if r := u.vogt("audit", "verify"); r.code != exitMismatch || !strings.Contains(r.stderr, "record 3") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if r := u.vogt("audit", "verify", "--json"); r.code != exitMismatch || !strings.Contains(r.stdout, `"record":3`) {
		t.Errorf("exit code %d: %s", r.code, r.stdout)
	}
	path := filepath.Join(t.TempDir(), "log")
	a.Lie = nil
	a.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/export") {
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte("{"))
			return true
		}
		return false
	}
	if r := u.vogt("audit", "export", path); r.code == 0 {
		t.Error("half a log was taken for one")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("half a log was left behind")
	}
}

// A statement that is not that of the request must not be signed.
func TestApproveSignsOnlyWhatWasShown(t *testing.T) {
	a, u := newOwner(t)
	id := u.ask("echo", "harmless")
	signed := false
	a.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		signed = signed || strings.HasSuffix(r.URL.Path, "/approve")
		return false
	}
	a.Lie = func(path string, _ http.Header, answer map[string]any) {
		if strings.HasSuffix(path, "/statement") {
			answer["statement"].(map[string]any)["argv"] = []any{"rm", "-rf", "/"}
		}
	}
	if r := u.vogt("grant", "approve", id); r.code != exitRefused || signed {
		t.Errorf("exit code %d, signed %t\n%s", r.code, signed, r.stderr)
	}
	a.Lie = nil
	u.must("grant", "approve", id)
	if !signed {
		t.Error("nothing was signed: the test shows nothing")
	}
}

// What an agent writes can neither command the terminal nor pass for a line of
// the card.
func TestCardShowsWhatIsThere(t *testing.T) {
	_, u := newOwner(t)
	r := u.vogt("run", "--agent", "bot", "--reason", "fine\nRisk: low\x1b[2J", "--", "echo", "a\u202eb", "two words", "", "\x1b[31m", "l\u0456st")
	if r.code != exitUndecided {
		t.Fatal(r.stderr)
	}
	id := regexp.MustCompile(`(?m)^Grant: (.*)$`).FindStringSubmatch(r.stderr)[1]
	shown := u.must("grant", "show", id)
	approved := u.must("grant", "approve", id)
	for name, text := range map[string]string{"show": shown.stdout, "approve": approved.stderr} {
		for _, want := range []string{
			`[0] "echo"`, `[1] "a<U+202E>b"`, `[2] "two words"`, `[3] ""`, `[4] "<U+001B>[31m"`, `[5] "l<U+0456>st"`,
			`"fine<U+000A>Risk: low<U+001B>[2J" (the agent's own words, unverified)`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, text)
			}
		}
		if strings.ContainsAny(text, "\x1b\u202e") || strings.Contains(text, "\nRisk: low") {
			t.Errorf("%s passes on what it should not:\n%q", name, text)
		}
	}
}

// Without a key, the person is shown the page.
func TestApproveWithoutKey(t *testing.T) {
	a, u := newOwner(t)
	id := u.ask("echo")
	paths := client.Home{Folder: filepath.Join(u.home, "config")}
	l, err := paths.Default().Load()
	if err != nil {
		t.Fatal(err)
	}
	l.KeyPath = ""
	if err := paths.Default().Save(l); err != nil {
		t.Fatal(err)
	}
	r := u.vogt("grant", "approve", id)
	if r.code != exitUndecided || !strings.Contains(r.stderr, "Approve: "+a.URL+"/grants/"+id) {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if got := a.Grant(id).Status; got != grant.Pending {
		t.Errorf("it is %s", got)
	}
	u.must("grant", "approve", id, "--key", filepath.Join(u.home, "owner-key"))
}

// The key may be encrypted: the passphrase is asked for on the terminal, after
// the statement was shown, and not echoed.
func TestApproveAsksForThePassphrase(t *testing.T) {
	a, u := newOwner(t)
	id := u.ask("echo")
	key := filepath.Join(u.home, "owner-key")
	if out, err := exec.Command("ssh-keygen", "-q", "-p", "-N", "correct horse", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r := u.vogt("grant", "approve", id); r.code != exitConfig {
		t.Errorf("without a terminal: exit code %d\n%s", r.code, r.stderr)
	}
	vogt := program(t, "vogt")
	for _, word := range []string{"wrong horse", "correct horse"} {
		cmd := exec.Command(vogt, "grant", "approve", id)
		cmd.Env = []string{"VOGT_HOME=" + u.home, "HOME=" + u.home, "PATH=" + os.Getenv("PATH")}
		tty, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		var seen strings.Builder
		buf := make([]byte, 4096)
		asked := false
		for {
			n, err := tty.Read(buf)
			seen.Write(buf[:n])
			if !asked && strings.Contains(seen.String(), "Passphrase for ") {
				asked = true
				fmt.Fprintln(tty, word)
			}
			if err != nil {
				break
			}
		}
		tty.Close()
		err = cmd.Wait()
		text := seen.String()
		if strings.Contains(text, "horse") || strings.Index(text, "Digest:") > strings.Index(text, "Passphrase for ") {
			t.Errorf("the terminal shows:\n%s", text)
		}
		if (err == nil) != (word == "correct horse") {
			t.Errorf("%s: %v\n%s", word, err, text)
		}
	}
	if got := a.Grant(id).Status; got != grant.Approved {
		t.Errorf("it is %s", got)
	}
}

// An interrupt while waiting ends the wait, runs nothing and leaves the request.
func TestInterruptedWait(t *testing.T) {
	a, u := newOwner(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	u.ctx = ctx
	marker := filepath.Join(t.TempDir(), "ran")
	ended, waits := make(chan result), make(chan struct{})
	var once sync.Once
	a.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("wait") {
			once.Do(func() { close(waits) })
		}
		return false
	}
	go func() { ended <- u.vogt("run", "--agent", "bot", "--wait", "--", "touch", marker) }()
	g := a.AwaitGrants(1)[0]
	<-waits
	cancel(errors.New("interrupt"))
	r := <-ended
	if want := "the request still waits; Execute: vogt grant run " + g.ID + " --wait --agent bot\n"; r.code != exitInterrupted || !strings.HasSuffix(r.stderr, want) {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if got := a.Grant(g.ID).Status; got != grant.Pending {
		t.Errorf("the request is %s", got)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("it ran")
	}
}

// An authority that goes away while the command runs hears of the outcome at
// the next contact.
func TestOutcomeIsDeliveredLater(t *testing.T) {
	a, u := newOwner(t)
	a.Settle(u.ask("sh", "-c", "exit 9"), grant.Approved, grant.Once)
	a.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/outcome") {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	if r := u.vogt("run", "--agent", "bot", "--", "sh", "-c", "exit 9"); r.code != 9 || r.stderr != "" {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	a.Before = nil
	u.must("grant", "list", "--agent", "bot")
	if got := a.Outcomes(); len(got) != 1 || got[0].ExitCode != 9 {
		t.Errorf("reported %+v", got)
	}
}

func TestBadArguments(t *testing.T) {
	a, u := newOwner(t)
	for name, arg := range map[string]string{
		"NUL": "a\x00b", "not UTF-8": "\xff\xfe", "too long": strings.Repeat("a", execution.MaxArgv),
	} {
		if r := u.vogt("run", "--agent", "bot", "--", "echo", arg); r.code != exitUsage || len(r.stderr) > 1000 {
			t.Errorf("%s: exit code %d\n%.300s", name, r.code, r.stderr)
		}
	}
	if got := a.Grants(); len(got) != 0 {
		t.Errorf("the authority was asked: %+v", got)
	}
}

func TestLoginByPage(t *testing.T) {
	a, u := clienttest.New(t), newUser(t)
	_, public := u.key("elsewhere")
	a.AddPerson(ownerEmail, "", public)
	a.AddPerson("other@example.com", "", public)
	logIn := func(confirmer string, n int) result {
		ended := make(chan result)
		go func() { ended <- u.vogt("login", ownerEmail, "--idp", a.URL) }()
		a.AwaitChanges(n)
		if confirmer == "" {
			a.DeclineAll()
		} else {
			a.ConfirmAll(confirmer)
		}
		return <-ended
	}
	if r := logIn("", 1); r.code != exitRefused || !strings.Contains(r.stderr, "declined") {
		t.Errorf("declined: exit code %d\n%s", r.code, r.stderr)
	}
	if r := logIn("other@example.com", 2); r.code != exitRefused || !strings.Contains(r.stderr, "other@example.com confirmed") {
		t.Errorf("by somebody else: exit code %d\n%s", r.code, r.stderr)
	}
	if r := u.vogt("whoami"); r.code != exitConfig {
		t.Errorf("an identity was written: %s", r.stdout)
	}
	r := logIn(ownerEmail, 3)
	if r.code != 0 || !strings.Contains(r.stderr, "Confirm: "+a.URL+"/trust/") ||
		!strings.Contains(r.stderr, "waiting 10m at most") || !strings.Contains(r.stderr, "log in with your SSH key: vogt login "+ownerEmail+" --idp "+a.URL+" --key FILE\n") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if r := u.must("whoami"); !strings.Contains(r.stdout, ownerEmail) || strings.Contains(r.stdout, "renews") {
		t.Error(r.stdout)
	}
}

// An agent's own OS user can enrol it without being the person.
func TestAgentAddByPage(t *testing.T) {
	a, u := clienttest.New(t), newUser(t)
	_, public := u.key("elsewhere")
	a.AddPerson(ownerEmail, "", public)
	add := func(settle func(), n int) result {
		ended := make(chan result)
		go func() { ended <- u.vogt("agent", "add", "bot", "--idp", a.URL) }()
		a.AwaitChanges(n)
		settle()
		return <-ended
	}
	if r := add(a.DeclineAll, 1); r.code != exitRefused {
		t.Errorf("declined: exit code %d\n%s", r.code, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(u.home, "config", "agents", "bot")); err == nil {
		t.Error("what was made for a declined agent stays")
	}
	if r := add(func() { a.ConfirmAll(ownerEmail) }, 2); r.code != 0 || !strings.Contains(r.stderr, "Confirm: ") ||
		!strings.Contains(r.stderr, "(vogt login EMAIL --idp "+a.URL+" --key FILE), then give this command again\n") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	if r := u.vogt("run", "--agent", "bot", "--", "true"); r.code != exitUndecided {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}

func TestGrantToken(t *testing.T) {
	a, u := newOwner(t)
	id := u.ask("echo")
	if r := u.vogt("grant", "token", id, "--agent", "bot"); r.code == 0 {
		t.Error("a pending grant has a token")
	}
	a.Settle(id, grant.Approved, grant.Once)
	r := u.must("grant", "token", id, "--agent", "bot")
	if claims, err := a.Published.VerifyGrant(strings.TrimSpace(r.stdout), a.URL, time.Now()); err != nil || claims.GrantID != id {
		t.Errorf("%+v, %v", claims, err)
	}
	if r := u.vogt("grant", "token", id); r.code != exitRefused {
		t.Errorf("the owner uses the agent's permission: exit code %d", r.code)
	}
}

func TestNotifyTest(t *testing.T) {
	u := newUser(t)
	config := filepath.Join(u.home, "config")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	vogt := program(t, "vogt") // it starts itself again
	for command, want := range map[string]int{
		`["sh", "-c", "test \"$VOGT_RISK\" = low"]`: 0, `["sh", "-c", "echo no >&2; exit 3"]`: 1, `["/nosuch"]`: exitCannotRun, `[]`: exitConfig,
		`["sh", "-c", "test \"$VOGT_OWNER $VOGT_APPROVE_URL\" = \"you http://vogt.localhost:8648/grants/$VOGT_GRANT_ID\""]`: 0,
	} {
		text := "[notify]\ncommand = " + command + "\n"
		if err := os.WriteFile(filepath.Join(config, "vogtd.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(vogt, "notify", "--test")
		cmd.Env = []string{"VOGT_HOME=" + u.home, "HOME=" + u.home, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: exit code %d, want %d (%v)\n%s", command, got, want, err, out)
		}
		said := map[int]string{1: "exited with 3", exitConfig: filepath.Join(config, "vogtd.toml") + `, under [notify]: command = ["/path/to/program"]`}[want]
		if want != exitConfig && !strings.Contains(string(out), "vogt down; vogt up") || !strings.Contains(string(out), said) {
			t.Errorf("%s: it said:\n%s", command, out)
		}
	}
}

// A test speaks of the authority that is configured and of its owner.
func TestNotifyTestNamesTheAuthority(t *testing.T) {
	a, u := newOwner(t)
	text := fmt.Sprintf("[notify]\ncommand = [\"sh\", \"-c\", 'test \"$VOGT_OWNER $VOGT_APPROVE_URL\" = \"%s %s/grants/$VOGT_GRANT_ID\"']\n", ownerEmail, a.URL)
	if err := os.WriteFile(filepath.Join(u.home, "config", "vogtd.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program(t, "vogt"), "notify", "--test")
	cmd.Env = []string{"VOGT_HOME=" + u.home, "HOME=" + u.home, "PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Nobody waits for a confirmation that nobody can give.
func TestAuthorityWithoutOwner(t *testing.T) {
	a, u := clienttest.New(t), newUser(t)
	a.Lie = func(path string, _ http.Header, answer map[string]any) {
		if path == "/api/health" {
			answer["set_up"] = false
		}
	}
	for _, args := range [][]string{
		{"login", ownerEmail, "--idp", a.URL, "--browser"}, {"agent", "add", "bot", "--idp", a.URL},
	} {
		if r := u.vogt(args...); r.code != exitConfig || !strings.Contains(r.stderr, "nobody owns this authority yet; run: vogt up") {
			t.Errorf("%q: exit code %d\n%s", args, r.code, r.stderr)
		}
	}
}

// An export that is older than what is remembered cannot be compared with that.
func TestVerifyOfAnOlderExport(t *testing.T) {
	a, u := newOwner(t)
	file := filepath.Join(t.TempDir(), "log.jsonl")
	u.must("audit", "export", file)
	a.Write("more")
	u.must("grant", "list")
	a.Stop()
	r := u.must("audit", "verify", file)
	if want := fmt.Sprintf("the export has %d records and this machine remembers %d,", a.Size()-1, a.Size()); !strings.Contains(r.stderr, want) {
		t.Errorf("it said:\n%s%s", r.stdout, r.stderr)
	}
}

// A name that is taken at the authority is no reason to try again.
func TestAgentNameIsTaken(t *testing.T) {
	a, u := newOwner(t)
	a.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/trust" {
			return false
		}
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"title":"An agent with this name already exists","status":409}`)
		return true
	}
	r := u.vogt("agent", "add", "other")
	if r.code != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, "vogt agent rotate-key other; or use another name") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}

// A receipt with any part that does not fit proves nothing, and says which.
func TestReceiptThatDoesNotHold(t *testing.T) {
	a, u := newOwner(t)
	id := u.ask("echo", "hello")
	u.must("grant", "approve", id)
	receipt := func(change func(answer map[string]any)) func(string, http.Header, map[string]any) {
		return func(path string, _ http.Header, answer map[string]any) {
			if strings.HasSuffix(path, "/receipt") {
				change(answer)
			}
		}
	}
	set := func(name string, value any) func(string, http.Header, map[string]any) {
		return receipt(func(answer map[string]any) { answer[name] = value })
	}
	for part, lie := range map[string]func(string, http.Header, map[string]any){
		"grant":      receipt(func(answer map[string]any) { answer["statement"].(map[string]any)["grant_id"] = "other" }),
		"digest":     receipt(func(answer map[string]any) { answer["statement"].(map[string]any)["argv"] = []string{"echo", "evil"} }),
		"checkpoint": set("checkpoint", "forged"),
		"inclusion":  receipt(func(answer map[string]any) { answer["proof"].(map[string]any)["hashes"] = []string{} }),
		"record":     set("decided_by", "mallory@example.com"),
		"record ":    set("strength", "passkey"),
		"record  ":   set("evidence", map[string]string{"kind": "sshsig"}),
		"record   ":  set("record", 10_000),
		"inclusion ": func(path string, _ http.Header, answer map[string]any) {
			if strings.HasSuffix(path, "/records") {
				for _, r := range answer["records"].([]any) {
					r.(map[string]any)["time"] = 1
				}
			}
		},
	} {
		a.Lie = lie
		r := u.vogt("grant", "receipt", id)
		want := "vogt: the receipt of " + id + " does not hold: " + strings.TrimSpace(part) + ": "
		if r.code != exitMismatch || r.stdout != "" || !strings.HasPrefix(r.stderr, want) {
			t.Errorf("%s: exit code %d\n%s%s", part, r.code, r.stdout, r.stderr)
		}
		if r := u.vogt("grant", "receipt", id, "--json"); r.code != exitMismatch || !strings.Contains(r.stdout, `"ok":false`) {
			t.Errorf("%s: exit code %d\n%s", part, r.code, r.stdout)
		}
	}
	a.Lie = nil
	u.must("grant", "receipt", id)
}

// One line of the log shows a command as a shell would read it.
func TestSummaryQuotes(t *testing.T) {
	e := &env{}
	got := e.summary(api.AuditRecord{Body: []byte(`{"command":["echo","two words","$HOME","--password=hunter2hunter2"]}`)})
	if want := `command=echo 'two words' '$HOME' '--password=[masked]'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Nothing is begun where nobody can be asked.
func TestDemoWithoutTerminal(t *testing.T) {
	cmd := exec.Command(program(t, "vogt"), "demo")
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no controlling terminal
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != exitUsage || out.Len() > 0 || !strings.Contains(errs.String(), "--yes") {
		t.Errorf("%v\n%s%s", err, &out, &errs)
	}
}

func TestCounts(t *testing.T) {
	e := &env{}
	for n, want := range map[int64]string{0: "0 agents", 1: "1 agent", 2: "2 agents"} {
		if got := e.count(n, messages.OneAgent, messages.ManyAgents); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReadKeys(t *testing.T) {
	for keys, want := range map[string]string{
		"word\r": "word", "word\n": "word", "a\x7fb\n": "b", "\x7f\x08x\n": "x", "abc\x15d\n": "d", "aü\x7f\n": "a", "a\tb\n": "a\tb", "\n": "",
	} {
		if got, err := readKeys(strings.NewReader(keys)); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", keys, got, err)
		}
	}
	for _, keys := range []string{"", "word", "word\x03", "word\x04", strings.Repeat("a", maxSecret+1)} {
		if got, err := readKeys(strings.NewReader(keys)); err == nil {
			t.Errorf("%.20q is %q", keys, got)
		}
	}
}

// Following prints what comes, until it is interrupted.
func TestAuditTailFollows(t *testing.T) {
	a, u := newOwner(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	u.ctx = ctx
	asked := make(chan struct{}, 100)
	a.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("after") {
			asked <- struct{}{}
		}
		return false
	}
	ended := make(chan result)
	go func() { ended <- u.vogt("audit", "tail", "-f", "-n", "1") }()
	<-asked
	a.Write("fresh-record")
	<-asked
	<-asked // the answer to the one before has been printed
	cancel(errors.New("interrupt"))
	if r := <-ended; r.code != exitInterrupted || strings.Count(r.stdout, "fresh-record") != 1 {
		t.Errorf("%+v", r)
	}
}

func TestWitness(t *testing.T) {
	_, u := newOwner(t)
	ctx, cancel := context.WithCancel(context.Background())
	u.ctx = ctx
	key := filepath.Join(u.home, "witness-key")
	ended := make(chan result)
	go func() {
		ended <- u.vogt("audit", "witness", "--listen", "127.0.0.1:0", "--key", key, "--name", "w.example/x")
	}()
	limit := time.Now().Add(20 * time.Second)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for _, err := os.Stat(key); err != nil; _, err = os.Stat(key) {
		if time.Now().After(limit) {
			t.Fatal("no key was made")
		}
		<-look.C
	}
	cancel()
	if r := <-ended; r.code != 0 || !strings.Contains(r.stdout, "verifier key: w.example/x+") {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	again, err := witnessKey(key, "ignored", rand.Reader)
	if err != nil || again.String() != "w.example/x" {
		t.Errorf("%v, %v", again, err)
	}
	if err := os.WriteFile(key, []byte("rubbish\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := witnessKey(key, "x", rand.Reader); err == nil {
		t.Error("rubbish is a key")
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "5m": 5 * time.Minute, "1h": time.Hour, "7d": 7 * day, "1h30m": 90 * time.Minute, "90s": 90 * time.Second,
	} {
		got, err := parseDuration(text)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
		if again, err := parseDuration(formatDuration(got)); err != nil || again != got {
			t.Errorf("%s is written %s", got, formatDuration(got))
		}
	}
	for got, want := range map[string]string{
		formatDuration(15 * time.Minute): "15m", formatDuration(time.Hour): "1h", formatDuration(48 * time.Hour): "2d",
		formatDuration(10 * time.Second): "10s", formatDuration(25 * time.Hour): "25h", formatDuration(0): "0s",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, text := range []string{"", "0", "0s", "-1h", "5", "1.5s", "100ms", "1w", "d", "-1d", "1.5d", "99999999d", "1h d"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

// Every kind of error has an exit code of the contract.
func TestExitCodes(t *testing.T) {
	e := &env{}
	known := map[int]bool{
		exitUsage: true, exitUnavailable: true, exitInternal: true, exitSpent: true, exitRefused: true, exitConfig: true, exitCannotRun: true, 127: true,
	}
	for k := client.Malformed; k <= client.NotConfirmed; k++ {
		if f := e.explain(&commandError{&client.Error{Kind: k}}); !known[f.code] || f.title == "" {
			t.Errorf("client kind %q: %+v", k, f)
		}
	}
	for k := execution.Unexecutable; k <= execution.Reparsed; k++ {
		if f := e.explain(&commandError{&execution.Error{Kind: k}}); !known[f.code] {
			t.Errorf("execution kind %d: %+v", k, f)
		}
	}
	for err, want := range map[error]int{
		errors.New("unknown flag"):                                            exitUsage, // cobra's own
		&commandError{errors.New("bug")}:                                      exitInternal,
		&commandError{withCode(42, nil)}:                                      42,
		&commandError{withCode(exitConfig, &client.Error{Kind: client.Busy})}: exitConfig,
		&commandError{&flow.MismatchError{What: "folder"}}:                    exitCannotRun,
		&commandError{fmt.Errorf("x: %w", &client.Error{Kind: client.Spent})}: exitSpent,
	} {
		if f := e.explain(err); f.code != want {
			t.Errorf("%v: exit code %d, want %d", err, f.code, want)
		}
	}
	for s, want := range map[grant.Status]int{
		grant.Approved: 0, grant.Pending: exitUndecided, grant.Used: exitSpent, grant.Expired: exitSpent,
		grant.Denied: exitRefused, grant.Revoked: exitRefused, "": exitRefused, "other": exitRefused,
	} {
		if got := statusCode(s); got != want {
			t.Errorf("%s: %d, want %d", s, got, want)
		}
	}
}

// A statement's every field must be visible to whoever signs it.
func TestStatementIsShownWhole(t *testing.T) {
	n := uint64(7777)
	text := func(s string) *string { return &s }
	file := func(s string) *statement.File {
		return &statement.File{Path: &s, SHA256: text("sha-of-" + s), Device: &n, Inode: &n, Size: &n}
	}
	st := statement.Statement{
		Purpose: statement.Run, Issuer: "the-issuer", Epoch: 1, GrantID: "the-grant", Requester: text("the-requester"), Owner: text("the-owner"),
		Host: text("the-host"), CallerUID: &n, RunAsUID: &n, RunAsName: text("the-user"), RunAsGroups: []string{"the-group"}, GrantType: "the-type",
		NotBefore: &n, Expiry: &n, Uses: &n, Executable: file("the-program"), Interpreters: []statement.File{*file("the-interpreter")},
		Argv: []string{"the-arg"}, Cwd: file("the-folder"), Environment: []string{"THE=variable"}, Umask: &n, Limits: []string{"the-limit"},
		Stdin: text("the-input"), Inputs: []statement.File{*file("the-operand")}, Confinement: text("the-profile"), NetworkMode: text("the-network"),
		Catalog: text("the-catalog"), Reason: text("the-reason"), Hints: []string{"the-hint"},
	}
	var b strings.Builder
	e := &env{}
	if err := e.showStatement(&b, st, "the-risk"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"run", "the-issuer", "the-grant", "the-requester", "the-owner", "the-host", "the-user", "the-group", "the-type", "the-program",
		"sha-of-the-program", "the-interpreter", "the-arg", "the-folder", "THE=variable", "the-limit", "the-input", "the-operand",
		"sha-of-the-operand", "the-profile", "the-network", "the-catalog", "the-reason", "the-hint", "the-risk",
		"Caller uid:  7777", "Run as uid:  7777", "Umask:       7777", "Uses:        7777", "inode 7777", "7777 bytes", "From: ", "Until: ",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not shown:\n%s", want, b.String())
		}
	}
}

// Every command says in one line what it does, and none is left without help.
func TestEveryCommandIsDescribed(t *testing.T) {
	root := newRoot(&env{})
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Short == "" && !c.Hidden {
			t.Errorf("%s has no description", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
}
