package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestUnmapped(t *testing.T) {
	const everyone = "         0          0 4294967295\n"
	tests := []struct {
		name            string
		uid             uint32
		overflow, idMap string
		want            bool
	}{
		{"first namespace", 65534, "65534\n", everyone, false},
		{"one user", 65534, "65534\n", "      1000       1000          1\n", true},
		{"one user, another number", 12345, "65534\n", "      1000       1000          1\n", false},
		{"one user under the number", 65534, "65534\n", "     65534       1000          1\n", false},
		{"container with 65536 users", 65534, "65534\n", "0 1000 1\n1 100000 65535\n", false},
		{"no map written yet", 65534, "65534\n", "", true},
		{"another overflow id", 99, "99\n", "1000 1000 1\n", true},
		{"unreadable map", 65534, "65534\n", "x y z\n", false},
		{"unreadable line", 65534, "65534\n", "1000 1000\n", false},
		{"unreadable number", 65534, "-", "1000 1000 1\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := unmapped(tt.uid, tt.overflow, tt.idMap); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// In a user namespace that maps one user only, as boxes for agents do, the
// configuration that root wrote must still be read.
func TestReadTrustedInUserNamespace(t *testing.T) {
	const name = "VOGT_TEST_READ"
	if path := os.Getenv(name); path != "" {
		if os.Geteuid() != 4711 {
			t.Fatalf("the namespace was not entered: user %d", os.Geteuid())
		}
		info, err := os.Stat("/")
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; !unmappedOwner(owner) {
			t.Fatalf("the owner of / has an id here: %d", owner)
		}
		data, err := ReadTrusted(path)
		if err != nil || string(data) != "content" {
			t.Fatalf("got %q, %v", data, err)
		}
		return
	}
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := dir + "/c"
	if err := os.WriteFile(path, []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Whoever is mapped must not own the folders on the way, or nothing would
	// be without an id.
	host := os.Geteuid()
	if host == 0 {
		host = 54321
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v") // os.Executable may lie where that user cannot look
	cmd.Env = append(os.Environ(), name+"="+path, "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 4711, HostID: host, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 4711, HostID: os.Getegid(), Size: 1}},
		Credential:  &syscall.Credential{Uid: 4711, Gid: 4711, NoSetGroups: true},
	}
	out, err := cmd.CombinedOutput()
	if _, ran := err.(*exec.ExitError); err != nil && !ran {
		t.Skipf("this kernel does not let the user make a user namespace: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
