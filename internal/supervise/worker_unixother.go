//go:build unix && !linux

package supervise

import "syscall"

// dieWithParent does nothing: there is no parent-death signal here.
func dieWithParent(*syscall.SysProcAttr) {}
