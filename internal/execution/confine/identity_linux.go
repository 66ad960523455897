package confine

import (
	"io/fs"
	"syscall"
	"time"
)

// fileID is what changes with each change of a file's content or mode.
type fileID struct {
	device, inode uint64
	mode          uint32
	size          int64
	changed       syscall.Timespec // by the kernel alone
}

// identify returns the identity of a file, as far as it is a regular one.
func identify(info fs.FileInfo) (fileID, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return fileID{}, false
	}
	return fileID{st.Dev, st.Ino, st.Mode, st.Size, st.Ctim}, true
}

// before reports whether the last change was surely before a time. The kernel's
// time of changes goes on in steps of up to ten milliseconds.
func (f fileID) before(t time.Time) bool {
	return time.Unix(f.changed.Unix()).Add(time.Second).Before(t)
}
