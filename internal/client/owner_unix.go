//go:build unix

package client

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// foreign says whose a file is that neither the running user nor root owns, and
// is "" for every other. Its owner could read and change it at any time.
func foreign(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 || int(stat.Uid) == os.Geteuid() {
		return ""
	}
	return fmt.Sprintf("it belongs to user id %d, who is neither root nor the running user (%d)", stat.Uid, os.Geteuid())
}
