package doctor

import (
	"io/fs"
	"os"
	"os/user"

	"golang.org/x/sys/windows"
)

// hasModes tells that files have no permission bits here: access lists decide,
// which this version does not read.
const hasModes = false

func ownerOf(fs.FileInfo) (uid int, known bool) { return 0, false }

func privateGroup(fs.FileInfo) bool { return false }

func writable(path string) bool {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return err == nil
}

func freeSpace(dir string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	return free, windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
}

func openRegular(path string) (*os.File, error) { return os.Open(path) }

func userName() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}
