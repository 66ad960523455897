package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vogt/internal/config"
	"vogt/internal/quickstart"
)

// buildDaemon builds vogtd once for all tests.
var buildDaemon = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildFolder, "vogtd")
	out, err := exec.Command("go", "build", "-o", path, "vogt/cmd/vogtd").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build vogtd: %w: %s", err, out)
	}
	return path, err
})

// realDaemon returns vogtd and a folder whose name is short enough for a
// socket.
func realDaemon(t *testing.T) (dir, daemon string) {
	t.Helper()
	daemon, err := buildDaemon()
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = os.MkdirTemp("", "vogt"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	return dir, daemon
}

func under(home string) config.Paths {
	return config.Paths{
		System: filepath.Join(home, "etc"), Config: filepath.Join(home, "config"),
		Data: filepath.Join(home, "data"), State: filepath.Join(home, "state"),
	}
}

// TestRealQuickStart examines what `vogt up` leaves behind, with a real vogtd
// under the same user: nothing is broken, and what is not in force is said.
func TestRealQuickStart(t *testing.T) {
	dir, daemon := realDaemon(t)
	home := filepath.Join(dir, "home")
	owner := filepath.Join(dir, "owner")
	keygen(t, owner, "ed25519", "")
	public, err := os.ReadFile(owner + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	paths := under(home)
	t.Cleanup(func() { quickstart.Down(context.Background(), paths.Data) })
	err = quickstart.Up(t.Context(), quickstart.Options{
		Paths: paths, Daemon: daemon, Listen: "127.0.0.1:0", Env: append(os.Environ(), "VOGT_HOME="+home), Out: io.Discard, Err: io.Discard,
		Headless: &quickstart.Owner{Email: "alice@example.org", PublicKey: strings.TrimSpace(string(public))},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := Subject{
		Paths: paths, Vogt: daemon, Getenv: func(string) string { return "" }, Home: home, Now: time.Now,
		Memory: paths.State, Proc: "/proc",
	}
	want := map[string]State{
		"authority": InForce, "owner": InForce, "issuer": InForce, "clock": InForce, "log-key": InForce, "bearer-decisions": InForce,
		"port": InForce, "files": InForce, "tokens": InForce,
		"database": NotInForce, "control-socket": NotInForce, "memory": NotInForce,
	}
	r := Examine(t.Context(), s)
	for _, c := range r.Checks {
		if state, ok := want[c.Name]; ok && c.State != state {
			t.Errorf("%s: %v: %s; want %v", c.Name, c.State, c.Text, state)
		}
		if c.State == Failed {
			t.Errorf("%s failed: %s", c.Name, c.Text)
		}
	}
	if r.Enforcement != "advisory" || !r.OK {
		t.Errorf("enforcement %q, ok %v", r.Enforcement, r.OK)
	}
}

// TestRealOwnUser examines, as one user, an authority that runs as another: by
// trying, its data, its socket and its memory are out of reach.
func TestRealOwnUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to start processes as two other users")
	}
	const authority, agent = 65534, 12345
	dir, daemon := realDaemon(t)
	data := filepath.Join(dir, "authority")
	home := filepath.Join(dir, "home")
	for path, uid := range map[string]int{data: authority, home: agent} {
		os.Mkdir(path, 0o700)
		os.Chown(path, uid, uid)
	}
	cmd := exec.Command(daemon, "--data", filepath.Join(data, "data"), "--listen", "127.0.0.1:0", "--log", filepath.Join(data, "log"))
	cmd.Env = []string{"VOGT_HOME=" + data}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: authority, Gid: authority}, Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait() })
	issuer := ""
	eventually(t, "vogtd serves", func() bool {
		log, _ := os.ReadFile(filepath.Join(data, "log")) // it may not be there yet
		_, after, ok := strings.Cut(string(log), " issuer=")
		issuer, _, _ = strings.Cut(after, " ")
		return ok
	})
	config := filepath.Join(home, "c", "vogt.toml")
	write(t, config, "authority = \""+issuer+"\"\n", 0o600)
	os.Chown(config, agent, agent)
	os.Chown(filepath.Dir(config), agent, agent)

	examine := exec.Command("/proc/self/exe", data, filepath.Join(data, "data"))
	examine.Env = []string{role + "=" + home, "PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}
	examine.Dir = "/"
	examine.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: agent, Gid: agent}}
	out, err := examine.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var r struct {
		Enforcement string
		Checks      []struct{ Name, State, Text string }
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if r.Enforcement != "os-user, in part" {
		t.Errorf("enforcement %q", r.Enforcement)
	}
	for _, c := range r.Checks {
		switch c.Name {
		case "database", "control-socket", "memory", "port", "authority":
			if c.State != "in force" {
				t.Errorf("%s: %s: %s", c.Name, c.State, c.Text)
			}
		}
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
