package execution

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"
)

// identify returns volume and file index of the open file f.
func identify(f *os.File, _ fs.FileInfo) (identity, error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err != nil {
		return identity{}, err
	}
	return identity{
		device: uint64(info.VolumeSerialNumber),
		inode:  uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow),
	}, nil
}

func identifyFolder(path string) (identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return identity{}, noFolder(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return identity{}, noFolder(path, err)
	}
	if !info.IsDir() {
		return identity{}, noFolder(path, syscall.ENOTDIR)
	}
	id, err := identify(f, info)
	if err != nil {
		return identity{}, noFolder(path, err)
	}
	return id, nil
}

// executable admits programs only: cmd.exe parses the arguments of a batch file
// once more, so that what was shown would not be what runs.
func executable(path string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return &Error{Kind: IsFolder, Path: path}
	case !info.Mode().IsRegular():
		return &Error{Kind: Forbidden, Path: path}
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".exe", ".com":
		return nil
	case ".bat", ".cmd":
		return &Error{Kind: Reparsed, Path: path}
	}
	return &Error{Kind: Forbidden, Path: path}
}

// variants are the files that a name may stand for: programs need not name
// their extension.
func variants(path string) []string {
	if filepath.Ext(path) != "" {
		return []string{path}
	}
	return []string{path + ".com", path + ".exe"}
}

// isOwn reports whether an entry of the environment belongs to Vogt. Names do
// not depend on case here.
func isOwn(entry string) bool {
	const prefix = "VOGT_"
	return len(entry) >= len(prefix) && strings.EqualFold(entry[:len(prefix)], prefix)
}

func cutName(entry, name string) (string, bool) {
	key, value, found := strings.Cut(entry, "=")
	return value, found && strings.EqualFold(key, name)
}

// variableName is what makes two names of variables the same.
func variableName(name string) string { return strings.ToUpper(name) }

// openImage opens a program to read it.
func openImage(path string) (file *os.File, readable bool, err error) {
	file, err = os.Open(path)
	return file, true, err
}
