//go:build !linux

package confine

import (
	"io/fs"
	"os"
)

// renameBeside gives a file another name in its folder, if that name is free.
func renameBeside(name, other string) error {
	if _, err := os.Lstat(other); err == nil {
		return &os.LinkError{Op: "rename", Old: name, New: other, Err: fs.ErrExist}
	}
	return os.Rename(name, other)
}

// linkBeside makes a symbolic link.
func linkBeside(target, name string) error { return os.Symlink(target, name) }
