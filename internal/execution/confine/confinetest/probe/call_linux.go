//go:build amd64

package main

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// callAttempts ask the kernel for what no command in a box needs. Where it
// would obey, the arguments are such that it cannot.
func callAttempts() []attempt {
	return []attempt{
		{"iouring-setup", "", "io_uring", func([]string) (string, error) {
			var params [120]byte
			_, err := call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)))
			return "", err
		}},
		refusedCall("iouring-enter", "io_uring", unix.SYS_IO_URING_ENTER, []uintptr{nowhere, 1, 0, 0, 0, 0}, unix.EBADF),
		refusedCall("iouring-register", "io_uring", unix.SYS_IO_URING_REGISTER, []uintptr{nowhere, 0, 0, 0}, unix.EBADF, unix.EINVAL),
		refusedCall("bpf", "", unix.SYS_BPF, []uintptr{9999, 0, 0}, unix.EINVAL),
		{"bpf-map", "", "root, or unprivileged_bpf_disabled=0", func([]string) (string, error) {
			attr := [16]uint32{2, 4, 4, 1} // an array with one element
			_, err := call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
			return "", err
		}},
		{"perf", "", "root, or perf_event_paranoid below 3", perf(0)},
		{"perf-process", "PID", "the same user", func(a []string) (string, error) {
			pid, err := number(a[0])
			if err != nil {
				return "", err
			}
			return perf(pid)(nil)
		}},
		{"userfaultfd", "", "", func([]string) (string, error) {
			_, err := call(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1)
			return "", err
		}},
		{"keyctl", "", "", func([]string) (string, error) {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
			return "", err
		}},
		{"add-key", "", "", func([]string) (string, error) {
			_, err := unix.AddKey("user", "probe", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return "", err
		}},
		{"request-key", "", "", func([]string) (string, error) {
			// Without a text for it, no program of the host is started to make the key.
			kind, name := []byte("user\x00"), []byte("probe:none\x00")
			_, err := call(unix.SYS_REQUEST_KEY, uintptr(unsafe.Pointer(&kind[0])), uintptr(unsafe.Pointer(&name[0])), 0, 0)
			return reached(err, unix.ENOKEY)
		}},
		{"key-read", "KEY", "a secret as that key of the user", keyRead},
		refusedCall("reboot", "root", unix.SYS_REBOOT, []uintptr{1, 2, 3, 0}, unix.EINVAL),
		refusedCall("kexec-load", "root, kexec", unix.SYS_KEXEC_LOAD, []uintptr{0, 0, 0, 0xffff}, unix.EINVAL),
		refusedCall("kexec-file", "root, kexec", unix.SYS_KEXEC_FILE_LOAD, []uintptr{nowhere, nowhere, 0, 0, 0xffff}, unix.EINVAL),
		refusedCall("init-module", "root, modules", unix.SYS_INIT_MODULE, []uintptr{0, 0, 0}, unix.ENOEXEC, unix.EFAULT),
		refusedCall("finit-module", "root, modules", unix.SYS_FINIT_MODULE, []uintptr{nowhere, 0, 0}, unix.EBADF, unix.EFAULT),
		refusedCall("delete-module", "root, modules", unix.SYS_DELETE_MODULE, []uintptr{0, 0}, unix.EFAULT),
		onNothing("swapon", "root", unix.SYS_SWAPON, 1<<30, unix.EINVAL),
		onNothing("swapoff", "root", unix.SYS_SWAPOFF, 0, unix.ENOENT),
		onNothing("acct", "root, process accounting", unix.SYS_ACCT, 0, unix.ENOENT),
		{"quotactl", "FOLDER", "root, a filesystem with quotas", func(a []string) (string, error) {
			fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return "", err
			}
			const setQuota = 0x800008 << 8
			_, err = call(unix.SYS_QUOTACTL_FD, uintptr(fd), setQuota, 0, 0)
			return reached(err, unix.EFAULT, unix.ESRCH)
		}},
		{"sethostname", "", "root", func([]string) (string, error) { return "", sameName(unix.SYS_SETHOSTNAME, false) }},
		{"setdomainname", "", "root", func([]string) (string, error) { return "", sameName(unix.SYS_SETDOMAINNAME, true) }},
		{"settimeofday", "", "root", func([]string) (string, error) {
			_, err := call(unix.SYS_SETTIMEOFDAY, 0, 0) // no time and no zone: only the right is checked
			return "", err
		}},
		{"adjtimex", "", "root", func([]string) (string, error) {
			_, err := unix.Adjtimex(&unix.Timex{Modes: unix.ADJ_TICK}) // a tick of 0 is out of range
			return reached(err, unix.EINVAL)
		}},
		{"clock-adjtime", "", "root", func([]string) (string, error) {
			_, err := unix.ClockAdjtime(unix.CLOCK_REALTIME, &unix.Timex{Modes: unix.ADJ_TICK})
			return reached(err, unix.EINVAL)
		}},
		refusedCall("iopl", "root", unix.SYS_IOPL, []uintptr{3}),
		refusedCall("ioperm", "root", unix.SYS_IOPERM, []uintptr{0x80, 1, 1}),
		{"syslog", "", "root, or dmesg_restrict=0", func([]string) (string, error) {
			_, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 4096))
			return "", err
		}},
		{"vhangup", "", "root, no terminal", func([]string) (string, error) {
			if fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY, 0); err == nil {
				unix.Close(fd)
				return "there is a terminal, so that this is not tried", errHeld
			}
			_, err := call(unix.SYS_VHANGUP)
			return "", err
		}},
		refusedCall("modify-ldt", "", unix.SYS_MODIFY_LDT, []uintptr{0, 0, 0}),
		{"fanotify", "", "root", func([]string) (string, error) { return fanotify(0) }},
		{"fanotify-fid", "", "Linux 5.13", func([]string) (string, error) { return fanotify(unix.FAN_REPORT_FID) }},
		refusedCall("personality", "", unix.SYS_PERSONALITY, []uintptr{0x0400000}), // READ_IMPLIES_EXEC
		refusedCall("listns", "Linux 6.19", unix.SYS_LISTNS, []uintptr{0, 0, 0, 0}, unix.EINVAL, unix.EFAULT),
		{"listmount", "", "Linux 6.8", listMounts},
		{"pr-set-mm", "", "root", func([]string) (string, error) {
			err := unix.Prctl(unix.PR_SET_MM, 999, 0, 0, 0) // no such field
			return reached(err, unix.EINVAL)
		}},
		{"i386-socket", "", "IA32 emulation", otherABI("i386-socket")},
		{"i386-ptrace", "", "IA32 emulation", otherABI("i386-ptrace")},
		{"x32-socket", "", "the x32 ABI", otherABI("x32-socket")},
		refusedCall("statmount", "Linux 6.8", unix.SYS_STATMOUNT, []uintptr{0, 0, 0, 0}, unix.EINVAL, unix.EFAULT),
		refusedCall("lsm-set", "Linux 6.8", unix.SYS_LSM_SET_SELF_ATTR, []uintptr{100, 0, 0, 0}, unix.EINVAL, unix.EFAULT, unix.EOPNOTSUPP),
		{"lsm-list", "", "Linux 6.8", func([]string) (string, error) {
			var ids [32]uint64
			size := uint32(unsafe.Sizeof(ids))
			_, err := call(unix.SYS_LSM_LIST_MODULES, uintptr(unsafe.Pointer(&ids)), uintptr(unsafe.Pointer(&size)), 0)
			return "", err
		}},
		{"seccomp-listener", "", "", seccompListener},
		{"remap-pages", "", "", remapPages},
		{"seal-memory", "", "Linux 6.10", func([]string) (string, error) {
			page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
			if err != nil {
				return "", err
			}
			_, err = call(unix.SYS_MSEAL, uintptr(unsafe.Pointer(&page[0])), 4096, 0)
			return "", err
		}},
		refusedCall("futex-wait", "Linux 6.7", unix.SYS_FUTEX_WAIT, []uintptr{0, 0, 0, 0, 0, 0}, unix.EINVAL, unix.EFAULT),
		refusedCall("futex-waitv", "Linux 5.16", unix.SYS_FUTEX_WAITV, []uintptr{0, 0, 0, 0, 0}, unix.EINVAL, unix.EFAULT),
		refusedCall("shadow-stack", "a processor with shadow stacks", unix.SYS_MAP_SHADOW_STACK, []uintptr{0, 4096, 0}),
		refusedCall("clock-settime", "root", unix.SYS_CLOCK_SETTIME, []uintptr{0, 0}, unix.EFAULT),
		refusedCall("memfd-secret", "CONFIG_SECRETMEM", unix.SYS_MEMFD_SECRET, []uintptr{unix.O_CLOEXEC}),
	}
}

// nowhere is a descriptor that is not open.
const nowhere = ^uintptr(0)

// refusedCall makes an attempt of a system call whose arguments the kernel
// refuses even to those who may make it.
func refusedCall(name, needs string, sys uintptr, args []uintptr, proof ...syscall.Errno) attempt {
	return attempt{name, "", needs, func([]string) (string, error) {
		_, err := call(sys, args...)
		return reached(err, proof...)
	}}
}

// onNothing is refusedCall about a file that does not exist.
func onNothing(name, needs string, sys, second uintptr, proof ...syscall.Errno) attempt {
	return attempt{name, "", needs, func([]string) (string, error) {
		path := []byte("/nonexistent/" + sceneName + "none\x00")
		_, err := call(sys, uintptr(unsafe.Pointer(&path[0])), second)
		return reached(err, proof...)
	}}
}

func perf(pid int) func([]string) (string, error) {
	return func([]string) (string, error) {
		attr := unix.PerfEventAttr{
			Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK,
			Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
		}
		_, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		return "", err
	}
}

func keyRead(a []string) (string, error) {
	key, err := number(a[0])
	if err != nil {
		return "", err
	}
	buffer := make([]byte, 256)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, key, buffer, 0)
	if err != nil {
		return "", err
	}
	return secret(buffer[:min(n, len(buffer))])
}

// sameName sets a name of the machine to what it is.
func sameName(sys uintptr, domain bool) error {
	var names unix.Utsname
	if err := unix.Uname(&names); err != nil {
		return err
	}
	name := names.Nodename
	if domain {
		name = names.Domainname
	}
	_, err := call(sys, uintptr(unsafe.Pointer(&name[0])), uintptr(len(unix.ByteSliceToString(name[:]))))
	return err
}

func fanotify(flags uint) (string, error) {
	_, err := unix.FanotifyInit(flags|unix.FAN_CLOEXEC, uint(os.O_RDONLY))
	return "", err
}

// listMounts asks for the mounts below the root, which tells about the machine.
func listMounts([]string) (string, error) {
	request := struct {
		size, spare  uint32
		mount, param uint64
	}{24, 0, ^uint64(0), 0}
	var ids [64]uint64
	_, err := call(unix.SYS_LISTMOUNT, uintptr(unsafe.Pointer(&request)), uintptr(unsafe.Pointer(&ids)), uintptr(len(ids)), 0)
	return "", err
}

// seccompListener installs, in a child, a filter that permits everything and
// lets another process answer for calls.
func seccompListener([]string) (string, error) {
	const setFilter, newListener, permit = 1, 1 << 3, 0x7fff0000
	code := [1]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: permit}}
	program := unix.SockFprog{Len: 1, Filter: &code[0]}
	return "", forked(0,
		step{unix.SYS_PRCTL, [6]uintptr{unix.PR_SET_NO_NEW_PRIVS, 1}},
		step{unix.SYS_SECCOMP, [6]uintptr{setFilter, newListener, uintptr(unsafe.Pointer(&program))}})
}

func remapPages([]string) (string, error) {
	pages, err := unix.Mmap(-1, 0, 2*4096, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_ANON)
	if err != nil {
		return "", err
	}
	_, err = call(unix.SYS_REMAP_FILE_PAGES, uintptr(unsafe.Pointer(&pages[0])), 4096, 0, 1, 0)
	return "", err
}
