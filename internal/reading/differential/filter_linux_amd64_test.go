package differential

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_X86_64

// tracedHere are the older calls of this architecture.
var tracedHere = map[uintptr]call{
	unix.SYS_OPEN: callOpen, unix.SYS_CREAT: callCreat,
	unix.SYS_MKDIR: callMake, unix.SYS_MKNOD: callMake, unix.SYS_SYMLINK: callSymlink, unix.SYS_LINK: callLink,
	unix.SYS_RENAME: callRename, unix.SYS_UNLINK: callUnlink, unix.SYS_RMDIR: callRmdir,
	unix.SYS_CHMOD: callChange, unix.SYS_CHOWN: callChange, unix.SYS_LCHOWN: callChange,
	unix.SYS_UTIME: callChange, unix.SYS_UTIMES: callChange, unix.SYS_FUTIMESAT: callChangeat,
}

// deny makes the call that pid is about to make fail with EACCES.
func deny(pid int) {
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(pid, &regs) != nil {
		return
	}
	regs.Orig_rax = ^uint64(0)
	regs.Rax = ^uint64(unix.EACCES) + 1
	_ = syscall.PtraceSetRegs(pid, &regs)
}
