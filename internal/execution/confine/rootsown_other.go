//go:build !linux

package confine

import (
	"io/fs"
	"path/filepath"
)

// rootsOwn are the files and folders in a folder that only root can read.
func rootsOwn(dir string) []string {
	var out []string
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // /etc is a link on macOS
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it cannot be read in the box either
		}
		info, err := d.Info()
		switch {
		case err != nil || info.Mode()&fs.ModeSymlink != 0:
		case d.IsDir() && info.Mode().Perm()&0o005 == 0:
			out = append(out, name)
			return fs.SkipDir
		case !d.IsDir() && info.Mode().Perm()&0o004 == 0:
			out = append(out, name)
		}
		return nil
	})
	return out
}
