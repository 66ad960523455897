package osuser

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testRange is where the tests' user ids come from.
var testRange = Range{73000, 73999}

const (
	modeVariable = "VOGT_OSUSER_TEST" // what this program is to do instead of testing
	rootVariable = "VOGT_OSUSER_ROOT"
	argVariable  = "VOGT_OSUSER_ARG"
)

func TestMain(m *testing.M) {
	mode := os.Getenv(modeVariable)
	if mode == "" {
		// Processes of the same ids belong to one run of the tests at a time.
		// Nor does fuzzing start any, whose workers would wait for the lock of the one
		// that waits for them.
		fuzzing := slices.ContainsFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(strings.TrimLeft(arg, "-"), "test.fuzz") })
		if os.Geteuid() != 0 || fuzzing {
			os.Exit(m.Run()) // starts none
		}
		lock, err := os.OpenFile(filepath.Join(os.TempDir(), "vogt-osuser-test.lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err == nil {
			err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(m.Run())
	}
	run, known := children()[mode]
	if !known {
		fmt.Fprintf(os.Stderr, "there is no mode %q\n", mode)
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// children are what this program does as a child of its tests.
func children() map[string]func() error {
	return map[string]func() error{
		"add":    func() error { return victim(false) },
		"remove": func() error { return victim(true) },
		"full":   fullDisk,
		"real":   realMachine,
		"leader": leaderless,
		"chains": reaper,
	}
}

// child prepares this program to run as a child.
func child(t *testing.T, mode, root, arg string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), modeVariable+"="+mode, rootVariable+"="+root, argVariable+"="+arg)
	return cmd
}

// needRoot skips tests of what only root can do.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may make users and stop those of others")
	}
}

func needShadow(t *testing.T) {
	t.Helper()
	needRoot(t)
	out, err := exec.Command("/usr/sbin/useradd", "--help").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--prefix")) {
		t.Skip("useradd with --prefix is not installed (Debian: apt-get install passwd)")
	}
}

// at is the time of the tests.
func at() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// scratch makes a small machine below a folder: a Debian with cron, at, sshd,
// polkit and systemd.
func scratch(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	plant(t, root, map[string]string{
		"etc/passwd":                   "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/home/ada:/bin/bash\n",
		"etc/group":                    "root:x:0:\nsudo:x:27:ada\nada:x:1000:\n",
		"etc/shadow":                   "root:*:1::::::\nada:$y$j9T$x:1::::::\n",
		"etc/gshadow":                  "root:*::\nsudo:*::ada\nada:!::\n",
		"etc/subuid":                   "ada:100000:65536\n",
		"etc/subgid":                   "ada:100000:65536\n",
		"etc/login.defs":               "UID_MIN 1000\nUID_MAX 60000\nUSERGROUPS_ENAB yes\n",
		"etc/debian_version":           "12.8\n",
		"etc/at.deny":                  "alias\nbackup\n",
		"etc/ssh/sshd_config":          "Include /etc/ssh/sshd_config.d/*.conf\nPermitRootLogin no\nMatch User ada\n  X11Forwarding yes\n",
		"etc/ssh/sshd_config.d/":       "",
		"etc/polkit-1/rules.d/":        "",
		"etc/systemd/system/":          "",
		"var/lib/systemd/linger/":      "",
		"var/spool/cron/crontabs/":     "",
		"var/spool/cron/atjobs/":       "",
		"usr/sbin/":                    "",
		"home/ada/.ssh/authorized_key": "",
	})
	for _, name := range []string{"etc/shadow", "etc/gshadow"} {
		if err := os.Chmod(filepath.Join(root, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(root, "etc/at.deny"), 0o640); err != nil {
		t.Fatal(err)
	}
	return root
}

// plant writes files, and makes folders where a name ends with a slash.
func plant(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		p := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(p, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(files[name]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func specFor(root, name string) Spec {
	return Spec{Name: name, Range: testRange, Start: []string{"/usr/bin/vogt", "agent", "start", name, "--", "%i"},
		Machine: Machine{Root: root, Now: at}}
}

// snapshot is everything of a machine that somebody would miss: names, owners,
// modes and content. What belongs to Vogt's own book-keeping, and the copies and
// locks of the shadow tools, are left out.
func snapshot(t *testing.T, root string) string {
	t.Helper()
	text, err := everything(root)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func everything(root string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(p, root)
		switch {
		case name == "/var/lib/vogt-agents":
			return fs.SkipDir
		case strings.HasPrefix(name, "/etc/") && strings.HasSuffix(name, "-"), name == "/etc/.pwd.lock":
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		fmt.Fprintf(&b, "%s %v %d:%d", name, info.Mode(), stat.Uid, stat.Gid)
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", data)
		}
		b.WriteByte('\n')
		return nil
	})
	return b.String(), err
}

// difference names the first lines in which two snapshots differ.
func difference(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var out []string
	for _, line := range a {
		if !slices.Contains(b, line) {
			out = append(out, "- "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			out = append(out, "+ "+line)
		}
	}
	return strings.Join(out, "\n")
}

func mustAdd(t *testing.T, spec Spec) User {
	t.Helper()
	u, err := Add(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func mustRemove(t *testing.T, spec Spec, home HomeChoice) Removal {
	t.Helper()
	r, err := Remove(t.Context(), spec, home)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func contents(t *testing.T, root, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func brokenPromises(ctx context.Context, spec Spec) []string {
	var all []string
	for _, f := range Check(ctx, spec) {
		if !f.Kept {
			all = append(all, f.Promise+": "+f.Text+" ["+f.Remedy+"]")
		}
	}
	return all
}
