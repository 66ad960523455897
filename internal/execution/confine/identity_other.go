//go:build !linux

package confine

import (
	"io/fs"
	"time"
)

// fileID would be what changes with each change of a file. Elsewhere every file is
// read again.
type fileID struct{}

func identify(fs.FileInfo) (fileID, bool) { return fileID{}, false }

func (fileID) before(time.Time) bool { return false }
