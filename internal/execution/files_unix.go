//go:build unix

package execution

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// identify returns the identity of the open file f, whose Stat gave info.
func identify(_ *os.File, info fs.FileInfo) (identity, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, errors.ErrUnsupported
	}
	return identity{device: uint64(stat.Dev), inode: uint64(stat.Ino)}, nil
}

// identifyFolder needs no permission to list the folder.
func identifyFolder(path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, noFolder(path, err)
	}
	if !info.IsDir() {
		return identity{}, noFolder(path, syscall.ENOTDIR)
	}
	return identify(nil, info)
}

// executable asks the system whether this process may execute the file, which
// also covers access lists and file systems mounted noexec.
func executable(path string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return &Error{Kind: IsFolder, Path: path}
	case !info.Mode().IsRegular():
		return &Error{Kind: Forbidden, Path: path}
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return &Error{Kind: Forbidden, Path: path}
	}
	return nil
}

// variants are the files that a name may stand for.
func variants(path string) []string { return []string{path} }

// isOwn reports whether an entry of the environment belongs to Vogt.
func isOwn(entry string) bool { return strings.HasPrefix(entry, "VOGT_") }

func cutName(entry, name string) (string, bool) { return strings.CutPrefix(entry, name+"=") }

// variableName is what makes two names of variables the same.
func variableName(name string) string { return name }
