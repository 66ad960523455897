package confine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// places makes and removes what stands for missing names: a mount needs something
// to stand on. In a workspace that is a socket at which nobody listens, since git
// neither lists nor cleans such; in a repository it is an empty file, which git
// reads as nothing, or an empty folder where git may put something.
//
// As far as they can be, they are further names of what lies in store: a name costs
// a tenth of what a file does. Files share theirs only with others that are called
// the same, should somebody outside write into one.
type places struct {
	store string // folder that is kept, or empty
	path  string // of the folder that is open
	dir   int    // the folder, or -1

	sources map[string]source
}

// source is something of which there can be further names: a name in an open
// folder, or nothing if the folder is -1.
type source struct {
	dir  int
	base string
}

// placeMode is the mode of what is made, and tells it from what programs make: its
// sticky bit means nothing for a file or a socket, so that nobody sets it.
const placeMode = unix.S_ISVTX | 0o444

// kindOf is what stands for a missing name. git are those that git reads in a
// repository: an empty file, but for what is a folder to it, and but for where it
// takes every file for a reference or a log.
func kindOf(name string, git bool) uint32 {
	base := filepath.Base(name)
	switch {
	case !git:
		return unix.S_IFSOCK
	case base == "hooks" || base == "info" || strings.Contains(name, "/refs/") || strings.Contains(name, "/logs/"):
		return unix.S_IFDIR
	default:
		return unix.S_IFREG
	}
}

// enter opens the folder of a path, of which no part may be a link: a box that
// runs may have swapped one.
func (p *places) enter(name string) (base string, err error) {
	path := filepath.Dir(name)
	if p.dir >= 0 && path == p.path {
		return filepath.Base(name), nil
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	dir, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	p.leave()
	p.path, p.dir = path, dir
	return filepath.Base(name), nil
}

// leave closes the folder, unless a source is in it.
func (p *places) leave() {
	for _, s := range p.sources {
		if s.dir == p.dir {
			p.dir = -1
		}
	}
	if p.dir >= 0 {
		unix.Close(p.dir)
	}
	p.dir = -1
}

func (p *places) close() {
	p.leave()
	closed := map[int]bool{-1: true}
	for _, s := range p.sources {
		if !closed[s.dir] {
			closed[s.dir] = true
			unix.Close(s.dir)
		}
	}
}

// source is where a further name for something of a kind comes from.
func (p *places) source(kind uint32, base string) source {
	if kind == unix.S_IFSOCK {
		base = "socket"
	}
	if s, ok := p.sources[base]; ok {
		return s
	}
	s := source{-1, base}
	if p.store != "" {
		if dir, err := unix.Open(p.store, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
			if kept(dir, base, kind) {
				s.dir = dir
			} else {
				unix.Close(dir)
			}
		}
	}
	if p.sources == nil {
		p.sources = map[string]source{}
	}
	p.sources[base] = s
	return s
}

// kept reports whether a folder has something of a kind, and makes it if need be.
func kept(dir int, base string, kind uint32) bool {
	var st unix.Stat_t
	err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil && st.Mode&unix.S_IFMT == kind && isPlace(&st):
		return true
	case err == nil:
		err = unix.Unlinkat(dir, base, 0)
	case errors.Is(err, unix.ENOENT):
		err = nil
	}
	return err == nil && unix.Mknodat(dir, base, kind|placeMode, 0) == nil
}

// isPlace reports whether a file or socket is one of those that make makes, and as
// it was.
func isPlace(st *unix.Stat_t) bool {
	return st.Mode&unix.S_ISVTX != 0 && st.Size == 0 && int(st.Uid) == os.Getuid()
}

// make makes something of a kind, or an empty folder where a file system has
// nothing of it.
func (p *places) make(name string, kind uint32) error {
	base, err := p.enter(name)
	if err != nil {
		return err
	}
	if kind == unix.S_IFDIR {
		return unix.Mkdirat(p.dir, base, 0o755)
	}
	from := p.source(kind, base)
	if from.dir >= 0 {
		err := unix.Linkat(from.dir, from.base, p.dir, base, 0)
		if err == nil || errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	err = unix.Mknodat(p.dir, base, kind|placeMode, 0)
	switch {
	case errors.Is(err, unix.EEXIST):
	case err != nil:
		err = unix.Mkdirat(p.dir, base, 0o755)
	case kind == unix.S_IFSOCK && from.dir < 0:
		p.sources[from.base] = source{p.dir, base}
	}
	return err
}

// remove removes what make has made, and nothing else.
func (p *places) remove(name string) error {
	base, err := p.enter(name)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(p.dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	kind := st.Mode & unix.S_IFMT
	flags := unix.AT_REMOVEDIR // which removes empty folders only
	if kind == unix.S_IFSOCK || kind == unix.S_IFREG {
		if !isPlace(&st) {
			return unix.ENOTEMPTY
		}
		flags = 0
	}
	return unix.Unlinkat(p.dir, base, flags)
}
