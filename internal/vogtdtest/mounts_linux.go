package vogtdtest

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mountsVariable tells a further process of the test binary that it runs in a
// mount namespace of its own.
const mountsVariable = "VOGTDTEST_OWN_MOUNTS"

// OwnMounts runs the calling test in a process with mounts of its own, which
// end with it (mount_namespaces(7)). It returns true there; in the process that
// started it, it returns false when that has passed. Where the machine allows no
// such process, the test is skipped.
func OwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(mountsVariable) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatalf("making the mounts private: %v", err)
		}
		return true
	}
	Binary(t, false) // both processes use it
	attempts := []*syscall.SysProcAttr{{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}}
	if os.Getuid() == 0 {
		attempts = append(attempts, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS})
	}
	var refused error
	for _, attributes := range attempts {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), mountsVariable+"=1")
		cmd.SysProcAttr = attributes
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return false
		case errors.As(err, &exit):
			t.Fatalf("in a mount namespace of its own: %v\n%s", err, out)
		}
		refused = err
	}
	t.Skipf("this machine allows no mount namespace, so no disk of its own can be made: %v", refused)
	return false
}

// SmallDisk mounts an empty disk of a size such as "32m" (tmpfs(5)) at dir until
// the test ends.
func SmallDisk(t *testing.T, dir, size string) {
	t.Helper()
	if err := unix.Mount("vogtdtest", dir, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		t.Fatalf("mounting a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
}
