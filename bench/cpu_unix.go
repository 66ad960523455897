//go:build unix

package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is the time that this process has used of the CPUs, so that
// what else runs on the machine does not count.
func processorTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
