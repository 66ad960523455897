//go:build unix

package quickstart

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"vogt/internal/api"
	"vogt/internal/config"
)

// page is the browser's side of the set-up.
func (f *fakeAuthority) set(state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = state
}

func (f *fakeAuthority) finish() {
	os.WriteFile(f.ownerFile(), []byte("alice@example.org"), 0o600)
	f.set("done")
}

// screen is a terminal of which the test is the person: what is written to it
// is read from see, what say gets is typed.
type screen struct {
	t      *testing.T
	master *os.File
	seen   string
}

// lineTerminal asks as the controlling terminal does, on any terminal.
type lineTerminal struct{ *os.File }

func (l lineTerminal) Prompt(ctx context.Context, question string) (string, error) {
	fmt.Fprint(l, question)
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // ends with the line, or when the test closes the terminal
		line, err := bufio.NewReader(l).ReadString('\n')
		got <- answer{strings.TrimSuffix(line, "\n"), err}
	}()
	select {
	case a := <-got:
		return a.line, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func newScreen(t *testing.T) (*screen, *os.File) {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close(); tty.Close() })
	return &screen{t: t, master: master}, tty
}

// see reads until the pattern has appeared after what was seen before, and
// returns the match.
func (s *screen) see(pattern string) string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	s.master.SetReadDeadline(time.Now().Add(20 * time.Second))
	buf := make([]byte, 1024)
	for {
		if loc := re.FindStringIndex(s.seen); loc != nil {
			found := s.seen[loc[0]:loc[1]]
			s.seen = s.seen[loc[1]:]
			return found
		}
		n, err := s.master.Read(buf)
		if err != nil {
			s.t.Fatalf("waiting for %q on the screen: %v; seen: %q", pattern, err, s.seen)
		}
		s.seen += string(buf[:n])
	}
}

func (s *screen) say(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.master, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

// serve runs a fake authority inside the test.
func serve(t *testing.T) (*fakeAuthority, config.Paths) {
	t.Helper()
	dir, err := os.MkdirTemp("", "vogt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	paths := config.Paths{System: filepath.Join(dir, "etc"), Config: filepath.Join(dir, "config"), Data: filepath.Join(dir, "data")}
	os.MkdirAll(paths.Data, 0o700)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	control, err := net.Listen("unix", filepath.Join(paths.Data, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeAuthority{data: paths.Data, listen: l.Addr().String(), bearer: "none", logKey: "vogt+1+" + strings.Repeat("A", 43), digits: "4711"}
	servers := []*http.Server{{Handler: http.HandlerFunc(f.health)}, {Handler: f.control(func() { control.Close(); l.Close() })}}
	go servers[0].Serve(l)
	go servers[1].Serve(control)
	t.Cleanup(func() {
		for _, s := range servers {
			s.Close()
		}
	})
	return f, paths
}

func TestDialogue(t *testing.T) {
	f, paths := serve(t)
	s, tty := newScreen(t)
	o, out, errOut := options(paths)
	o.Listen = ""
	o.Terminal = func() (Terminal, error) { return lineTerminal{tty}, nil }
	result := make(chan error, 1)
	go func() { result <- Up(t.Context(), o) }()

	s.see(`http://vogt\.localhost:1/setup/secret`)
	f.set("opened")
	s.see("four digits")
	s.say("12345")
	s.see("not four digits")
	s.see("four digits")
	s.say("0000")
	s.see("2 tries left")
	s.see("four digits")
	s.say(" 4711 ")
	s.see("Confirmed")
	f.finish()
	if before := s.see(`(?s).*You are alice@example.org`); strings.Contains(before, "Confirmed") {
		t.Errorf("the confirmation was told twice: %q", before)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != f.issuer()+"\n" {
		t.Errorf("standard output: %q", got)
	}
	if strings.Contains(out.String()+errOut.String(), "secret") {
		t.Error("the link was written elsewhere than on the terminal")
	}
	for _, want := range []string{"What this set-up protects", "What it does not", "vogt agent add", "vogt run --agent NAME --wait"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("the first steps lack %q: %s", want, errOut)
		}
	}
}

func TestDialogueEnds(t *testing.T) {
	tests := []struct {
		name string
		play func(f *fakeAuthority, s *screen, cancel func())
		want string
	}{
		{"the link runs out", func(f *fakeAuthority, s *screen, _ func()) {
			s.see("secret")
			f.set("expired")
		}, "run out"},
		{"three wrong answers", func(f *fakeAuthority, s *screen, _ func()) {
			s.see("secret")
			f.set("opened")
			for _, then := range []string{"2 tries left", "1 tries left", ""} {
				s.see("four digits")
				s.say("0000")
				s.see(then)
			}
		}, "three wrong tries have voided the link. The authority runs"},
		{"the person leaves at the link", func(f *fakeAuthority, s *screen, cancel func()) {
			s.see("secret")
			cancel()
		}, "not finished"},
		{"the person leaves at the digits", func(f *fakeAuthority, s *screen, cancel func()) {
			s.see("secret")
			f.set("opened")
			s.see("four digits")
			cancel()
		}, "not finished"},
		{"end of input at the digits", func(f *fakeAuthority, s *screen, _ func()) {
			s.see("secret")
			f.set("opened")
			s.see("four digits")
			s.master.Write([]byte{4}) // ^D
		}, "input ended"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f, paths := serve(t)
			s, tty := newScreen(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o, _, _ := options(paths)
			o.Listen = ""
			o.Terminal = func() (Terminal, error) { return lineTerminal{tty}, nil }
			result := make(chan error, 1)
			go func() { result <- Up(ctx, o) }()
			test.play(f, s, cancel)
			err := <-result
			if code(err) != CodeNotYet || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "`vogt up`") {
				t.Fatalf("got %d, %v", code(err), err)
			}
			if _, err := NewControl(paths.Data).Status(t.Context()); err != nil {
				t.Errorf("the authority was stopped: %v", err)
			}
		})
	}
}

// stranger answers on a control socket like an authority.
func stranger() int {
	l, err := net.Listen("unix", os.Args[1])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	os.Chmod(os.Args[1], 0o777)
	fmt.Println("listening")
	http.Serve(l, (&fakeAuthority{listen: "127.0.0.1:1"}).control(func() {}))
	return 0
}

// TestSocketOfAnotherUser: whatever answers as another user is not believed.
func TestSocketOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to let another user listen; root itself would be believed")
	}
	_, paths := serve(t) // for a folder
	dir := filepath.Join(filepath.Dir(paths.Data), "open")
	os.Mkdir(dir, 0)
	os.Chmod(dir, 0o777)
	os.Chmod(filepath.Dir(dir), 0o755)
	cmd := exec.Command("/proc/self/exe", filepath.Join(dir, SocketName))
	cmd.Env = append(os.Environ(), roleVariable+"=stranger")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "listening\n" {
		t.Fatalf("the stranger says %q", line)
	}
	status, err := NewControl(dir).Status(t.Context())
	if err == nil || !strings.Contains(err.Error(), "uid 65534") {
		t.Fatalf("the stranger's answer is believed: %+v, %v", status, err)
	}
}

func TestControlErrors(t *testing.T) {
	dir := t.TempDir()
	c := NewControl(dir)
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("no socket: %v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, SocketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a socket that nobody listens on: %v", err)
	}
	long := NewControl(filepath.Join(dir, strings.Repeat("x", 120)))
	if _, err := long.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("a path that is too long: %v", err)
	}
}

// A problem is told once, in whole sentences, however the authority has spread
// and repeated it.
func TestRefusedInWords(t *testing.T) {
	for _, tt := range []struct {
		p    api.Problem
		want string
	}{
		{api.Problem{Title: "Those are not the digits that the page shows", Detail: "2 tries left. Read them from the page again.", Hint: "Read them from the page again."},
			"Those are not the digits that the page shows. 2 tries left. Read them from the page again"},
		{api.Problem{Title: "Taken", Detail: "Taken."}, "Taken"},
		{api.Problem{Title: "Taken", Detail: "Taken. Ask again.", Hint: "Ask again."}, "Taken. Ask again"},
		{api.Problem{Title: "Really?", Hint: "Yes."}, "Really? Yes"},
		{api.Problem{Detail: "Just this..."}, "Just this"},
		{api.Problem{Status: http.StatusGone}, "Gone"},
	} {
		if got := (&refused{tt.p}).Error(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.p, got, tt.want)
		}
	}
}
