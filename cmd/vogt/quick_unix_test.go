//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	cdpwebauthn "github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/creack/pty"

	"vogt/internal/quickstart"
)

// machine is a computer on which vogt and vogtd were just installed: a folder
// for everything of one user, whose path is short enough for a socket.
type machine struct {
	t    *testing.T
	bin  string
	home string
}

// TestQuickStart runs the real binaries as a newcomer, a script and a careless
// user do.
func TestQuickStart(t *testing.T) {
	bin := t.TempDir()
	out, err := exec.Command("go", "build", "-o", bin+"/", "vogt/cmd/vogt", "vogt/cmd/vogtd").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, test := range []struct {
		name string
		run  func(*machine)
	}{
		{"newcomer", newcomer}, {"headless", headless}, {"no terminal", noTerminal}, {"wrong owner key", wrongOwnerKey}, {"foreground", foreground},
		{"demo", demoYes}, {"demo denied", demoDenied}, {"demo interrupted", demoInterrupted}, {"demo without terminal", demoWithoutTerminal},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(newMachine(t, bin))
		})
	}
}

func newMachine(t *testing.T, bin string) *machine {
	home, err := os.MkdirTemp("", "vogt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := quickstart.Down(context.Background(), filepath.Join(home, "data")); err != nil {
			t.Error(err)
		}
		os.RemoveAll(home)
	})
	return &machine{t: t, bin: bin, home: home}
}

// command prepares a call of vogt, without a terminal.
func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(m.bin, "vogt"), args...)
	cmd.Env = []string{"VOGT_HOME=" + m.home, "HOME=" + m.home, "PATH=" + m.bin + ":" + os.Getenv("PATH"), "LANG=C", "TMPDIR=" + m.tmp()}
	cmd.Dir = m.home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// tmp is where commands of this machine put temporary files.
func (m *machine) tmp() string {
	dir := filepath.Join(m.home, "tmp")
	os.Mkdir(dir, 0o700) // it may be there
	return dir
}

// vogt runs a call to its end.
func (m *machine) vogt(want int, args ...string) (stdout, stderr string) {
	m.t.Helper()
	cmd := m.command(args...)
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		m.t.Fatalf("vogt %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, want, o.String(), e.String())
	}
	return o.String(), e.String()
}

// sitting is a call of vogt with a person at its terminal.
type sitting struct {
	m      *machine
	cmd    *exec.Cmd
	screen *os.File
	shown  chan string // what comes up on the screen
	seen   string
	stdout strings.Builder
}

// sit starts a call on a controlling terminal, with standard output elsewhere.
func (m *machine) sit(args ...string) *sitting {
	m.t.Helper()
	s := &sitting{m: m, cmd: m.command(args...)}
	screen, tty, err := pty.Open()
	if err != nil {
		m.t.Fatal(err)
	}
	s.screen = screen
	s.cmd.Stdin, s.cmd.Stderr, s.cmd.Stdout = tty, tty, &s.stdout
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	tty.Close()
	s.shown = make(chan string, 64)
	go func() { // ends with the last process on the terminal
		defer close(s.shown)
		buf := make([]byte, 4096)
		for {
			n, err := screen.Read(buf)
			s.shown <- string(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	m.t.Cleanup(func() {
		s.cmd.Process.Kill()
		for range s.shown {
		}
		screen.Close()
	})
	return s
}

// see waits until pattern has come up on the screen, and returns its first
// group.
func (s *sitting) see(pattern string) string {
	s.m.t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(30 * time.Second)
	for {
		if loc := re.FindStringSubmatchIndex(s.seen); loc != nil {
			found := s.seen[loc[0]:loc[1]]
			if len(loc) > 2 {
				found = s.seen[loc[2]:loc[3]]
			}
			s.seen = s.seen[loc[1]:]
			return found
		}
		select {
		case text, ok := <-s.shown:
			if !ok {
				s.m.t.Fatalf("vogt ended before %q; the screen shows %q", pattern, s.seen)
			}
			s.seen += text
		case <-late:
			s.m.t.Fatalf("%q does not come up; the screen shows %q", pattern, s.seen)
		}
	}
}

func (s *sitting) say(text string) {
	s.m.t.Helper()
	if _, err := io.WriteString(s.screen, text); err != nil {
		s.m.t.Fatal(err)
	}
}

// end waits for the end of the call.
func (s *sitting) end(want int) {
	s.m.t.Helper()
	for text := range s.shown {
		s.seen += text
	}
	s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != want {
		s.m.t.Fatalf("exit code %d, want %d; the screen showed %q", got, want, s.seen)
	}
}

// person is a browser with a passkey.
type person struct {
	t   *testing.T
	ctx context.Context
}

func newPerson(t *testing.T) *person {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium is installed (Debian: apt install chromium)")
	}
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("lang", "en"))
	ctx, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancelContext := chromedp.NewContext(ctx)
	ctx, cancelTimeout := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(func() { cancelTimeout(); cancelContext(); cancelAllocator() })
	p := &person{t, ctx}
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, cdpwebauthn.Enable, cdpwebauthn.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, cdpwebauthn.AddVirtualAuthenticator, cdpwebauthn.AddVirtualAuthenticatorParams{
			Options: &cdpwebauthn.VirtualAuthenticatorOptions{
				Protocol: cdpwebauthn.AuthenticatorProtocolCtap2, Ctap2version: cdpwebauthn.Ctap2versionCtap21,
				Transport: cdpwebauthn.AuthenticatorTransportInternal, HasResidentKey: true,
				HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
			},
		})
		return err
	}))
	return p
}

func (p *person) do(action chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, action); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) visit(url string) { p.t.Helper(); p.do(chromedp.Navigate(url)) }

// script runs a promise of a text in the page.
func (p *person) script(text string) string {
	p.t.Helper()
	result, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](text, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%v in %s", err, text)
	}
	return result
}

// when runs code on the first element that matches, as soon as there is one.
func (p *person) when(selector, code string) string {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(30 * time.Second)
	for {
		found := p.script(fmt.Sprintf(`(async () => { const e = document.querySelector(%q); if (!e) return "\u0000"; return String(await (%s)(e)) })()`, selector, code))
		if found != "\x00" {
			return found
		}
		select {
		case <-tick.C:
		case <-late:
			p.t.Fatalf("%s does not appear; the page says %q", selector, p.script(`(async () => document.body.innerText)()`))
		}
	}
}

// press clicks a button once it can be pressed.
func (p *person) press(selector string) {
	p.t.Helper()
	selector += ":not([disabled]):not([aria-disabled=true])"
	p.when(selector, `e => "it can"`)
	p.do(chromedp.Click(selector, chromedp.NodeVisible))
}

// fill types into a field.
func (p *person) fill(selector, text string) {
	p.t.Helper()
	p.when(selector, `e => "it is there"`)
	p.do(chromedp.SendKeys(selector, text))
}

// newcomer is the first minutes of somebody with a fresh machine: one page with
// a passkey, an agent, and the first approved command has run.
func newcomer(m *machine) {
	p := newPerson(m.t)
	s := m.sit("up", "--listen", "127.0.0.1:0")
	link := s.see(`(http://vogt\.localhost:\d+/setup\S+)`)
	p.visit(link)
	digits := p.when(".digits", `e => e.textContent.replace(/\D/g, "")`)
	s.see("four digits")
	s.say(digits + "\n")
	p.fill("#name", "Alice")
	p.fill("#email", "alice@example.org")
	p.press("form[data-owner] button")
	p.when(`a[href="/agents"]`, `e => "signed in"`) // the page goes on by itself
	s.see("You are alice@example.org")
	s.see("Next:")
	s.end(0)
	if out := s.stdout.String(); !regexp.MustCompile(`^http://127\.0\.0\.1:\d+\n$`).MatchString(out) {
		m.t.Errorf("standard output is not the one address: %q", out)
	}

	add := m.sit("agent", "add", "claude")
	p.visit(add.see(`Confirm: (\S+)`))
	p.press(`form[data-trust] button[data-answer=allow]`)
	add.end(0)
	p.when("#outcome", `e => "told"`)

	ask := m.sit("run", "--agent", "claude", "--wait", "--", "printf", `first command\n`)
	card := ask.see(`Approve: (\S+)`)
	p.stolenCookie(card)
	p.visit(card)
	p.press(`button[data-answer=allow]`)
	ask.end(0)
	if got := ask.stdout.String(); got != "first command\n" {
		m.t.Fatalf("the command said %q", got)
	}

	out, _ := m.vogt(0, "doctor", "--json")
	var report struct {
		OK          bool
		Enforcement string
		Checks      []struct{ Name, State string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		m.t.Fatal(err)
	}
	if !report.OK || report.Enforcement != "advisory" || len(report.Checks) < 20 {
		m.t.Errorf("doctor: %s", out)
	}
	for _, c := range report.Checks {
		if c.Name == "log" && c.State != "in force" {
			m.t.Errorf("the log is not compared: %s", out)
		}
	}
	m.vogt(0, "down")
	m.vogt(1, "doctor")
}

// stolenCookie uses the session cookie outside the browser, as a program on
// another port of the same host could: it reads, and it does not decide.
func (p *person) stolenCookie(card string) {
	p.t.Helper()
	u, err := url.Parse(card)
	if err != nil {
		p.t.Fatal(err)
	}
	origin := u.Scheme + "://" + u.Host
	got, err := chromedp.Run(p.ctx, func(ctx context.Context, target *chromedp.Target) (network.GetCookiesResult, error) {
		return cdp.Call(ctx, target, network.GetCookies, network.GetCookiesParams{URLs: []string{origin}})
	})
	if err != nil {
		p.t.Fatal(err)
	}
	use := func(method, path string) int {
		req, err := http.NewRequestWithContext(p.t.Context(), method, "http://127.0.0.1:"+u.Port()+path, strings.NewReader(`{"answer":"allow"}`))
		if err != nil {
			p.t.Fatal(err)
		}
		req.Host = u.Host
		req.Header.Set("Origin", origin)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		req.Header.Set("Content-Type", "application/json")
		for _, c := range got.Cookies {
			req.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := client.Do(req)
		if err != nil {
			p.t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if status := use("GET", u.Path); status != http.StatusOK {
		p.t.Errorf("the cookie does not even read: status %d", status)
	}
	if status := use("POST", "/p"+u.Path+"/decision"); status != http.StatusForbidden {
		p.t.Errorf("the cookie alone decides: status %d", status)
	}
}

// ownerKey makes an SSH key and returns its path.
func (m *machine) ownerKey() string {
	m.t.Helper()
	path := filepath.Join(m.home, "owner")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "owner", "-f", path).CombinedOutput(); err != nil {
		m.t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	return path
}

// headless is the same for a script.
func headless(m *machine) {
	key := m.ownerKey()
	up := []string{"up", "--headless", "--listen", "127.0.0.1:0", "--owner", "alice@example.org", "--owner-key", key + ".pub"}
	first, _ := m.vogt(0, up...)
	again, said := m.vogt(0, up...)
	if first != again || !strings.Contains(said, "runs already") {
		m.t.Errorf("%q, then %q and %q", first, again, said)
	}
	out, _ := m.vogt(0, append(up, "--json")...)
	var r quickstart.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.State != "running" || r.Issuer+"\n" != first {
		m.t.Errorf("%s, %v", out, err)
	}
	_, said = m.vogt(78, "up", "--bearer-decisions", "high")
	if !strings.Contains(said, "vogt down && vogt up --bearer-decisions high") && !strings.Contains(said, "--listen") {
		m.t.Errorf("other settings: %q", said)
	}
	m.vogt(0, "login", "alice@example.org", "--key", key)
	m.vogt(0, "agent", "add", "claude")
	m.vogt(75, "run", "--agent", "claude", "--", "true")
	m.vogt(0, "down")
	if _, said := m.vogt(0, "down"); !strings.Contains(said, "No authority runs") {
		m.t.Errorf("down again: %q", said)
	}
	if back, _ := m.vogt(0, "up"); back != first {
		m.t.Errorf("it comes back at %q, not at %q", back, first)
	}
}

func noTerminal(m *machine) {
	for _, args := range [][]string{{"up", "--listen", "127.0.0.1:0"}, {"up", "--listen", "127.0.0.1:0", "--headless"}} {
		out, said := m.vogt(78, args...)
		if out != "" || !strings.Contains(said, "no --owner-key") {
			m.t.Errorf("%v: %q, %q", args, out, said)
		}
		if _, said := m.vogt(0, "down"); !strings.Contains(said, "No authority runs") {
			m.t.Errorf("%v leaves an authority without owner running: %q", args, said)
		}
	}
}

func wrongOwnerKey(m *machine) {
	key := m.ownerKey()
	for file, want := range map[string]string{key: "private key", "/dev/null": "--owner-key", key + ".none": "no such file"} {
		if _, said := m.vogt(78, "up", "--headless", "--owner", "alice@example.org", "--owner-key", file); !strings.Contains(said, want) {
			m.t.Errorf("%s: %q", file, said)
		}
	}
	for _, args := range [][]string{
		{"up", "--headless", "--owner", "alice@example.org"},
		{"up", "--owner", "alice@example.org", "--owner-key", key + ".pub"},
	} {
		m.vogt(64, args...)
	}
}

// foreground: what is attached to a terminal ends with Ctrl-C and with the
// terminal.
func foreground(m *machine) {
	key := m.ownerKey()
	for what, end := range map[string]func(*sitting){
		"Ctrl-C":          func(s *sitting) { s.say("\x03") },
		"the terminal":    func(s *sitting) { s.cmd.Process.Signal(syscall.SIGHUP) },
		"a polite signal": func(s *sitting) { s.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		s := m.sit("up", "--foreground", "--headless", "--listen", "127.0.0.1:0", "--owner", "alice@example.org", "--owner-key", key+".pub")
		s.see("The authority runs")
		s.see("Owner:")
		end(s)
		s.end(0)
		if _, said := m.vogt(0, "down"); !strings.Contains(said, "No authority runs") {
			m.t.Errorf("%s: the authority outlives it: %q", what, said)
		}
	}
}

// nothingLeft demands that a demonstration has removed everything.
func (m *machine) nothingLeft() {
	m.t.Helper()
	left, err := os.ReadDir(m.tmp())
	if err != nil {
		m.t.Fatal(err)
	}
	for _, entry := range left {
		m.t.Errorf("left behind: %s", entry.Name())
	}
}

func demoYes(m *machine) {
	out, _ := m.vogt(0, "demo", "--yes")
	for _, want := range []string{"exit code 75", "hello from an agent", "exit code 76", "record", "exit code 1"} {
		if !strings.Contains(out, want) {
			m.t.Errorf("the tour lacks %q:\n%s", want, out)
		}
	}
	m.nothingLeft()
	out, _ = m.vogt(0, "demo", "--yes", "--json")
	var answer struct{ OK bool }
	if err := json.Unmarshal([]byte(out), &answer); err != nil || !answer.OK {
		m.t.Errorf("%q, %v", out, err)
	}
}

func demoDenied(m *machine) {
	s := m.sit("demo")
	s.see(`\[y/N\]`)
	s.say("no\n")
	s.end(0)
	if out := s.stdout.String(); !strings.Contains(out, "not today") || strings.Contains(out, "| hello from an agent") {
		m.t.Errorf("after a no:\n%s", out)
	}
	m.nothingLeft()
}

func demoInterrupted(m *machine) {
	s := m.sit("demo")
	s.see(`\[y/N\]`)
	s.say("\x03") // Ctrl-C
	s.end(130)
	m.nothingLeft()
}

func demoWithoutTerminal(m *machine) {
	if _, said := m.vogt(64, "demo"); !strings.Contains(said, "--yes") {
		m.t.Errorf("%q", said)
	}
	m.nothingLeft()
}
