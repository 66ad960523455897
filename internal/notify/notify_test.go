package notify

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// TestMain makes the test binary what vogtd is: a program that starts itself
// again as a supervisor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Subcommand {
		os.Exit(Supervise(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestNewRefuses(t *testing.T) {
	good := Config{Command: []string{"true"}, Limit: time.Second, Supervisor: []string{"x"}}
	tests := []struct {
		name   string
		change func(*Config)
		want   string // part of the error; empty: it is accepted
	}{
		{"good", func(*Config) {}, ""},
		{"absolute path", func(c *Config) { c.Command = []string{"/bin/true", "a b", "$x"} }, ""},
		{"nothing to run", func(c *Config) { *c = Config{} }, ""},
		{"relative path", func(c *Config) { c.Command[0] = "bin/true" }, `"bin/true" is neither the name of a program nor an absolute path; change notify.command`},
		{"path from here", func(c *Config) { c.Command[0] = "./true" }, "neither"},
		{"no program", func(c *Config) { c.Command[0] = "" }, "neither"},
		{"zero byte", func(c *Config) { c.Command = append(c.Command, "a\x00b") }, "zero byte"},
		{"no limit", func(c *Config) { c.Limit = 0 }, "set notify.limit"},
		{"no supervisor", func(c *Config) { c.Supervisor = nil }, "supervise"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := good
			c.Command = append([]string(nil), good.Command...)
			tt.change(&c)
			_, err := New(c)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestWithoutCommand(t *testing.T) {
	n, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * queueLength {
		n.Send(Card{}) // must not fill anything
	}
	if len(n.queue) != 0 {
		t.Errorf("%d cards wait for nothing", len(n.queue))
	}
	if err := n.Detach(Card{}); err != nil {
		t.Error(err)
	}
	if _, err := n.Test(t.Context(), Card{}); err == nil || !strings.Contains(err.Error(), "set notify.command") {
		t.Errorf("got %v", err)
	}
}

// The authority must never wait for its notifications.
func TestSendDropsWhenFull(t *testing.T) {
	var log syncBuffer
	n, err := New(Config{Command: []string{"true"}, Limit: time.Second, Supervisor: []string{"x"}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range queueLength { // and nobody runs them
		n.Send(Card{GrantID: "kept"})
	}
	if log.String() != "" {
		t.Errorf("logged before the queue was full: %s", log.String())
	}
	n.Send(Card{GrantID: "g-dropped"})
	if got := log.String(); !strings.Contains(got, "dropped") || !strings.Contains(got, "grant=g-dropped") || strings.Contains(got, "kept") {
		t.Errorf("log: %s", got)
	}
}

func TestEnvironment(t *testing.T) {
	card := Card{GrantID: "g1", ApproveURL: "http://vogt.localhost:8648/g/g1", Agent: "builder", Owner: "a@b", Risk: "high", Summary: "line\nbreak \u202e", Command: "secret-command"}
	outer := map[string]string{"PATH": "/bin", "HOME": "/home/a", "LANG": "de_DE.UTF-8", "LD_PRELOAD": "/evil.so", "BASH_ENV": "/evil", "VOGT_TOKEN": "t", "SSH_AUTH_SOCK": "/s", "VOGT_COMMAND": "from outside"}
	n := &Notifier{config: Config{Getenv: func(name string) string { return outer[name] }}}
	want := "PATH=/bin HOME=/home/a LANG=de_DE.UTF-8 VOGT_GRANT_ID=g1 VOGT_APPROVE_URL=http://vogt.localhost:8648/g/g1 " +
		"VOGT_AGENT=builder VOGT_OWNER=a@b VOGT_RISK=high VOGT_SUMMARY=line<U+000A>break <U+202E>"
	if got := strings.Join(n.environment(card), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	n.config.ShowCommand = true
	if got := strings.Join(n.environment(card), " "); got != want+" VOGT_COMMAND=secret-command" {
		t.Errorf("with the command: %s", got)
	}
	n.config.Getenv = nil
	if got := strings.Join(n.environment(Card{}), " "); !strings.HasPrefix(got, "VOGT_GRANT_ID= ") {
		t.Errorf("with nothing inherited: %s", got)
	}
}

func TestShorten(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("a", maxValue), strings.Repeat("ä", maxValue), "a" + strings.Repeat("€", maxValue), strings.Repeat("\x80", 2*maxValue)} {
		got := shorten(s)
		if len(s) <= maxValue && got != s {
			t.Errorf("%d bytes were changed", len(s))
		}
		if len(got) > maxValue+len("…") || !strings.HasPrefix(s, strings.TrimSuffix(got, "…")) || utf8.ValidString(s) != utf8.ValidString(got) {
			t.Errorf("%.20q of %d bytes became %d bytes: %.20q", s, len(s), len(got), got)
		}
	}
}

func TestResultString(t *testing.T) {
	tests := []struct {
		result Result
		ok     bool
		want   string
	}{
		{Result{Duration: 12 * time.Millisecond}, true, "exit code 0 after 12ms"},
		{Result{Exit: 3, Duration: time.Second}, false, "exit code 3 after 1s"},
		{Result{TimedOut: true, Duration: 10 * time.Second}, false, "killed after 10s"},
		{Result{Problem: "not there"}, false, "not there"},
	}
	for _, tt := range tests {
		if tt.result.OK() != tt.ok || tt.result.String() != tt.want {
			t.Errorf("%+v: OK %v, %q", tt.result, tt.result.OK(), tt.result)
		}
	}
}

func TestSuperviseIsNotForPeople(t *testing.T) {
	for _, in := range []string{"", "hello", "{}", `{"command":["true"]}`, `{"command":[],"limit":1}`, `{"command":["true"],"limit":-1}`, `{"command":["true"],"limit":1,"more":1}`} {
		var out, stderr bytes.Buffer
		if code := Supervise(strings.NewReader(in), &out, &stderr); code != 64 || out.Len() > 0 || !strings.Contains(stderr.String(), "--test") {
			t.Errorf("%q: exit code %d, %q, %q", in, code, &out, &stderr)
		}
	}
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
