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

// fullDisk is a database on a small disk, with a clock to turn.
type fullDisk struct {
	*testing.T
	disk    string
	opts    Options
	db      *DB
	seconds atomic.Int64
	kept    []int64 // ids of the updates that were acknowledged
}

const fullDiskReserve = 4 << 20

func newFullDisk(t *testing.T) *fullDisk {
	t.Helper()
	d := &fullDisk{T: t, disk: t.TempDir()}
	if err := unix.Mount("vogt-test", d.disk, "tmpfs", 0, "size=24m,mode=0700"); err != nil {
		t.Fatalf("mounting a small tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(d.disk, unix.MNT_DETACH) })
	d.opts = Options{
		Dir: filepath.Join(d.disk, "data"), Migrations: pairSchema(), Ballast: fullDiskReserve,
		Now: func() time.Time { return time.Unix(1_000_000+d.seconds.Load(), 0) },
	}
	d.db = open(t, d.opts)
	return d
}

func (d *fullDisk) reopen() {
	d.Helper()
	if err := d.db.Close(); err != nil {
		d.Errorf("closing: %v", err)
	}
	d.db = open(d.T, d.opts)
}

// add writes 40 kB in two tables, ordinarily or as a reserved update.
func (d *fullDisk) add(id int64, reserved bool) error {
	update := d.db.Update
	if reserved {
		update = d.db.UpdateReserved
	}
	body := strings.Repeat("x", 20_000)
	err := update(context.Background(), func(t store.Tx) error {
		if _, err := t.Exec(`INSERT INTO one (id, body) VALUES (?1, ?2)`, id, body); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO two (id, body) VALUES (?1, ?2)`, id, body)
		return err
	})
	if err == nil {
		d.kept = append(d.kept, id)
	}
	return err
}

func (d *fullDisk) wantFull(when string, err error) {
	d.Helper()
	if !errors.Is(err, store.ErrFull) {
		d.Errorf("%s: got %v, want ErrFull", when, err)
	}
}

func (d *fullDisk) wantDone(when string, err error) {
	d.Helper()
	if err != nil {
		d.Errorf("%s: %v", when, err)
	}
}

// wantState checks the size of the reserve, that exactly the acknowledged
// updates are there, and that the database is sound.
func (d *fullDisk) wantState(when string, reserve int64) {
	d.Helper()
	var size int64
	info, err := os.Stat(filepath.Join(d.opts.Dir, "ballast"))
	switch {
	case err == nil:
		size = info.Size()
	case !errors.Is(err, fs.ErrNotExist):
		d.Fatal(err)
	}
	if size != reserve {
		d.Errorf("%s: the reserve has %d bytes, want %d", when, size, reserve)
	}

	want := fmt.Sprint(d.kept)
	err = d.db.View(context.Background(), func(t store.Tx) error {
		for _, table := range []string{"one", "two"} {
			rows, err := t.Query(`SELECT id FROM ` + table + ` WHERE length(body) = 20000 ORDER BY id`)
			if err != nil {
				return err
			}
			var ids []int64
			for rows.Next() {
				var id int64
				if err := rows.Scan(&id); err != nil {
					return err
				}
				ids = append(ids, id)
			}
			if got := fmt.Sprint(ids); got != want {
				d.Errorf("%s: table %s holds %s, want %s", when, table, got, want)
			}
			if err := rows.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	d.wantDone(when+": view", err)
	d.wantDone(when+": check", d.db.Check(context.Background()))
}

// TestFullDisk fills a small disk under the engine.
func TestFullDisk(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	d := newFullDisk(t)

	// Ordinary updates fill the last of the disk, and then fail cleanly.
	filler := fill(t, d.disk, 400_000)
	id := int64(1)
	var err error
	for ; err == nil; id++ {
		err = d.add(id, false)
	}
	d.wantFull("the first update that does not fit", err)
	if len(d.kept) == 0 {
		t.Error("no update fitted into 400 kB")
	}
	d.wantState("full, reserve untouched", fullDiskReserve)

	// A reserved one goes through, at the reserve's expense; ordinary ones
	// must not eat the rest of it.
	d.wantDone("reserved update on a full disk", d.add(100, true))
	d.wantState("after a reserved update", 0)
	d.wantFull("ordinary update while the reserve is in use", d.add(id, false))
	d.seconds.Add(5)
	d.wantFull("ordinary update five seconds later", d.add(id, false))
	d.wantDone("second reserved update", d.add(101, true))
	d.wantState("after the second", 0)

	// Opening on a disk in that state, and space at last.
	d.reopen()
	d.wantFull("ordinary update after reopening", d.add(id, false))
	d.wantDone("reserved update after reopening", d.add(102, true))
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	d.wantFull("ordinary update within the second", d.add(id, false))
	d.seconds.Add(5)
	d.wantDone("ordinary update with space again", d.add(200, false))
	d.wantState("with space again", fullDiskReserve)

	// Opening on a disk that is full to the brim: the reserve lets it open.
	if err := d.db.Close(); err != nil {
		t.Error(err)
	}
	filler = fill(t, d.disk, 0)
	d.db = open(t, d.opts)
	d.wantState("opened on a disk full to the brim", 0)
	d.wantDone("reserved update", d.add(201, true))
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	d.seconds.Add(5)
	d.wantDone("ordinary update with space again", d.add(300, false))
	d.wantState("at the end", fullDiskReserve)

	// A backup that does not fit says so and leaves nothing.
	filler = fill(t, d.disk, 0)
	d.wantFull("backup onto a full disk", d.db.Backup(context.Background(), filepath.Join(d.disk, "copy.db")))
	if left, err := filepath.Glob(filepath.Join(d.disk, "copy*")); err != nil || len(left) != 0 {
		t.Errorf("the failed backup left %q (%v)", left, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
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
