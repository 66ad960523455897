//go:build unix

package secret

import (
	"io/fs"
	"os"
	"syscall"
)

// mine reports whether a file belongs to this user or to root.
func mine(st fs.FileInfo) bool {
	owner, ok := st.Sys().(*syscall.Stat_t)
	return ok && (owner.Uid == 0 || int(owner.Uid) == os.Getuid())
}
