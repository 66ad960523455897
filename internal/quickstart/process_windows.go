package quickstart

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

const exeSuffix = ".exe"

func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}

func attached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

func terminate(p *os.Process) { _ = p.Kill() } // it fails only when the process has ended
