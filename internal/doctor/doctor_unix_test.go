//go:build unix

package doctor

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"vogt/internal/api"
	"vogt/internal/quickstart"
)

// role lets the test binary examine as another user.
const role = "DOCTOR_TEST_ROLE"

// buildFolder is made and removed by TestMain; every user may look into it.
var buildFolder string

func TestMain(m *testing.M) {
	if home := os.Getenv(role); home != "" {
		os.Exit(examineHome(home))
	}
	var err error
	if buildFolder, err = os.MkdirTemp("", "vogt-build"); err == nil {
		err = os.Chmod(buildFolder, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(buildFolder)
	os.Exit(code)
}

func TestFiles(t *testing.T) {
	const key = "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n"
	tests := []struct {
		name, file, text string
		mode             os.FileMode
		want             State
		says             string
	}{
		{"as it should be", "config/auth.json", "{}", 0o600, InForce, "closed to others"},
		{"a readable token", "config/auth.json", "{}", 0o640, Failed, "auth.json is open to others (mode 0640)"},
		{"a readable token of an agent", "config/agents/claude/auth.json", "{}", 0o604, Failed, "auth.json is open to others"},
		{"a readable key", "config/agents/claude/key", key, 0o644, Failed, "key is open to others"},
		{"settings may be read", "config/vogtd.toml", "", 0o644, InForce, "closed"},
		{"settings may not be written", "config/vogtd.toml", "", 0o664, Failed, "can be changed by others"},
		{"readable data", "data/vogt.db", "", 0o644, Failed, "vogt.db is open to others"},
		{"a public key", "config/agents/claude/key.pub", "ssh-ed25519 AAAA", 0o644, InForce, "closed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := subject(t, "http://127.0.0.1:1")
			path := filepath.Join(filepath.Dir(s.Paths.Config), test.file)
			write(t, path, test.text, test.mode)
			c := find(t, s, "files")
			expect(t, c, test.want, test.says)
			if test.want == Failed && !strings.Contains(c.Fix, path) {
				t.Errorf("the command does not name the file: %s", c.Fix)
			}
		})
	}
	t.Run("the home of an agent", func(t *testing.T) {
		s := subject(t, "http://127.0.0.1:1")
		home := filepath.Join(s.Paths.Data, "agents", "demo", "home")
		write(t, filepath.Join(home, "proj", "main.go"), "", 0o644)
		if err := os.Chmod(filepath.Join(home, "proj"), 0o755); err != nil {
			t.Fatal(err)
		}
		expect(t, find(t, s, "files"), InForce, "closed")
		// What protects the files is that the folder is closed, and nothing else.
		if err := os.Chmod(home, 0o750); err != nil {
			t.Fatal(err)
		}
		c := find(t, s, "files")
		expect(t, c, Failed, "home is open to others (mode 0750), and 2 more")
		if !strings.Contains(c.Fix, home) {
			t.Errorf("the command does not name the folder: %s", c.Fix)
		}
	})
	t.Run("beside the home of an agent", func(t *testing.T) {
		s := subject(t, "http://127.0.0.1:1")
		write(t, filepath.Join(s.Paths.Data, "agents", "demo", "other", "file"), "", 0o644)
		expect(t, find(t, s, "files"), Failed, "file is open to others")
	})
	t.Run("an open data folder", func(t *testing.T) {
		s := subject(t, "http://127.0.0.1:1")
		os.Chmod(s.Paths.Data, 0o755)
		expect(t, find(t, s, "files"), Failed, "data is open to others")
	})
	t.Run("a FIFO does not hold it up", func(t *testing.T) {
		s := subject(t, "http://127.0.0.1:1")
		if err := syscall.Mkfifo(filepath.Join(s.Paths.Config, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		expect(t, find(t, s, "files"), InForce, "closed")
	})
	t.Run("another user's file", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("needs root to give a file away")
		}
		s := subject(t, "http://127.0.0.1:1")
		path := filepath.Join(s.Paths.Config, "vogtd.toml")
		write(t, path, "", 0o600)
		os.Chown(path, 12345, 12345)
		expect(t, find(t, s, "files"), Failed, "belongs to uid 12345")
	})
}

func TestTokens(t *testing.T) {
	token := func(act string, expires time.Time) string {
		text, err := json.Marshal(map[string]any{"idp": "http://127.0.0.1:1", "email": act + "@example.org", "act": act, "access_token": "t", "expires_at": expires.Unix()})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	later := now().Add(time.Hour)
	tests := []struct {
		name, auth, bearer, management string
		want                           State
		says                           string
	}{
		{"none", "", "none", "", InForce, "0 valid tokens"},
		{"an agent's", token("agent", later), "high", "", InForce, "1 valid token on disk, none of them a person's"},
		{"a person's", token("human", later), "none", "", InForce, "permits nothing"},
		{"a person's, that may decide", token("human", later), "medium", "", NotInForce, "human@example.org"},
		{"a person's, that has ended", token("human", now().Add(-time.Second)), "medium", "", InForce, "0 valid tokens"},
		{"a management token", "", "none", "secret", NotInForce, "VOGT_MANAGEMENT_TOKEN"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			url := authority(t, func(h *api.Health) { h.Bearer = test.bearer })
			s := subject(t, url)
			if test.auth != "" {
				write(t, filepath.Join(s.Paths.Config, "auth.json"), strings.ReplaceAll(test.auth, "http://127.0.0.1:1", url), 0o600)
			}
			inner := s.Getenv
			s.Getenv = func(n string) string {
				if n == "VOGT_MANAGEMENT_TOKEN" {
					return test.management
				}
				return inner(n)
			}
			c := find(t, s, "tokens")
			expect(t, c, test.want, test.says)
			if strings.Contains(c.Text+c.Fix, "secret") {
				t.Error("the finding shows the token")
			}
		})
	}
}

// keygen makes a key with the real ssh-keygen.
func keygen(t *testing.T, path, kind, passphrase string) {
	t.Helper()
	os.MkdirAll(filepath.Dir(path), 0o700)
	if out, err := exec.Command("ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
}

func TestSSHKey(t *testing.T) {
	tests := []struct {
		name, kind, passphrase string
		want                   State
		says                   string
	}{
		{"none", "", "", InForce, "no private key"},
		{"open", "ed25519", "", NotInForce, "has no passphrase"},
		{"locked", "ed25519", "correct horse", InForce, "needs a passphrase"},
		{"of another kind", "ecdsa", "", InForce, "no private key"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := subject(t, "http://127.0.0.1:1")
			path := filepath.Join(s.Home, ".ssh", "id_"+test.kind)
			if test.kind != "" {
				keygen(t, path, test.kind, test.passphrase)
			}
			c := find(t, s, "ssh-key")
			expect(t, c, test.want, test.says)
			if test.want == NotInForce && c.Fix != "ssh-keygen -p -f "+path {
				t.Errorf("fix: %s", c.Fix)
			}
		})
	}
	t.Run("the key of the login, elsewhere", func(t *testing.T) {
		s := subject(t, "http://127.0.0.1:1")
		path := filepath.Join(s.Home, "elsewhere")
		keygen(t, path, "ed25519", "")
		write(t, filepath.Join(s.Paths.Config, "auth.json"), `{"idp":"x","email":"a@b.c","act":"human","key_path":"`+path+`"}`, 0o600)
		expect(t, find(t, s, "ssh-key"), NotInForce, path)
	})
	t.Run("an agent's key has to be open", func(t *testing.T) {
		s := subject(t, "http://127.0.0.1:1")
		path := filepath.Join(s.Paths.Config, "agents", "claude", "key")
		keygen(t, path, "ed25519", "")
		write(t, filepath.Join(s.Paths.Config, "agents", "claude", "auth.json"), `{"idp":"x","email":"a@b.c","act":"agent","key_path":"`+path+`"}`, 0o600)
		expect(t, find(t, s, "ssh-key"), InForce, "no private key")
	})
}

// TestSSHAgent speaks to a real agent's protocol over a real socket.
func TestSSHAgent(t *testing.T) {
	dir, err := os.MkdirTemp("", "vogt") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "agent")
	ring := agent.NewKeyring()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			agent.ServeAgent(ring, c)
			c.Close()
		}
	}()
	s := subject(t, "http://127.0.0.1:1")
	inner := s.Getenv
	expect(t, find(t, s, "ssh-agent"), InForce, "no ssh-agent is offered")
	s.Getenv = func(n string) string {
		if n == "SSH_AUTH_SOCK" {
			return socket
		}
		return inner(n)
	}
	expect(t, find(t, s, "ssh-agent"), InForce, "no key that could sign")
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.Add(agent.AddedKey{PrivateKey: &private, Comment: "alice"}); err != nil {
		t.Fatal(err)
	}
	expect(t, find(t, s, "ssh-agent"), InPart, "alice SHA256:")
}

func TestPath(t *testing.T) {
	s := subject(t, "http://127.0.0.1:1")
	bin := filepath.Dir(s.Vogt)
	other := filepath.Join(filepath.Dir(bin), "other")
	write(t, filepath.Join(other, "vogt"), "#!/bin/sh\n", 0o755)
	noexec := filepath.Join(filepath.Dir(bin), "noexec")
	write(t, filepath.Join(noexec, "vogt"), "", 0o644)
	link := filepath.Join(filepath.Dir(bin), "link")
	os.Mkdir(link, 0o755)
	os.Symlink(s.Vogt, filepath.Join(link, "vogt"))
	tests := []struct {
		path string
		want State
		says string
	}{
		{bin, InForce, bin},
		{"/nonexistent:" + noexec + ":" + bin + ":" + other, InForce, bin},
		{link + ":" + other, InForce, link},
		{other + ":" + bin, Failed, "the first vogt on the PATH is " + other},
		{".:" + bin, Failed, "relative entry"},
		{":" + bin, Failed, "relative entry"},
		{bin + ":.", InForce, bin},
		{"/nonexistent", InPart, "not on the PATH"},
	}
	for _, test := range tests {
		s.Getenv = func(n string) string { return map[string]string{"PATH": test.path}[n] }
		expect(t, find(t, s, "path"), test.want, test.says)
	}
}

func TestBinary(t *testing.T) {
	s := subject(t, "http://127.0.0.1:1")
	bin := filepath.Dir(s.Vogt)
	expect(t, find(t, s, "binary"), NotInForce, "can change "+s.Vogt)
	for mode, want := range map[os.FileMode]State{0o777: Failed, 0o777 | os.ModeSticky: NotInForce, 0o755: NotInForce} {
		os.Chmod(bin, mode)
		if c := find(t, s, "binary"); c.State != want {
			t.Errorf("folder with mode %v: %v: %s", mode, c.State, c.Text)
		}
	}
	os.Chmod(s.Vogt, 0o757)
	expect(t, find(t, s, "binary"), Failed, "mode is 0757")
}

func TestProc(t *testing.T) {
	tests := []struct {
		scope string
		want  State
	}{{"", NotInForce}, {"0\n", NotInForce}, {"1\n", InPart}, {"2\n", InForce}, {"3\n", InForce}, {"junk", InPart}}
	for _, test := range tests {
		s := subject(t, "http://127.0.0.1:1")
		if test.scope != "" {
			write(t, filepath.Join(s.Proc, "sys/kernel/yama/ptrace_scope"), test.scope, 0o644)
		}
		if c := find(t, s, "ptrace"); c.State != test.want {
			t.Errorf("scope %q: %v: %s", test.scope, c.State, c.Text)
		}
	}
}

// control is an authority's control socket and nothing else.
func control(t *testing.T, dir string) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(dir, quickstart.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(quickstart.Status{PID: os.Getpid(), Listen: "127.0.0.1:1"})
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
}

// short is a subject whose folder is short enough for a socket.
func short(t *testing.T, authority string) Subject {
	t.Helper()
	s := subject(t, authority)
	dir, err := os.MkdirTemp("", "vogt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s.Paths.Data = filepath.Join(dir, "data")
	os.Mkdir(s.Paths.Data, 0o700)
	return s
}

func TestReach(t *testing.T) {
	s := short(t, "http://127.0.0.1:1")
	s.Proc = "/proc"
	expect(t, find(t, s, "database"), InPart, "nothing to try")
	expect(t, find(t, s, "control-socket"), InForce, "no control socket")
	write(t, filepath.Join(s.Paths.Data, "vogt.db"), "SQLite format 3", 0o600)
	control(t, s.Paths.Data)
	expect(t, find(t, s, "database"), NotInForce, s.Paths.Data)
	expect(t, find(t, s, "control-socket"), NotInForce, "can use")
	if _, err := os.Stat("/proc/self/mem"); err == nil {
		expect(t, find(t, s, "memory"), NotInForce, "can read and write the memory") // of this very process
	}
	if r := Examine(t.Context(), s); r.Enforcement != "advisory" {
		t.Errorf("enforcement %q", r.Enforcement)
	}
}

// TestAsAnotherUser proves the other row: an authority that belongs to another
// user is out of reach, by trying as that other user.
func TestAsAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become another user")
	}
	dir, err := os.MkdirTemp("", "vogt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	data := filepath.Join(dir, "authority")
	write(t, filepath.Join(data, "vogt.db"), "SQLite format 3", 0o600)
	control(t, data)
	home := filepath.Join(dir, "home")
	os.Mkdir(home, 0o700)
	os.Chown(home, 12345, 12345)
	cmd := exec.Command("/proc/self/exe", data)
	cmd.Env = []string{role + "=" + home, "PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var r struct {
		Enforcement string
		Checks      []struct{ Name, State, Text string }
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range r.Checks {
		switch c.Name {
		case "database", "control-socket":
			if c.State != "in force" {
				t.Errorf("%s: %s: %s", c.Name, c.State, c.Text)
			}
		case "files":
			if c.State != "in force" {
				t.Errorf("%s: %s: %s", c.Name, c.State, c.Text)
			}
		}
	}
}

// examineHome is the other user's side of TestAsAnotherUser.
func examineHome(home string) int {
	s := Subject{Vogt: "/proc/self/exe", Getenv: os.Getenv, Home: home, Now: time.Now, Proc: "/proc", Places: os.Args[1:]}
	s.Paths.Config, s.Paths.Data, s.Paths.State = filepath.Join(home, "c"), filepath.Join(home, "d"), filepath.Join(home, "s")
	s.Paths.System = filepath.Join(home, "etc")
	if err := json.NewEncoder(os.Stdout).Encode(Examine(context.Background(), s)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestDaemonsAreFoundByName(t *testing.T) {
	s := subject(t, "http://127.0.0.1:1")
	write(t, filepath.Join(s.Proc, "self", "mem"), "", 0o600)
	for pid, name := range map[int]string{11: "vogtd\n", 12: "bash\n", 13: "vogtd\n"} {
		write(t, filepath.Join(s.Proc, strconv.Itoa(pid), "comm"), name, 0o644)
		write(t, filepath.Join(s.Proc, strconv.Itoa(pid), "mem"), "", 0o600)
	}
	expect(t, find(t, s, "memory"), NotInForce, "process 11")
	x := exam{Subject: s}
	x.controlErr = quickstart.ErrNotRunning
	if got := fmt.Sprint(x.daemons()); got != "[11 13]" {
		t.Errorf("daemons %s", got)
	}
}

// privateKeyFile: the check must recognise every form of a private key.
func TestPrivateKeyForms(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		string(pem.EncodeToMemory(block)):      true,
		"-----BEGIN PRIVATE KEY-----\nAA\n":    true,
		"-----BEGIN EC PRIVATE KEY-----\n":     true,
		"-----BEGIN PUBLIC KEY-----\nAA\n":     false,
		"ssh-ed25519 AAAA":                     false,
		"":                                     false,
		" -----BEGIN PRIVATE KEY-----\nAA\n":   false,
		"-----BEGIN CERTIFICATE-----\nPRIVATE": false,
	} {
		path := filepath.Join(t.TempDir(), "k")
		write(t, path, text, 0o600)
		if got := privateKey(path); got != want {
			t.Errorf("%.40q: %v", text, got)
		}
	}
}
