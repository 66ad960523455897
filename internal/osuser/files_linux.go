package osuser

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is the files of a machine. No path in it is followed through a symbolic
// link, whoever made it: what stands in a path is what is meant.
type tree struct{ root string }

// largest is the most that is read of a file.
const largest = 4 << 20

// trust says what the folders on the way to a file must be.
type trust int

const (
	rootOnly trust = iota // root's, and closed to the writing of others: for writing
	anyOwner              // for looking
)

// folder opens a folder. The caller closes it.
func (t tree) folder(p string, need trust) (*os.File, error) {
	fd, err := unix.Open(t.root+"/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("osuser: open %s/: %w", t.root, err)
	}
	at := ""
	for name := range strings.SplitSeq(strings.TrimPrefix(path.Clean(p), "/"), "/") {
		if name == "" {
			continue
		}
		at += "/" + name
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			err = explainOpen(fd, name, at, err)
		} else if need == rootOnly {
			err = trusted(next, at)
		}
		unix.Close(fd)
		if err != nil {
			if next >= 0 {
				unix.Close(next)
			}
			return nil, err
		}
		fd = next
	}
	return os.NewFile(uintptr(fd), p), nil
}

func explainOpen(fd int, name, at string, err error) error {
	var stat unix.Stat_t
	if unix.Fstatat(fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil && stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		return fmt.Errorf("osuser: %s is a symbolic link, and links are not followed here; put the real thing in its place", at)
	}
	return fmt.Errorf("osuser: open %s: %w", at, err)
}

func trusted(fd int, at string) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("osuser: look at %s: %w", at, err)
	}
	if stat.Uid != 0 {
		return fmt.Errorf("osuser: %s belongs to user id %d, who could replace what root puts there; choose another folder, or run: chown root %s", at, stat.Uid, at)
	}
	if stat.Mode&0o022 != 0 {
		return fmt.Errorf("osuser: %s can be changed by others than root (mode %04o); choose another folder, or run: chmod go-w %s", at, stat.Mode&0o7777, at)
	}
	return nil
}

// in opens the folder of a path and calls do with it and the last name.
func (t tree) in(p string, need trust, do func(dir *os.File, name string) error) error {
	dir, err := t.folder(path.Dir(p), need)
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(dir, path.Base(p))
}

// lstat looks at a path. That nothing is there is no error.
func (t tree) lstat(p string) (stat unix.Stat_t, there bool, err error) {
	err = t.in(p, anyOwner, func(dir *os.File, name string) error {
		return unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return stat, false, nil
	}
	if err != nil {
		return stat, false, fmt.Errorf("osuser: look at %s: %w", p, err)
	}
	return stat, true, nil
}

func isFolder(stat unix.Stat_t) bool { return stat.Mode&unix.S_IFMT == unix.S_IFDIR }

// read returns a regular file. That nothing is there is no error.
func (t tree) read(p string) (data []byte, there bool, err error) {
	err = t.in(p, anyOwner, func(dir *os.File, name string) error {
		data, _, err = readAt(dir, name, p)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return data, err == nil, err
}

func readAt(dir *os.File, name, p string) ([]byte, unix.Stat_t, error) {
	var stat unix.Stat_t
	// Not blocking, since it may be a FIFO.
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, stat, explainOpen(int(dir.Fd()), name, p, err)
	}
	f := os.NewFile(uintptr(fd), p)
	defer f.Close()
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, stat, fmt.Errorf("osuser: look at %s: %w", p, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, stat, fmt.Errorf("osuser: %s is not a regular file", p)
	}
	data, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err == nil && len(data) > largest {
		err = fmt.Errorf("it has more than %d bytes", largest)
	}
	if err != nil {
		return nil, stat, fmt.Errorf("osuser: read %s: %w", p, err)
	}
	return data, stat, nil
}

// temporary is the name under which a file is written before it is there. It is
// always the same, so that what a crash left is found by the next attempt.
func temporary(name string) string { return "." + name + ".vogt-new" }

// create makes a file of root's that must not exist yet. A crash leaves all of
// it or nothing but the temporary file.
func (t tree) create(p, text string, mode uint32, need trust) error {
	return t.in(p, need, func(dir *os.File, name string) error {
		return put(dir, name, p, text, file{mode: mode, fresh: true})
	})
}

// file is what a file that is written becomes.
type file struct {
	mode, uid, gid uint32
	fresh          bool // it must not exist yet
}

func put(dir *os.File, name, p, text string, as file) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("osuser: write %s: %w", p, err)
		}
	}()
	at, temp := int(dir.Fd()), temporary(name)
	if err := unix.Unlinkat(at, temp, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fd, err := unix.Openat(at, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), temp)
	_, err = f.WriteString(text)
	if err == nil {
		err = unix.Fchown(fd, int(as.uid), int(as.gid))
	}
	if err == nil { // after the owner, since a change of owner clears bits
		err = unix.Fchmod(fd, as.mode)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		var flags uint
		if as.fresh {
			flags = unix.RENAME_NOREPLACE
		}
		err = unix.Renameat2(at, temp, at, name, flags)
	}
	if err != nil {
		unix.Unlinkat(at, temp, 0) // what stays is removed by the next attempt
		return err
	}
	return dir.Sync()
}

// remove deletes a file, not a folder. That nothing is there is no error.
func (t tree) remove(p string, need trust) error {
	err := t.in(p, need, func(dir *os.File, name string) error {
		if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil {
			return fmt.Errorf("osuser: remove %s: %w", p, err)
		}
		return dir.Sync()
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// mkdir makes a folder of root's.
func (t tree) mkdir(p string, mode uint32) error {
	return t.in(p, rootOnly, func(dir *os.File, name string) error {
		if err := makeFolder(dir, name, file{mode: mode}); err != nil {
			return fmt.Errorf("osuser: make the folder %s: %w", p, err)
		}
		return dir.Sync()
	})
}

// makeFolder makes a folder with its owner and mode, whatever the umask.
func makeFolder(dir *os.File, name string, as file) error {
	if err := unix.Mkdirat(int(dir.Fd()), name, 0o700); err != nil {
		return err
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return errors.Join(unix.Fchown(fd, int(as.uid), int(as.gid)), unix.Fchmod(fd, as.mode))
}

// errNotEmpty says that a folder has something in it.
var errNotEmpty = errors.New("the folder is not empty")

// rmdir removes an empty folder. That nothing is there is no error.
func (t tree) rmdir(p string, need trust) error {
	err := t.in(p, need, func(dir *os.File, name string) error {
		err := unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
			return errNotEmpty
		}
		if err != nil {
			return fmt.Errorf("osuser: remove the folder %s: %w", p, err)
		}
		return dir.Sync()
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// move renames within the tree and replaces nothing.
func (t tree) move(from, to string) error {
	return t.in(from, rootOnly, func(dir *os.File, name string) error {
		return t.in(to, rootOnly, func(into *os.File, as string) error {
			if err := unix.Renameat2(int(dir.Fd()), name, int(into.Fd()), as, unix.RENAME_NOREPLACE); err != nil {
				return fmt.Errorf("osuser: move %s to %s: %w", from, to, err)
			}
			return errors.Join(into.Sync(), dir.Sync())
		})
	})
}

// names lists a folder. That nothing is there is no error.
func (t tree) names(p string) ([]string, error) {
	dir, err := t.folder(p, anyOwner)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

// hasLine reports whether a text has the line, as cron and at compare them.
func hasLine(text []byte, line string) bool {
	for l := range strings.Lines(string(text)) {
		if strings.TrimRight(l, "\r\n") == line {
			return true
		}
	}
	return false
}

// addLine puts a line at the end of a file, which it makes if it is missing.
func (t tree) addLine(p, line string) error {
	return t.rewrite(p, func(text string) string {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text + line + "\n"
	})
}

// dropLine undoes addLine: it removes the line wherever it stands by now. A file
// of our own goes too if nothing else is in it.
func (t tree) dropLine(made step, ours bool) (gone bool, err error) {
	without := func(text string) string {
		var b strings.Builder
		last := false
		for l := range strings.Lines(text) {
			if last = strings.TrimRight(l, "\r\n") == made.Text; !last {
				b.WriteString(l)
			}
		}
		if last && made.Open {
			return strings.TrimSuffix(b.String(), "\n")
		}
		return b.String()
	}
	data, there, err := t.read(made.Path)
	if err != nil || !there || !hasLine(data, made.Text) {
		return !there, err
	}
	if ours && without(string(data)) == "" {
		return true, t.remove(made.Path, rootOnly) // which works on a full disk, too
	}
	return false, t.rewrite(made.Path, without)
}

// rewrite replaces a file of the system by an edited one with the same owner and
// mode, at once and whole.
func (t tree) rewrite(p string, edit func(string) string) error {
	return t.in(p, rootOnly, func(dir *os.File, name string) error {
		data, before, err := readAt(dir, name, p)
		as := file{mode: before.Mode & 0o7777, uid: before.Uid, gid: before.Gid}
		if errors.Is(err, fs.ErrNotExist) {
			return put(dir, name, p, edit(""), file{mode: 0o644, fresh: true})
		}
		if err != nil {
			return err
		}
		text := edit(string(data))
		var now unix.Stat_t
		if err := unix.Fstatat(int(dir.Fd()), name, &now, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("osuser: look at %s: %w", p, err)
		}
		if now.Ino != before.Ino || now.Mtim != before.Mtim || now.Size != before.Size {
			return fmt.Errorf("osuser: %s was changed by somebody else meanwhile; try again", p)
		}
		return put(dir, name, p, text, as)
	})
}
