//go:build linux && (amd64 || arm64)

package differential

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call says where a traced system call has its arguments.
type call int

const (
	callNone call = iota
	callExecve
	callExecveat
	callOpen
	callOpenat
	callOpenat2
	callCreat
	callMake // mkdir, mknod: path
	callMakeat
	callSymlink
	callSymlinkat
	callLink
	callLinkat
	callRename
	callRenameat
	callUnlink
	callUnlinkat
	callRmdir
	callChange // chmod, truncate, utimes: path
	callChangeat
	callChangefd
	callAddress // connect, bind
	callSendto
	callKill
	callTgkill
)

// tracedEverywhere are the calls that every architecture has.
var tracedEverywhere = map[uintptr]call{
	unix.SYS_EXECVE: callExecve, unix.SYS_EXECVEAT: callExecveat,
	unix.SYS_OPENAT: callOpenat, unix.SYS_OPENAT2: callOpenat2,
	unix.SYS_MKDIRAT: callMakeat, unix.SYS_MKNODAT: callMakeat,
	unix.SYS_SYMLINKAT: callSymlinkat, unix.SYS_LINKAT: callLinkat,
	unix.SYS_RENAMEAT: callRenameat, unix.SYS_RENAMEAT2: callRenameat,
	unix.SYS_UNLINKAT: callUnlinkat,
	unix.SYS_TRUNCATE: callChange, unix.SYS_SETXATTR: callChange, unix.SYS_LSETXATTR: callChange,
	unix.SYS_REMOVEXATTR: callChange, unix.SYS_LREMOVEXATTR: callChange,
	unix.SYS_FCHMODAT: callChangeat, unix.SYS_FCHMODAT2: callChangeat, unix.SYS_FCHOWNAT: callChangeat,
	unix.SYS_UTIMENSAT: callChangeat,
	unix.SYS_FCHMOD:    callChangefd, unix.SYS_FCHOWN: callChangefd, unix.SYS_FSETXATTR: callChangefd,
	unix.SYS_FREMOVEXATTR: callChangefd,
	unix.SYS_CONNECT:      callAddress, unix.SYS_BIND: callAddress, unix.SYS_SENDTO: callSendto,
	unix.SYS_KILL: callKill, unix.SYS_TKILL: callKill, unix.SYS_TGKILL: callTgkill,
}

// traced are the calls that stop for the tracer.
var traced = func() map[uintptr]call {
	all := map[uintptr]call{}
	for _, set := range []map[uintptr]call{tracedEverywhere, tracedHere} {
		for nr, kind := range set {
			all[nr] = kind
		}
	}
	return all
}()

// refused are calls that no line needs and that could reach the machine or
// escape the tracer.
var refused = []uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_IO_URING_SETUP, unix.SYS_SECCOMP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_SENDMSG, unix.SYS_SENDMMSG,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_PIDFD_GETFD, unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_SYSLOG,
}

// openWrites are the flags of an open that may change something.
const openWrites = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// filter is the seccomp program: foreign call tables end the process, refused
// calls fail, traced ones stop.
func filter() []unix.SockFilter {
	const (
		load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		same = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		any1 = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		more = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		give = unix.BPF_RET | unix.BPF_K

		offNumber, offArch, offArgs = 0, 4, 16
	)
	give1 := func(value uint32) unix.SockFilter { return unix.SockFilter{Code: give, K: value} }
	program := []unix.SockFilter{
		{Code: load, K: offArch},
		{Code: same, K: auditArch, Jt: 1},
		give1(unix.SECCOMP_RET_KILL_PROCESS),
		{Code: load, K: offNumber},
		{Code: more, K: 0x40000000, Jf: 1}, // x32
		give1(unix.SECCOMP_RET_KILL_PROCESS),
	}
	for _, nr := range refused {
		program = append(program, unix.SockFilter{Code: same, K: uint32(nr), Jf: 1},
			give1(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)))
	}
	program = append(program,
		// New namespaces; the kernel's callers fall back to the older call.
		unix.SockFilter{Code: same, K: unix.SYS_CLONE3, Jf: 1},
		give1(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)),
		unix.SockFilter{Code: same, K: unix.SYS_CLONE, Jf: 4},
		unix.SockFilter{Code: load, K: offArgs},
		unix.SockFilter{Code: any1, K: newNamespaces, Jf: 1},
		give1(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)),
		give1(unix.SECCOMP_RET_ALLOW))
	for nr := range traced {
		program = append(program, unix.SockFilter{Code: same, K: uint32(nr), Jf: 1}, give1(unix.SECCOMP_RET_TRACE))
	}
	return append(program, give1(unix.SECCOMP_RET_ALLOW))
}

// confine installs the filter for this thread and what it becomes.
func confine() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	program := filter()
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}
