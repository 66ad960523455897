package confine

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// renameBeside gives a file another name in its folder, if that name is free. No
// part of the path may be a link: others may change the workspace meanwhile.
func renameBeside(name, other string) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	dir, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(name), &how)
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(name), Err: err}
	}
	defer unix.Close(dir)
	if err := unix.Renameat2(dir, filepath.Base(name), dir, filepath.Base(other), unix.RENAME_NOREPLACE); err != nil {
		return &os.LinkError{Op: "rename", Old: name, New: other, Err: err}
	}
	return nil
}

// linkBeside makes a symbolic link where no part of the path is one.
func linkBeside(target, name string) error {
	return beneath(name, func(dir int, base string) error { return unix.Symlinkat(target, dir, base) })
}

// beneath does something in the folder of a path, of which no part may be a link:
// a box that runs may have swapped one.
func beneath(name string, do func(dir int, base string) error) error {
	p := &places{dir: -1}
	defer p.close()
	base, err := p.enter(name)
	if err != nil {
		return err
	}
	return do(p.dir, base)
}
