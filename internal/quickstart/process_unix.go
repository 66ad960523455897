//go:build unix

package quickstart

import (
	"os"
	"syscall"
)

const exeSuffix = ""

// detached gives the daemon a session of its own: no terminal, no signals of
// the caller's.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// attached keeps the session but not the group: Ctrl-C reaches vogt, which
// passes it on once.
func attached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func terminate(p *os.Process) { _ = p.Signal(syscall.SIGTERM) } // it fails only when the process has ended
