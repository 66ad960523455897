//go:build !linux

package vogtdtest

import (
	"os"
	"os/exec"
	"syscall"
)

// endWithTest leaves it to the test's end, which kills what it started.
func endWithTest(*exec.Cmd) {}

// alive reports whether a process runs.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	return p.Signal(syscall.Signal(0)) == nil
}
