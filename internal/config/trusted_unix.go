//go:build unix

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links may be followed, as in Linux.
const maxLinks = 40

func openTrusted(path string) (*os.File, error) {
	return judge{self: uint32(os.Geteuid()), unmapped: unmappedOwner}.open(path)
}

func openRootOwned(path string) (*os.File, error) {
	return judge{self: 0, unmapped: unmappedOwner}.open(path)
}

// judge decides whom the running user may believe.
type judge struct {
	self     uint32            // effective user id
	unmapped func(uint32) bool // says whether an owner has no id in this user namespace
}

func (j judge) open(path string) (*os.File, error) {
	target, err := j.resolve(path)
	if err != nil {
		return nil, err
	}
	// Not blocking, since the path may have become a FIFO; no link, since the
	// last one was followed already.
	f, err := os.OpenFile(target, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = j.file(target, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// resolve follows path to a file without links in its name, and holds every
// folder and link on the way to the rule. Since none of those can be changed by
// a third user, the answer stays true.
func (j judge) resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("config: %q is not an absolute path", path)
	}
	dir, rest, links := "/", strings.Split(path, "/"), 0
	dirInfo, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("config: %w", err)
	}
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		if err := j.folder(dir, dirInfo); err != nil {
			return "", err
		}
		next := filepath.Join(dir, name) // for "..", the parent: dir has no links
		info, err := os.Lstat(next)
		if err != nil {
			return "", fmt.Errorf("config: %w", err)
		}
		switch {
		case info.Mode().Type() == fs.ModeSymlink:
			if links++; links > maxLinks {
				return "", &UnusableError{fmt.Sprintf("%s leads through more than %d symbolic links; give the real path", path, maxLinks)}
			}
			if err := j.owner(next, info); err != nil {
				return "", err
			}
			target, err := os.Readlink(next)
			if err != nil {
				return "", fmt.Errorf("config: %w", err)
			}
			rest = append(strings.Split(target, "/"), rest...)
			if filepath.IsAbs(target) {
				next = "/"
			} else {
				next = dir
			}
			if info, err = os.Lstat(next); err != nil {
				return "", fmt.Errorf("config: %w", err)
			}
		case !info.IsDir():
			if len(rest) > 0 {
				return "", fmt.Errorf("config: %s: %w", next, syscall.ENOTDIR)
			}
			if dirInfo.Mode()&fs.ModeSticky != 0 && writableByOthers(dirInfo) {
				return "", fmt.Errorf("config: %s lies in a folder where anyone may put files (mode %s); move it to a folder of its own", next, octal(dirInfo))
			}
			return next, j.file(next, info)
		}
		dir, dirInfo = next, info
	}
	return "", &UnusableError{path + " is a folder, not a file"}
}

// folder checks a folder on the way. In a sticky one others may add entries,
// but not replace those of root and the running user.
func (j judge) folder(path string, info fs.FileInfo) error {
	if info.Mode()&fs.ModeSticky != 0 {
		return j.owner(path, info)
	}
	return errors.Join(j.owner(path, info), j.mode(path, info))
}

func (j judge) file(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return &UnusableError{fmt.Sprintf("%s is not a regular file (%s)", path, info.Mode())}
	}
	return errors.Join(j.owner(path, info), j.mode(path, info))
}

func (j judge) owner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("config: the owner of %s cannot be read on this system", path)
	}
	if stat.Uid == 0 || stat.Uid == j.self || j.unmapped(stat.Uid) {
		return nil
	}
	return fmt.Errorf("config: %s belongs to user id %d, who is neither root nor the running user (%d) and could change it; run: sudo chown -h %d %s",
		path, stat.Uid, j.self, j.self, quote(path))
}

func (j judge) mode(path string, info fs.FileInfo) error {
	if !writableByOthers(info) {
		return nil
	}
	return fmt.Errorf("config: %s can be changed by others than its owner (mode %s); run: chmod go-w %s", path, octal(info), quote(path))
}

// writableByOthers sees access control lists too: their mask is kept in the
// bits of the group (acl(5)).
func writableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

func octal(info fs.FileInfo) string {
	mode := uint32(info.Mode().Perm())
	if info.Mode()&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return fmt.Sprintf("%04o", mode)
}

// quote renders an argument for a command line in a hint.
func quote(arg string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+,:@%", r)
	}
	if arg != "" && strings.TrimFunc(arg, plain) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
