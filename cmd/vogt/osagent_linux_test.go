package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vogt/internal/sshkey"
)

const (
	jailVariable = "VOGT_TEST_JAIL" // the folder of the programs, in the jail
	// realVariable makes the test change the machine that it runs on.
	realVariable = "VOGT_TEST_REAL_USERS"
	personUID    = 73901
	personHome   = "/var/lib/vogt-test-person"
)

// TestAgentWithUser makes agents with OS users, in a mount namespace in which /etc
// and /var/lib are copies in memory. With VOGT_TEST_REAL_USERS=1 it is done to the
// machine itself: for a virtual machine that is thrown away.
func TestAgentWithUser(t *testing.T) {
	if bin := os.Getenv(jailVariable); bin != "" {
		if os.Getenv(realVariable) == "" {
			if err := coverMachine(); err != nil {
				t.Fatal(err)
			}
		}
		agentWithUser(t, bin)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root makes users")
	}
	for _, tool := range []string{"/usr/sbin/useradd", "/usr/sbin/userdel"} {
		if _, err := os.Stat(tool); err != nil {
			t.Skipf("useradd is not installed (Debian: apt-get install passwd): %v", err)
		}
	}
	bin := filepath.Dir(program(t, "vogt"))
	program(t, "vogtd")
	if err := os.Chmod(bin, 0o755); err != nil { // other users start them
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestAgentWithUser$", "-test.v", "-test.timeout=120s")
	cmd.Env = append(os.Environ(), jailVariable+"="+bin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getenv(realVariable) == "" {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skipf("namespaces cannot be made here: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// coverMachine puts copies in memory in the place of what is going to be changed.
func coverMachine() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "etc")
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	if out, err := exec.Command("cp", "-a", "/etc/.", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("copy /etc: %w: %s", err, out)
	}
	if err := unix.Mount(dir, "/etc", "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", "/var/lib", "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	for _, p := range []string{"/etc", "/var/lib"} {
		var st unix.Statfs_t
		if err := unix.Statfs(p, &st); err != nil || st.Type != unix.TMPFS_MAGIC {
			return fmt.Errorf("%s is not covered (%v)", p, err)
		}
	}
	return nil
}

// usersMachine is one on which root makes agents for a person.
type usersMachine struct {
	t   *testing.T
	bin string
}

// as is a program as root, or as the person.
func (m *usersMachine) as(uid uint32, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(m.bin, args[0]), args[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"HOME=/root", "PATH=" + m.bin + ":" + systemPath, "SUDO_UID=" + strconv.Itoa(personUID)}
	if uid != 0 {
		cmd.Dir, cmd.Env = personHome, []string{"HOME=" + personHome, "PATH=" + m.bin + ":" + systemPath}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	return cmd
}

func (m *usersMachine) run(uid uint32, args ...string) (string, int) {
	m.t.Helper()
	out, err := m.as(uid, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatalf("%q: %v", args, err)
	}
	if exit != nil {
		return string(out), exit.ExitCode()
	}
	return string(out), 0
}

func (m *usersMachine) must(uid uint32, args ...string) string {
	m.t.Helper()
	out, code := m.run(uid, args...)
	if code != 0 {
		m.t.Fatalf("%q: exit code %d\n%s", args, code, out)
	}
	return out
}

func (m *usersMachine) expect(text string, parts ...string) {
	m.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			m.t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// gone demands that nothing of an agent is left but its home.
func (m *usersMachine) gone(when, name string) {
	m.t.Helper()
	for _, file := range []string{"/etc/passwd", "/etc/group", "/etc/shadow"} {
		data, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(data), "vogt-"+name+":") {
			m.t.Errorf("%s: the user stands in %s (%v)", when, file, err)
		}
	}
	if _, err := os.Stat(osAgentFile(name)); !errors.Is(err, fs.ErrNotExist) {
		m.t.Errorf("%s: %s: %v", when, osAgentFile(name), err)
	}
	if list := m.must(personUID, "vogt", "agent", "list"); strings.Contains(list, name+"+") {
		m.t.Errorf("%s: the agent is enrolled\n%s", when, list)
	}
}

func agentWithUser(t *testing.T, bin string) {
	m := &usersMachine{t, bin}
	if out, err := exec.Command("/usr/sbin/useradd", "-u", strconv.Itoa(personUID), "-d", personHome, "-m", "vogt-test-person").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("/usr/sbin/userdel", "-r", "vogt-test-person").CombinedOutput(); err != nil {
			t.Logf("%v: %s", err, out)
		}
	})
	pem, public, err := sshkey.Generate(strings.NewReader(strings.Repeat("person", 100)), "person")
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(personHome, "owner-key")
	if err := sshkey.WriteNew(key, pem, public); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{key, key + ".pub"} {
		if err := os.Chown(name, personUID, personUID); err != nil {
			t.Fatal(err)
		}
	}
	issuer, err := startVogtd(cleanup{t}, filepath.Join(bin, "vogtd"), public)
	if err != nil {
		t.Fatal(err)
	}
	m.must(personUID, "vogt", "login", ownerEmail, "--idp", issuer, "--key", key)

	// Who may not, or has named nobody.
	if out, code := m.run(personUID, "vogt", "agent", "add", "coder", "--os-user"); code != exitUsage {
		t.Errorf("without root: %d\n%s", code, out)
	}
	alone := m.as(0, "vogt", "agent", "add", "coder", "--os-user")
	alone.Env = []string{"HOME=/root", "PATH=" + systemPath}
	if out, err := alone.CombinedOutput(); err == nil || !strings.Contains(string(out), "nobody is named") {
		t.Errorf("for nobody: %v\n%s", err, out)
	}

	// Each step fails once, and nothing is left.
	for name, args := range map[string][]string{
		"no key of the person": {"--owner-key", "/nowhere"},
		"a foreign authority":  {"--owner-key", "/etc/shadow"},
	} {
		out, code := m.run(0, append([]string{"vogt", "agent", "add", "coder", "--os-user"}, args...)...)
		if code == 0 {
			t.Errorf("%s: it was added", name)
		}
		m.expect(out, "all that was done is undone")
		m.gone(name, "coder")
	}
	m.must(personUID, "vogt", "agent", "add", "taken")
	if out, code := m.run(0, "vogt", "agent", "add", "taken", "--os-user"); code == 0 {
		t.Errorf("an agent of that name was there\n%s", out)
	}
	if list := m.must(personUID, "vogt", "agent", "list"); !strings.Contains(list, "taken") {
		t.Error("the agent that was there is gone")
	}

	out := m.must(0, "vogt", "agent", "add", "coder", "--os-user")
	m.expect(out, "vogt-coder", "sudo vogt agent start coder -- COMMAND")
	a, there, err := osAgentOf("coder")
	if err != nil || !there {
		t.Fatal(there, err)
	}
	m.expect(m.must(personUID, "vogt", "agent", "list"), "coder")
	for name, mode := range map[string]fs.FileMode{".": 0o700, ".config/vogt/agents/coder/key": 0o600, ".config/vogt/agents/coder/auth.json": 0o600} {
		st, err := os.Stat(filepath.Join(a.User.Home, name))
		if err != nil || st.Mode().Perm() != mode || st.Sys().(*syscall.Stat_t).Uid != a.User.UID {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	if out, code := m.run(0, "vogt", "agent", "add", "coder", "--os-user"); code != exitUsage {
		t.Errorf("twice: %d\n%s", code, out)
	}

	// It runs as its user, in a box, as itself.
	out = m.must(0, "vogt", "agent", "start", "coder", "--", "sh", "-c", "id -u; id -G; "+filepath.Join(bin, "vogt")+" whoami; pwd; touch made; ls "+personHome+" || true")
	m.expect(out, fmt.Sprintf("%d\n%[1]d\n", a.User.UID), "Type:        agent", filepath.Join(a.User.Home, "work"))
	if strings.Contains(out, "owner-key") {
		t.Errorf("it sees the person's home\n%s", out)
	}
	if st, err := os.Stat(filepath.Join(a.User.Home, "work", "made")); err != nil || st.Sys().(*syscall.Stat_t).Uid != a.User.UID {
		t.Errorf("what it makes: %v", err)
	}
	if _, code := m.run(0, "vogt", "agent", "start", "coder", "--", "sh", "-c", "exit 7"); code != 7 {
		t.Errorf("its exit code is %d", code)
	}

	// Paused, everything of it stands still and nothing is started.
	ticks := filepath.Join(a.User.Home, "work", "ticks")
	loop := m.as(0, "vogt", "agent", "start", "coder", "--", "sh", "-c", "while :; do echo x >> ticks; done")
	if err := loop.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- loop.Wait() }()
	size := func() int64 {
		st, err := os.Stat(ticks)
		if err != nil {
			return 0
		}
		return st.Size()
	}
	grows := func(from int64) {
		look := time.NewTicker(5 * time.Millisecond)
		defer look.Stop()
		for size() <= from {
			select {
			case <-look.C:
			case err := <-ended:
				t.Fatalf("the box ended: %v", err)
			}
		}
	}
	grows(0)
	m.expect(m.must(0, "vogt", "agent", "pause", "coder"), "is paused")
	still := size()
	m.expect(m.must(personUID, "vogt", "agent", "show", "coder"), "paused")
	if out, code := m.run(0, "vogt", "agent", "start", "coder", "--", "true"); code != exitRefused {
		t.Errorf("started while paused: %d\n%s", code, out)
	}
	if now := size(); now != still {
		t.Errorf("paused, it wrote %d bytes", now-still)
	}
	m.must(0, "vogt", "resume", "coder")
	grows(still)
	m.must(0, "vogt", "agent", "kill", "coder")
	<-ended

	m.expect(m.must(0, "vogt", "agent", "remove", "coder"), "vogt-coder", a.User.Home)
	m.gone("removed", "coder")
	if _, err := os.Stat(ticks); err != nil {
		t.Errorf("its home is gone: %v", err)
	}
}
