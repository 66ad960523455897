//go:build unix

package main

import "golang.org/x/sys/unix"

// openFiles is the number of files that this process may open. Package os has
// raised the soft limit to the hard one at the start of the program.
func openFiles() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return reservedFiles
	}
	return int(min(uint64(l.Cur), 1<<20))
}
