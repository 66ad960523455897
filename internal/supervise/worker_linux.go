package supervise

import "syscall"

// dieWithParent lets the worker get SIGTERM when the parent dies, so that no
// worker without a parent keeps port and data directory.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
