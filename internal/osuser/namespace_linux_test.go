package osuser

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// alone runs this program in a mount namespace of its own, and with users in a
// user namespace of its own too. The child learns which namespace it must not
// be in.
func alone(t *testing.T, mode, root string, flags uintptr) {
	t.Helper()
	here, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	cmd := child(t, mode, root, here)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	if flags&syscall.CLONE_NEWUSER != 0 {
		all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 100_000}}
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = all, all
		cmd.SysProcAttr.GidMappingsEnableSetgroups = true
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skipf("namespaces cannot be made here: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// private makes sure that mounts of this process are seen by nobody else.
func private() error {
	now, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	if now == os.Getenv(argVariable) {
		return errors.New("this is the mount namespace of the test's parent")
	}
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// cover mounts an empty file system over a folder and copies into it what was
// there.
func cover(folder, size string) error {
	under, err := os.MkdirTemp("", "under")
	if err != nil {
		return err
	}
	if err := unix.Mount(folder, under, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", folder, err)
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=0755,size="+size); err != nil {
		return fmt.Errorf("cover %s: %w", folder, err)
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil || stat.Type != unix.TMPFS_MAGIC {
		return fmt.Errorf("%s is not covered: %w", folder, err)
	}
	err = filepath.WalkDir(under, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := folder + strings.TrimPrefix(p, under)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch info.Mode().Type() {
		case fs.ModeDir:
			if p == under {
				return nil
			}
			err = os.Mkdir(to, 0o700)
		case fs.ModeSymlink:
			var target string
			if target, err = os.Readlink(p); err == nil {
				err = os.Symlink(target, to)
			}
			return err
		case 0:
			var data []byte
			if data, err = os.ReadFile(p); err == nil {
				err = os.WriteFile(to, data, 0o600)
			}
		default:
			return nil
		}
		own := info.Sys().(*syscall.Stat_t)
		return errors.Join(err, os.Chown(to, int(own.Uid), int(own.Gid)), os.Chmod(to, info.Mode()))
	})
	return errors.Join(err, unix.Unmount(under, 0), os.Remove(under))
}

func TestFullDisk(t *testing.T) {
	needShadow(t)
	for _, folder := range []string{"/var/lib/vogt-agents", "/etc"} {
		t.Run(folder, func(t *testing.T) {
			root := scratch(t)
			plant(t, root, map[string]string{"var/lib/vogt-agents/": ""})
			t.Setenv("VOGT_OSUSER_FULL", folder)
			alone(t, "full", root, syscall.CLONE_NEWNS)
		})
	}
}

// fullDisk adds a user while a file system has room for some pages only, for
// each number of pages from none up to enough.
func fullDisk() error {
	if err := private(); err != nil {
		return err
	}
	root := os.Getenv(rootVariable)
	folder := root + os.Getenv("VOGT_OSUSER_FULL")
	failed := 0
	// Steps get larger, since for some numbers the shadow tools wait for a lock.
	for pages := 0; ; pages += 1 + 3*min(pages/4, 1) {
		if err := cover(folder, "512k"); err != nil {
			return err
		}
		before, err := everything(root)
		if err != nil {
			return err
		}
		added, err := addInto(root, folder, pages)
		if err != nil {
			return fmt.Errorf("with %d pages: %w", pages, err)
		}
		after, err := everything(root)
		if err != nil {
			return err
		}
		if after != before {
			return fmt.Errorf("with %d pages, this is left:\n%s", pages, difference(before, after))
		}
		if err := unix.Unmount(folder, 0); err != nil {
			return err
		}
		if added {
			break
		}
		failed++
	}
	if failed == 0 {
		return errors.New("a full disk was no obstacle, so this test shows nothing")
	}
	return nil
}

func addInto(root, folder string, pages int) (added bool, err error) {
	filler, err := os.Create(folder + "/filler")
	if err != nil {
		return false, err
	}
	page := make([]byte, os.Getpagesize())
	var size int64
	for ; err == nil; size += int64(len(page)) {
		_, err = filler.WriteAt(page, size)
	}
	if !errors.Is(err, unix.ENOSPC) {
		return false, err
	}
	size -= int64(len(page)) // the page that found no room
	if err := errors.Join(filler.Truncate(size-int64(pages*len(page))), filler.Close()); err != nil {
		return false, err
	}
	spec := specFor(root, "coder")
	u, failed := Add(context.Background(), spec)
	if failed != nil && !strings.Contains(failed.Error(), "space") && !strings.Contains(failed.Error(), "useradd") && !strings.Contains(failed.Error(), "groupadd") {
		return false, fmt.Errorf("Add does not say that the disk is full: %w", failed)
	}
	if err := os.Remove(filler.Name()); err != nil {
		return false, err
	}
	if failed == nil {
		if wrong := brokenPromises(context.Background(), spec); len(wrong) > 0 {
			return false, fmt.Errorf("added, but: %s", wrong)
		}
	}
	r, err := Remove(context.Background(), spec, KeepHome)
	if err != nil && (failed == nil || !errors.Is(err, ErrUnknown)) {
		return false, fmt.Errorf("Remove after %w: %w", failed, err)
	}
	if len(r.Left) > 0 {
		return false, fmt.Errorf("left after %w: %s", failed, r.Left)
	}
	if r.Home != "" {
		if err := os.RemoveAll(root + r.Home); err != nil {
			return false, err
		}
	}
	if text, err := os.ReadFile(root + "/var/lib/vogt-agents/uids"); err == nil {
		if _, err := parseLedger(string(text)); err != nil {
			return false, fmt.Errorf("the ledger after %w: %w", failed, err)
		}
	}
	return failed == nil && u.UID != 0, nil
}

// TestRealMachine adds a user to this very machine, without a root beside it,
// but in namespaces in which its folders are covered by copies.
func TestRealMachine(t *testing.T) {
	needShadow(t)
	before := read(t, "/etc/passwd")
	alone(t, "real", "", syscall.CLONE_NEWNS|syscall.CLONE_NEWUSER)
	if now := read(t, "/etc/passwd"); now != before {
		t.Errorf("/etc/passwd outside of the namespaces changed:\n%s", difference(before, now))
	}
}

func realMachine() error {
	if err := private(); err != nil {
		return err
	}
	if err := cover("/etc", "64m"); err != nil {
		return err
	}
	// Nothing in there is copied: no systemd, and no earlier agents.
	for _, folder := range []string{"/run", "/var/lib"} {
		if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=0755,size=4m"); err != nil {
			return fmt.Errorf("cover %s: %w", folder, err)
		}
	}
	before, err := everything("/etc")
	if err != nil {
		return err
	}
	ctx := context.Background()
	spec := Spec{Name: "osuser-test", Shell: "/bin/sh", Range: Range{73900, 73999}}
	u, err := Add(ctx, spec)
	if err != nil {
		return err
	}
	if wrong := brokenPromises(ctx, spec); len(wrong) > 0 {
		return fmt.Errorf("broken right after Add: %s", strings.Join(wrong, "\n"))
	}
	out, err := exec.Command("/usr/bin/getent", "passwd", u.Name).CombinedOutput()
	if want := fmt.Sprintf("%s:x:%d:%d:Vogt agent osuser-test:/var/lib/vogt-agents/home/osuser-test:/bin/sh\n", u.Name, u.UID, u.UID); err != nil || string(out) != want {
		return fmt.Errorf("getent: %q, %w, want %q", out, err, want)
	}
	// The user can work in its home, and nowhere where it should not.
	cmd := exec.Command("/bin/sh", "-c", "cd && echo x >file && mkdir .config/vogt/keys && ! ls /var/lib/vogt-agents/osusers && ! cat /var/lib/vogt-agents/uids && ! mkdir ../other && id -G")
	cmd.Env = []string{"HOME=" + u.Home, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.UID, Gid: u.UID}}
	out, err = cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(u.UID) {
		return fmt.Errorf("as the user: %q, %w", out, err)
	}
	r, err := Remove(ctx, spec, ArchiveHome)
	if err != nil || len(r.Left) > 0 {
		return fmt.Errorf("removed with %+v, %w", r, err)
	}
	if _, err := os.Stat(r.Home + "/file"); err != nil {
		return err
	}
	after, err := everything("/etc")
	if err != nil {
		return err
	}
	for line := range strings.Lines(difference(before, after)) {
		// Copies and locks of the shadow tools have no prefix to know them by here.
		if name, _, _ := strings.Cut(line[2:], " "); !strings.HasSuffix(name, "-") && name != "/.pwd.lock" {
			return fmt.Errorf("left: %s", line)
		}
	}
	return nil
}
