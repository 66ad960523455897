package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile bounds what is read: configuration is written by hand.
const maxFile = 1 << 20

// ReadTrusted returns the content of the file at an absolute path, if only root
// and the running user could have written it.
//
// Refused are: a file, or a folder on the way to it, that others than its owner
// can write; one that belongs to neither root nor the running user; and
// anything but a regular file of at most 1 MiB. Symbolic links are followed,
// and every link and folder on the way is held to the same rule. A sticky
// folder such as /tmp may lie on the way, but the file may not lie directly in
// one. Errors say which command mends the cause. A missing file is
// fs.ErrNotExist under errors.Is.
func ReadTrusted(path string) ([]byte, error) {
	f, err := openTrusted(path)
	return readAll(f, err, path)
}

// ReadRootOwned is ReadTrusted for a file that only root may have written, the
// running user not. On Windows the administrators and the running user count.
func ReadRootOwned(path string) ([]byte, error) {
	f, err := openRootOwned(path)
	return readAll(f, err, path)
}

func readAll(f *os.File, err error, path string) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if len(data) > maxFile {
		return nil, &UnusableError{fmt.Sprintf("%s is larger than %d bytes, which no configuration is; look what it is", path, maxFile)}
	}
	return data, nil
}

// UnusableError is why nothing can be read where only those who may have
// written: there is no file, or none that is configuration.
type UnusableError struct{ Reason string }

func (e *UnusableError) Error() string { return "config: " + e.Reason }

// Named is a file's name and content, or why it has none.
type Named struct {
	Name, Path string
	Content    []byte
	Unusable   *UnusableError
}

// ReadRootOwnedFolder reads the files of a folder whose names are wanted as
// ReadRootOwned does, sorted by name. Folders are left out. A folder that does
// not exist is empty. A file that others than root could have written is an
// error for the whole folder.
func ReadRootOwnedFolder(folder string, wanted func(name string) bool) ([]Named, error) {
	files, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	var out []Named
	for _, f := range files {
		if f.IsDir() || !wanted(f.Name()) {
			continue
		}
		named := Named{Name: f.Name(), Path: filepath.Join(folder, f.Name())}
		if named.Content, err = ReadRootOwned(named.Path); err != nil {
			unusable, ok := errors.AsType[*UnusableError](err)
			switch {
			case ok:
			case errors.Is(err, fs.ErrNotExist):
				unusable, ok = &UnusableError{named.Path + " leads to no file"}, true
			case errors.Is(err, fs.ErrPermission):
				unusable, ok = &UnusableError{"you may not read " + named.Path + "; run: sudo chmod a+r " + named.Path}, true
			}
			if !ok {
				return nil, err
			}
			named.Unusable = unusable
		}
		out = append(out, named)
	}
	return out, nil
}
