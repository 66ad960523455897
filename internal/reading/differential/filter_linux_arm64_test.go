package differential

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_AARCH64

// tracedHere is empty: arm64 never had the calls without a directory.
var tracedHere = map[uintptr]call{}

// deny makes the call that pid is about to make fail with EACCES.
func deny(pid int) {
	const systemCall = 0x404 // NT_ARM_SYSTEM_CALL: the number, apart from the registers
	none := int32(-1)
	vector := unix.Iovec{Base: (*byte)(unsafe.Pointer(&none)), Len: 4}
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SETREGSET, uintptr(pid), systemCall,
		uintptr(unsafe.Pointer(&vector)), 0, 0); errno != 0 {
		return
	}
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(pid, &regs) != nil {
		return
	}
	regs.Regs[0] = ^uint64(unix.EACCES) + 1
	_ = syscall.PtraceSetRegs(pid, &regs)
}
