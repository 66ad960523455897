package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vogt/internal/store"
)

// namespaceVariable is set in the process that inOwnMounts starts.
const namespaceVariable = "VOGT_STORE_TEST_MOUNTS"

// inOwnMounts runs the calling test in a child process that may mount what it
// likes without anybody seeing it. It returns true in that child, and false in
// the parent once the child is done.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(namespaceVariable) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatalf("making the mounts private: %v", err)
		}
		return true
	}
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
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(childEnvironment(), namespaceVariable+"=1")
		cmd.SysProcAttr = attributes
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil:
			t.Logf("in a mount namespace of its own:\n%s", out)
			return false
		case errors.As(err, &exit):
			t.Fatalf("in a mount namespace of its own: %v\n%s", err, out)
		}
		refused = err
	}
	t.Skipf("this machine allows no mount namespace, so no small disk can be made: %v", refused)
	return false
}

// fill takes all space on dir's disk but about spare bytes and returns the
// file to remove.
func fill(t *testing.T, dir string, spare int64) string {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		free, err := freeBytes(dir)
		if err != nil {
			t.Fatal(err)
		}
		if free <= spare {
			return name
		}
		_, err = f.Write(make([]byte, min(free-spare, 1<<16)))
		if errors.Is(err, unix.ENOSPC) {
			return name
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDisk fills a small disk under the engine.
func TestFullDisk(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	disk := t.TempDir()
	if err := unix.Mount("vogt-test", disk, "tmpfs", 0, "size=24m,mode=0700"); err != nil {
		t.Fatalf("mounting a small tmpfs: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)

	var seconds atomic.Int64
	const reserve = 4 << 20
	opts := Options{
		Dir: filepath.Join(disk, "data"), Migrations: pairSchema(), Ballast: reserve,
		Now: func() time.Time { return time.Unix(1_000_000+seconds.Load(), 0) },
	}
	ctx := context.Background()
	db := open(t, opts)
	var kept []int64
	body := strings.Repeat("x", 20_000)
	add := func(update func(context.Context, func(store.Tx) error) error, id int64) error {
		err := update(ctx, func(t store.Tx) error {
			if _, err := t.Exec(`INSERT INTO one (id, body) VALUES (?1, ?2)`, id, body); err != nil {
				return err
			}
			_, err := t.Exec(`INSERT INTO two (id, body) VALUES (?1, ?2)`, id, body)
			return err
		})
		if err == nil {
			kept = append(kept, id)
		}
		return err
	}
	ballastSize := func() int64 {
		info, err := os.Stat(filepath.Join(opts.Dir, "ballast"))
		if errors.Is(err, fs.ErrNotExist) {
			return 0
		}
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	wantState := func(when string, ballast int64) {
		t.Helper()
		if got := ballastSize(); got != ballast {
			t.Errorf("%s: the reserve has %d bytes, want %d", when, got, ballast)
		}
		want := fmt.Sprint(kept)
		var one, two []int64
		err := db.View(ctx, func(tx store.Tx) error {
			for table, ids := range map[string]*[]int64{"one": &one, "two": &two} {
				rows, err := tx.Query(`SELECT id FROM ` + table + ` WHERE length(body) = 20000 ORDER BY id`)
				if err != nil {
					return err
				}
				for rows.Next() {
					var id int64
					if err := rows.Scan(&id); err != nil {
						return err
					}
					*ids = append(*ids, id)
				}
				if err := rows.Err(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || fmt.Sprint(one) != want || fmt.Sprint(two) != want {
			t.Errorf("%s: a view reads %v and %v (%v), want %s", when, one, two, err, want)
		}
		if err := db.Check(ctx); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	wantFull := func(when string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrFull) {
			t.Errorf("%s: got %v, want ErrFull", when, err)
		}
	}

	// Ordinary updates fill the last of the disk, and then fail cleanly.
	filler := fill(t, disk, 400_000)
	id := int64(1)
	var err error
	for ; err == nil; id++ {
		err = add(db.Update, id)
	}
	wantFull("the first update that does not fit", err)
	if len(kept) == 0 {
		t.Error("no update fitted into 400 kB")
	}
	wantState("full, reserve untouched", reserve)

	// A reserved one goes through, at the reserve's expense; ordinary ones
	// must not eat the rest of it.
	if err := add(db.UpdateReserved, 100); err != nil {
		t.Errorf("reserved update on a full disk: %v", err)
	}
	wantState("after a reserved update", 0)
	wantFull("ordinary update while the reserve is in use", add(db.Update, id))
	seconds.Add(5)
	wantFull("ordinary update five seconds later", add(db.Update, id))
	if err := add(db.UpdateReserved, 101); err != nil {
		t.Errorf("second reserved update: %v", err)
	}
	wantState("after the second", 0)

	// Opening on a disk in that state, and on one that is full to the brim
	// with the reserve in place.
	if err := db.Close(); err != nil {
		t.Errorf("closing on a full disk: %v", err)
	}
	db = open(t, opts)
	wantFull("ordinary update after reopening", add(db.Update, id))
	if err := add(db.UpdateReserved, 102); err != nil {
		t.Errorf("reserved update after reopening: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	wantFull("ordinary update within the second", add(db.Update, id))
	seconds.Add(5)
	if err := add(db.Update, 200); err != nil {
		t.Errorf("ordinary update with space again: %v", err)
	}
	wantState("with space again", reserve)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	filler = fill(t, disk, 0)
	db = open(t, opts)
	wantState("opened on a disk full to the brim", 0)
	if err := add(db.UpdateReserved, 201); err != nil {
		t.Errorf("reserved update: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	seconds.Add(5)
	if err := add(db.Update, 300); err != nil {
		t.Errorf("ordinary update with space again: %v", err)
	}
	wantState("at the end", reserve)

	// A backup that does not fit says so and leaves nothing.
	filler = fill(t, disk, 0)
	wantFull("backup onto a full disk", db.Backup(ctx, filepath.Join(disk, "copy.db")))
	if left, err := filepath.Glob(filepath.Join(disk, "copy*")); err != nil || len(left) != 0 {
		t.Errorf("the failed backup left %q (%v)", left, err)
	}
	os.Remove(filler)
}

// TestReadOnlyDisk opens a database on a disk that is mounted read-only, and
// loses write access under an open one.
func TestReadOnlyDisk(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("vogt-test", dir, "tmpfs", 0, "size=24m,mode=0700"); err != nil {
		t.Fatalf("mounting a tmpfs: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	opts := Options{Dir: dir, Migrations: pairSchema(), Ballast: -1}
	db := open(t, opts)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatalf("remounting read-only: %v", err)
	}
	if _, err := Open(context.Background(), opts); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("opening on a read-only disk: got %v, want ErrReadOnly", err)
	}
	opts.Dir = filepath.Join(dir, "new")
	if _, err := Open(context.Background(), opts); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("making a directory on a read-only disk: got %v, want ErrReadOnly", err)
	}
}

// TestReadOnlyDirectory takes the write permission from directory and files.
// Root ignores permissions, so as root the test runs in a child of another
// user.
func TestReadOnlyDirectory(t *testing.T) {
	const dirVariable = "VOGT_STORE_TEST_READONLY"
	if dir := os.Getenv(dirVariable); dir != "" {
		readOnlyDirectory(t, dir)
		return
	}
	base := t.TempDir()
	if os.Getuid() != 0 {
		readOnlyDirectory(t, filepath.Join(base, "data"))
		return
	}
	const nobody = 65534
	if err := errors.Join(os.Chown(base, nobody, nobody), os.Chmod(filepath.Dir(base), 0o711)); err != nil {
		t.Fatal(err)
	}
	// By its own link the binary can be run even where its folder is closed.
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(childEnvironment(), dirVariable+"="+filepath.Join(base, "data"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}

func readOnlyDirectory(t *testing.T, dir string) {
	opts := Options{Dir: dir, Migrations: pairSchema(), Ballast: -1}
	for what, protect := range map[string]func() error{
		"directory": func() error { return os.Chmod(dir, 0o500) },
		"database":  func() error { return os.Chmod(filepath.Join(dir, FileName), 0o400) },
		"both": func() error {
			return errors.Join(os.Chmod(filepath.Join(dir, FileName), 0o400), os.Chmod(dir, 0o500))
		},
	} {
		db, err := Open(context.Background(), opts)
		if err != nil {
			t.Fatalf("%s: before: %v", what, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := protect(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(context.Background(), opts); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("%s without write permission: got %v, want ErrReadOnly", what, err)
		}
		if err := errors.Join(os.Chmod(dir, 0o700), os.Chmod(filepath.Join(dir, FileName), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
