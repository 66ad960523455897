package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
		return nil, fmt.Errorf("config: %s is larger than %d bytes, which no configuration is; look what it is", path, maxFile)
	}
	return data, nil
}

// Named is a file's name and content.
type Named struct {
	Name, Path string
	Content    []byte
}

// ReadRootOwnedFolder reads every file of a folder as ReadRootOwned does,
// sorted by name. Folders, files whose names begin with a dot and those that
// end in a tilde are left out. A folder that does not exist is empty.
func ReadRootOwnedFolder(folder string) ([]Named, error) {
	files, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	var out []Named
	for _, f := range files {
		if f.IsDir() || strings.HasPrefix(f.Name(), ".") || strings.HasSuffix(f.Name(), "~") {
			continue
		}
		path := filepath.Join(folder, f.Name())
		content, err := ReadRootOwned(path)
		if err != nil {
			return nil, err
		}
		out = append(out, Named{f.Name(), path, content})
	}
	return out, nil
}
