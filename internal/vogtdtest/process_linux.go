package vogtdtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// endWithTest lets the kernel end the process when the test binary is gone.
func endWithTest(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
}

// alive reports whether a process runs. One that waits to be collected does
// not: a worker whose parent was killed is collected by whoever is init here.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The state follows the name, which may contain anything (proc_pid_stat(5)).
	_, rest, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
	return ok && len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}
