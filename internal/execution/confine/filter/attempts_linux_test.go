package filter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempts are all that TestInstalled makes. As root they run on the machine
// itself, so what they ask for is harmless where it is granted.
func attempts() []attempt {
	return slices.Concat(socketAttempts(), namespaceAttempts(), processAttempts(), callAttempts(), terminalAttempts(), doorAttempts(), installAttempts())
}

// made makes a system call. Arguments are int, uintptr or unsafe.Pointer: as a
// pointer, what is pointed to stays where it is.
func made(number uintptr, args ...any) error {
	var all [6]uintptr
	for i, a := range args {
		switch a := a.(type) {
		case int:
			all[i] = uintptr(a)
		case uintptr:
			all[i] = a
		case unsafe.Pointer:
			all[i] = uintptr(a)
		default:
			return fmt.Errorf("argument %d is a %T", i, a)
		}
	}
	_, _, errno := unix.RawSyscall6(number, all[0], all[1], all[2], all[3], all[4], all[5])
	runtime.KeepAlive(args)
	return orNil(errno)
}

// calling is an attempt that is one system call.
func calling(number uintptr, args ...any) func(guard) error {
	return func(g guard) error {
		if err := g.thread(); err != nil {
			return err
		}
		return made(number, args...)
	}
}

// socketAttempts make sockets. They send nothing.
func socketAttempts() []attempt {
	const mptcp, audit, uevent = unix.IPPROTO_MPTCP, unix.NETLINK_AUDIT, unix.NETLINK_KOBJECT_UEVENT
	const high = uintptr(0xdeadbeef << 32)
	inet, datagram, unixes := Options{Inet: true}, Options{Inet: true, Datagram: true}, Options{Unix: true}
	socket := func(family, kind, protocol any) func(guard) error {
		return calling(unix.SYS_SOCKET, family, kind, protocol)
	}
	pair := func(family, kind any) func(guard) error {
		var ends [2]int32
		return calling(unix.SYS_SOCKETPAIR, family, kind, 0, unsafe.Pointer(&ends))
	}
	return []attempt{
		{name: "tcp", bare: ok, want: "EPERM", try: socket(unix.AF_INET, unix.SOCK_STREAM, 0)},
		{name: "tcp with odd bits", bare: ok, want: "EPERM", try: socket(high|unix.AF_INET, high|unix.SOCK_STREAM|unix.SOCK_CLOEXEC, high)},
		{name: "tcp permitted", options: inet, bare: ok, try: socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)},
		{name: "tcp permitted with odd bits", options: inet, bare: ok, try: socket(high|unix.AF_INET, high|unix.SOCK_STREAM, high|unix.IPPROTO_TCP)},
		{name: "tcp 6", bare: ok, want: "EPERM", needs: "IPv6", try: socket(unix.AF_INET6, unix.SOCK_STREAM, 0)},
		{name: "tcp 6 permitted", options: inet, bare: ok, needs: "IPv6", try: socket(unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP)},
		{name: "udp", options: inet, bare: ok, want: "EPERM", try: socket(unix.AF_INET, unix.SOCK_DGRAM, 0)},
		{name: "udp permitted", options: datagram, bare: ok, try: socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP)},
		{name: "mptcp", options: datagram, bare: ok, want: "EPROTONOSUPPORT", needs: "MPTCP", try: socket(unix.AF_INET, unix.SOCK_STREAM, mptcp)},
		{name: "mptcp with odd bits", options: datagram, bare: ok, want: "EPROTONOSUPPORT", needs: "MPTCP", try: socket(unix.AF_INET, unix.SOCK_STREAM, high|mptcp)},
		{name: "udplite", options: datagram, bare: ok, want: "EPROTONOSUPPORT", needs: "UDP-Lite", try: socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE)},
		{name: "sctp", options: datagram, bare: ok, want: "EPROTONOSUPPORT", needs: "SCTP", try: socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)},
		{name: "ping", options: datagram, bare: ok, want: "EPROTONOSUPPORT", needs: "net.ipv4.ping_group_range", try: socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)},
		{name: "raw", options: datagram, bare: ok, want: "EPERM", root: true, needs: "CAP_NET_RAW", try: socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
		{name: "packet", options: datagram, bare: ok, want: "EAFNOSUPPORT", root: true, needs: "CAP_NET_RAW", try: socket(unix.AF_PACKET, unix.SOCK_RAW, 0)},
		{name: "packet of old", options: datagram, bare: ok, want: "EPERM", root: true, needs: "CAP_NET_RAW", try: socket(unix.AF_INET, unix.SOCK_PACKET, 0)},
		{name: "vsock", options: datagram, bare: ok, want: "EAFNOSUPPORT", needs: "vsock", try: socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{name: "alg", options: datagram, bare: ok, want: "EAFNOSUPPORT", needs: "AF_ALG", try: socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
		{name: "route", bare: ok, try: socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)},
		{name: "audit", options: datagram, bare: ok, want: "EPROTONOSUPPORT", needs: "audit", try: socket(unix.AF_NETLINK, unix.SOCK_RAW, audit)},
		{name: "uevent", options: datagram, bare: ok, want: "EPROTONOSUPPORT", try: socket(unix.AF_NETLINK, unix.SOCK_RAW, uevent)},
		{name: "uevent with odd bits", options: datagram, bare: ok, want: "EPROTONOSUPPORT", try: socket(unix.AF_NETLINK, unix.SOCK_RAW, high|uevent)},
		{name: "unix stream", options: datagram, bare: ok, want: "EPERM", try: socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)},
		{name: "unix datagram", options: datagram, bare: ok, want: "EPERM", try: socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)},
		{name: "unix permitted", options: unixes, bare: ok, try: socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)},
		{name: "pair of streams", bare: ok, try: pair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC)},
		{name: "pair of seqpackets", bare: ok, try: pair(unix.AF_UNIX, unix.SOCK_SEQPACKET)},
		{name: "pair of datagrams", options: datagram, bare: ok, want: "EPERM", try: pair(unix.AF_UNIX, unix.SOCK_DGRAM)},
		{name: "pair of raw", options: datagram, bare: ok, want: "EPERM", try: pair(unix.AF_UNIX, unix.SOCK_RAW)},
		{name: "pair of datagrams with odd bits", options: datagram, bare: ok, want: "EPERM", try: pair(high|unix.AF_UNIX, high|unix.SOCK_DGRAM|unix.SOCK_CLOEXEC)},
		{name: "pair of datagrams permitted", options: unixes, bare: ok, try: pair(unix.AF_UNIX, unix.SOCK_DGRAM)},
		{name: "pair reconnected", bare: "EISCONN", try: reconnect},
	}
}

// reconnect shows what the pairs rest on that are permitted: neither end can be
// pointed at another socket, even after the other end is gone.
func reconnect(g guard) error {
	listener, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return setUp(err)
	}
	if err := errors.Join(unix.Bind(listener, &unix.SockaddrUnix{}), unix.Listen(listener, 1)); err != nil { // a name that the kernel chooses
		return setUp(err)
	}
	name, err := unix.Getsockname(listener)
	if err != nil {
		return setUp(err)
	}
	if err := g.thread(); err != nil {
		return err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Sendto(ends[0], []byte("x"), 0, name); err == nil {
		return errors.New("an end of a pair sent to a name")
	}
	if err := unix.Connect(ends[0], name); err == nil {
		return errors.New("an end of a pair was connected")
	}
	unix.Close(ends[1])
	return unix.Connect(ends[0], name)
}

// forked makes a process by clone with the flags, which makes a call and ends.
//
// Between clone and exit_group the child runs nothing but raw system calls: the
// Go runtime does not know of it.
func forked(flags, number, argument uintptr) error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		_, _, errno = unix.RawSyscall(number, argument, 0, 0)
		unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
	return ended(int(pid))
}

// ended waits for a child whose exit code is an error number.
func ended(pid int) error {
	var status unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &status, 0, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return err
		}
	}
	if status.Signaled() {
		return errors.New(unix.SignalName(status.Signal()))
	}
	return orNil(syscall.Errno(status.ExitStatus()))
}

func namespaceAttempts() []attempt {
	const users, high = "user namespaces for everybody", 0xdeadbeef << 32
	clone := func(flags uintptr) func(guard) error {
		return func(g guard) error {
			if err := g.thread(); err != nil {
				return err
			}
			return forked(flags, unix.SYS_GETPID, 0)
		}
	}
	unshare := func(flags uintptr) func(guard) error {
		return func(g guard) error {
			if err := g.thread(); err != nil {
				return err
			}
			return forked(0, unix.SYS_UNSHARE, flags) // which has one thread, as a user namespace asks
		}
	}
	all := []attempt{
		{name: "clone", bare: ok, try: clone(0)},
		{name: "clone with odd bits", bare: ok, try: clone(high)},
		{name: "unshare files", bare: ok, try: unshare(unix.CLONE_FILES | unix.CLONE_FS)},
		{name: "unshare odd bits", bare: "EINVAL", want: "EPERM", try: unshare(high)},
		{name: "unshare of time", bare: ok, want: "EPERM", root: true, needs: "CAP_SYS_ADMIN and time namespaces", try: unshare(unix.CLONE_NEWTIME)},
		{name: "clone3 of users", bare: ok, want: "ENOSYS", needs: users, try: clone3(unix.CLONE_NEWUSER)},
		{name: "clone3", bare: ok, want: "ENOSYS", needs: "clone3", try: clone3(0)},
		{name: "another namespace", bare: "EBADF", want: "EPERM", try: calling(unix.SYS_SETNS, -1, 0)},
	}
	for name, flag := range map[string]uintptr{"mounts": unix.CLONE_NEWNS, "processes": unix.CLONE_NEWPID, "network": unix.CLONE_NEWNET,
		"ipc": unix.CLONE_NEWIPC, "names": unix.CLONE_NEWUTS, "cgroups": unix.CLONE_NEWCGROUP, "users": 0} {
		all = append(all,
			attempt{name: "clone of " + name, bare: ok, want: "EPERM", needs: users, try: clone(flag | unix.CLONE_NEWUSER)},
			attempt{name: "clone with odd bits of " + name, bare: ok, want: "EPERM", needs: users, try: clone(high | flag | unix.CLONE_NEWUSER)},
			attempt{name: "unshare of " + name, bare: ok, want: "EPERM", needs: users, try: unshare(flag | unix.CLONE_NEWUSER)})
		if flag != 0 {
			all = append(all,
				attempt{name: "clone of only " + name, bare: ok, want: "EPERM", root: true, needs: "CAP_SYS_ADMIN", try: clone(flag)},
				attempt{name: "unshare of only " + name, bare: ok, want: "EPERM", root: true, needs: "CAP_SYS_ADMIN", try: unshare(flag)})
		}
	}
	return all
}

func clone3(flags uint64) func(guard) error {
	// The first version of struct clone_args.
	args := struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64 }{flags: flags, exitSignal: uint64(unix.SIGCHLD)}
	return func(g guard) error {
		if err := g.thread(); err != nil {
			return err
		}
		pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		return ended(int(pid))
	}
}

// processAttempts look into a process: this one, which it could do without.
func processAttempts() []attempt {
	self := os.Getpid()
	const none = -1
	var page [16]byte
	vector := unix.Iovec{Base: &page[0], Len: uint64(len(page))}
	copied := [4]any{unsafe.Pointer(&vector), 1, unsafe.Pointer(&vector), 1}
	return []attempt{
		{name: "ptrace", bare: ok, want: "EPERM", try: calling(unix.SYS_PTRACE, unix.PTRACE_TRACEME)},
		{name: "ptrace of another", bare: "ESRCH", want: "EPERM", try: calling(unix.SYS_PTRACE, unix.PTRACE_SEIZE, none, 0, 0)},
		{name: "process_vm_readv", bare: ok, want: "EPERM", try: calling(unix.SYS_PROCESS_VM_READV, self, copied[0], copied[1], copied[2], copied[3], 0)},
		{name: "process_vm_writev", bare: ok, want: "EPERM", try: calling(unix.SYS_PROCESS_VM_WRITEV, self, copied[0], copied[1], copied[2], copied[3], 0)},
		{name: "kcmp", bare: ok, want: "EPERM", needs: "kcmp", try: calling(unix.SYS_KCMP, self, self, 0, 1, 1)},
		{name: "pidfd_getfd", bare: ok, want: "EPERM", try: func(g guard) error {
			process, err := unix.PidfdOpen(self, 0)
			if err != nil {
				return setUp(err)
			}
			if err := g.thread(); err != nil {
				return err
			}
			return made(unix.SYS_PIDFD_GETFD, process, 1, 0)
		}},
		{name: "memory descriptor and execveat", bare: ok, want: "EPERM", try: throughMemory("ptrace")},
		{name: "memory descriptor and execveat of sockets", bare: ok, want: "EPERM", try: throughMemory("tcp")},
		{name: "programs", bare: ok, try: programs},
		{name: "threads", bare: ok, try: threads},
	}
}

// throughMemory becomes a copy of this program that has no file, which makes
// another attempt without installing anything.
func throughMemory(name string) func(guard) error {
	return func(g guard) error {
		own, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			return setUp(err)
		}
		if err := g.thread(); err != nil {
			return err
		}
		return become(own, attemptVariable+"="+name, guardVariable+"="+unguarded)
	}
}

// become executes a program that is in memory only.
func become(program []byte, environ ...string) error {
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	if err != nil {
		return setUp(err)
	}
	memory := os.NewFile(uintptr(fd), "program")
	if _, err := memory.Write(program); err != nil {
		return setUp(err)
	}
	argv, err := syscall.SlicePtrFromStrings([]string{"program"})
	if err != nil {
		return setUp(err)
	}
	envp, err := syscall.SlicePtrFromStrings(environ)
	if err != nil {
		return setUp(err)
	}
	var empty [1]byte
	return made(unix.SYS_EXECVEAT, uintptr(fd), unsafe.Pointer(&empty), unsafe.Pointer(&argv[0]), unsafe.Pointer(&envp[0]), unix.AT_EMPTY_PATH)
}

// programs runs other programs as agents do, under the strictest filter.
func programs(g guard) error {
	if err := g.thread(); err != nil {
		return err
	}
	out, err := exec.Command("sh", "-c", `for i in 1 2 3; do (echo "$i" | cat) & wait; done; test -t 0 || echo no terminal; ls / >/dev/null`).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %s", err, out)
	}
	if got := strings.Join(strings.Fields(string(out)), " "); got != "1 2 3 no terminal" {
		return errors.New(got)
	}
	return nil
}

// threads uses threads, timers and memory as programs do.
func threads(g guard) error {
	if err := g.process(); err != nil {
		return err
	}
	done := make(chan error)
	for range 8 {
		go func() {
			runtime.LockOSThread() // and never unlocks, so that the thread ends
			name := [16]byte{'t', 'h', 'r', 'e', 'a', 'd'}
			_, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
			done <- errors.Join(err, made(unix.SYS_SCHED_YIELD), made(unix.SYS_PRCTL, unix.PR_SET_NAME, unsafe.Pointer(&name)))
		}()
	}
	var all error
	for range 8 {
		all = errors.Join(all, <-done)
	}
	return all
}

// callAttempts ask the kernel for what a confined program does not need.
func callAttempts() []attempt {
	const none = -1 // an address, a descriptor, flags that do not exist
	var parameters [128]byte
	target, _ := unix.BytePtrFromString("/")
	root := unsafe.Pointer(target)
	return []attempt{
		{name: "io_uring", bare: ok, want: "ENOSYS", needs: "io_uring", try: calling(unix.SYS_IO_URING_SETUP, 1, unsafe.Pointer(&parameters))},
		{name: "bpf", bare: "E2BIG", want: "EPERM", needs: "bpf", try: calling(unix.SYS_BPF, 0, none, none)},
		{name: "perf_event_open", bare: "EFAULT", want: "EPERM", needs: "perf events", try: calling(unix.SYS_PERF_EVENT_OPEN, none, 0, none, none, 0)},
		{name: "userfaultfd", bare: ok, want: "EPERM", needs: "userfaultfd", try: calling(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1)},
		{name: "keyctl", bare: ok, want: "EPERM", needs: "keys", try: calling(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, unix.KEY_SPEC_SESSION_KEYRING, 1)},
		{name: "add_key", bare: "EFAULT", want: "EPERM", needs: "keys", try: calling(unix.SYS_ADD_KEY, none, none, 0, 0, 0)},
		{name: "chroot", bare: "EFAULT", want: "EPERM", try: calling(unix.SYS_CHROOT, none)},
		{name: "mount", bare: "EFAULT", want: "EPERM", try: calling(unix.SYS_MOUNT, none, none, none, 0, 0)},
		{name: "open_tree", bare: ok, want: "EPERM", needs: "open_tree", try: calling(unix.SYS_OPEN_TREE, unix.AT_FDCWD, root, 0)},
		{name: "fsopen", bare: "EFAULT", want: "EPERM", root: true, needs: "CAP_SYS_ADMIN", try: calling(unix.SYS_FSOPEN, none, 0)},
		{name: "open_by_handle_at", bare: "EFAULT", want: "EPERM", root: true, needs: "CAP_DAC_READ_SEARCH", try: calling(unix.SYS_OPEN_BY_HANDLE_AT, unix.AT_FDCWD, none, 0)},
		{name: "device", bare: "EEXIST", want: "EPERM", root: true, needs: "CAP_MKNOD", try: calling(unix.SYS_MKNODAT, unix.AT_FDCWD, root, unix.S_IFCHR, 0x103)},
		{name: "device with odd bits", bare: "EEXIST", want: "EPERM", root: true, needs: "CAP_MKNOD", try: calling(unix.SYS_MKNODAT, unix.AT_FDCWD, root, 0x1_0000|unix.S_IFBLK, 0x103)},
		{name: "file by mknod", bare: "EEXIST", try: calling(unix.SYS_MKNODAT, unix.AT_FDCWD, root, unix.S_IFIFO|0o600, 0)},
		{name: "address of memory", bare: ok, try: calling(unix.SYS_PERSONALITY, 0x40000)},
		{name: "memory that is executed", bare: ok, want: "EPERM", try: calling(unix.SYS_PERSONALITY, 0x400000)},
		{name: "ptracer", bare: ok, want: "EPERM", needs: "Yama", try: calling(unix.SYS_PRCTL, unix.PR_SET_PTRACER, none)},
		{name: "name of memory", bare: "EINVAL", try: calling(unix.SYS_PRCTL, unix.PR_SET_VMA, none)},
		{name: "filter that asks", bare: "EFAULT", want: "EPERM", try: calling(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, none)},
		{name: "further filter", bare: "EFAULT", try: calling(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, none)},
		{name: "shared memory", bare: ok, want: "EPERM", needs: "System V IPC", try: calling(unix.SYS_SHMCTL, 0, 14, unsafe.Pointer(&parameters))}, // SHM_INFO
		{name: "shared memory permitted", options: Options{IPC: true}, bare: ok, needs: "System V IPC", try: calling(unix.SYS_SHMCTL, 0, 14, unsafe.Pointer(&parameters))},
		{name: "unknown option", bare: "EINVAL", try: calling(unix.SYS_PRCTL, 9999)},
	}
}

// terminalAttempts ask a terminal that the process controls.
func terminalAttempts() []attempt {
	const injection = "dev.tty.legacy_tiocsti=1"
	shown := Options{Terminal: true}
	var window [8]byte
	request := func(number uintptr) func(guard) error {
		return onTerminal(func(fd uintptr) error {
			key := [64]byte{'#'}
			return made(unix.SYS_IOCTL, fd, number, unsafe.Pointer(&key))
		})
	}
	again := onTerminal(func(fd uintptr) error {
		settings, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		if err != nil {
			return errors.New("the settings cannot be read")
		}
		return unix.IoctlSetTermios(int(fd), unix.TCSETS, settings)
	})
	all := []attempt{
		{name: "size", bare: ok, try: onTerminal(func(fd uintptr) error {
			return made(unix.SYS_IOCTL, fd, unix.TIOCGWINSZ, unsafe.Pointer(&window))
		})},
		{name: "settings", bare: ok, want: "EPERM", try: again},
		{name: "settings permitted", options: shown, bare: ok, try: again},
		{name: "new terminal", bare: ok, want: "EPERM", try: newTerminal},
		{name: "new terminal permitted", options: shown, bare: ok, try: newTerminal},
	}
	for name, o := range map[string]Options{"": {}, " with terminals": shown, " with everything": everything()} {
		all = append(all,
			attempt{name: "TIOCSTI" + name, options: o, bare: ok, want: "EPERM", needs: injection, try: request(unix.TIOCSTI)},
			attempt{name: "TIOCSTI with bit 32" + name, options: o, bare: ok, want: "EPERM", needs: injection, try: request(1<<32 | unix.TIOCSTI)},
			attempt{name: "TIOCSTI with odd bits" + name, options: o, bare: ok, want: "EPERM", needs: injection, try: request(0xdeadbeef<<32 | unix.TIOCSTI)},
			attempt{name: "TIOCLINUX" + name, options: o, bare: "ENOTTY", want: "EPERM", try: request(unix.TIOCLINUX)},
			attempt{name: "TIOCLINUX with bit 32" + name, options: o, bare: "ENOTTY", want: "EPERM", try: request(1<<32 | unix.TIOCLINUX)},
			attempt{name: "TIOCSETD" + name, options: o, bare: "EINVAL", want: "EPERM", needs: "line disciplines", try: onTerminal(func(fd uintptr) error {
				discipline := int32(99)
				return made(unix.SYS_IOCTL, fd, unix.TIOCSETD, unsafe.Pointer(&discipline))
			})})
	}
	return all
}

// onTerminal makes a terminal and becomes its process, before the filter.
func onTerminal(try func(fd uintptr) error) func(guard) error {
	return func(g guard) error {
		fd, err := openTerminal()
		if err != nil {
			return setUp(err)
		}
		// The process leads a session, as it was started.
		if err := made(unix.SYS_IOCTL, fd, unix.TIOCSCTTY, 0); err != nil {
			return setUp(err)
		}
		if err := g.thread(); err != nil {
			return err
		}
		return try(fd)
	}
}

// newTerminal makes a terminal after the filter.
func newTerminal(g guard) error {
	if err := g.thread(); err != nil {
		return err
	}
	_, err := openTerminal()
	return err
}

func openTerminal() (uintptr, error) {
	main, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlSetPointerInt(main, unix.TIOCSPTLCK, 0); err != nil {
		return 0, err
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(main), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
	return fd, orNil(errno)
}

// doorAttempts enter the kernel by the doors of other architectures.
func doorAttempts() []attempt {
	if runtime.GOARCH != "amd64" {
		return nil
	}
	const narrow = "a kernel that serves 32-bit programs"
	const left = "exit 42"
	by := func(program []byte) func(guard) error {
		return func(g guard) error {
			if err := g.thread(); err != nil {
				return err
			}
			return become(program)
		}
	}
	all := []attempt{
		{name: "64 bits", bare: left, try: by(elf64(exit64()))},
		{name: "int 0x80", bare: left, want: "SIGSYS", needs: narrow, try: by(elf64(exit32()))},
		{name: "int 0x80 with everything", options: everything(), bare: left, want: "SIGSYS", needs: narrow, try: by(elf64(exit32()))},
		{name: "32 bits", bare: left, want: "SIGSYS", needs: narrow, try: by(elf32(exit32()))},
		{name: "32 bits with everything", options: everything(), bare: left, want: "SIGSYS", needs: narrow, try: by(elf32(exit32()))},
	}
	const x32 = 0x40000000
	for name, number := range map[string]uintptr{"getpid": unix.SYS_GETPID, "ptrace": 521} {
		all = append(all, attempt{name: "x32 " + name, bare: ok, want: "ENOSYS", needs: "a kernel with x32", try: calling(x32|number, 0)})
	}
	return all
}

// exit32 and exit64 are the code of programs that end with 42, by the 32-bit and
// the 64-bit door, or else crash.
func exit32() []byte {
	return []byte{
		0xb8, 1, 0, 0, 0, // mov eax, 1
		0xbb, 42, 0, 0, 0, // mov ebx, 42
		0xcd, 0x80, // int 0x80
		0x0f, 0x0b, // ud2
	}
}

func exit64() []byte {
	return []byte{
		0xb8, 60, 0, 0, 0, // mov eax, 60
		0xbf, 42, 0, 0, 0, // mov edi, 42
		0x0f, 0x05, // syscall
		0x0f, 0x0b, // ud2
	}
}

// imageBase is where the programs lie in memory.
const imageBase = 0x400000

// elf64 is a whole program for amd64 (elf(5)).
func elf64(code []byte) []byte {
	const headers = 64 + 56
	size := uint64(headers + len(code))
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b = numbers16(b, 2, 62)                                     // executable, for amd64
	b = numbers32(b, 1)                                         // version
	b = numbers64(b, imageBase+headers, 64, 0)                  // start, program header, no sections
	b = numbers32(b, 0)                                         // flags
	b = numbers16(b, 64, 56, 1, 0, 0, 0)                        // sizes and counts of headers
	b = numbers32(b, 1, 5)                                      // load, to read and execute
	b = numbers64(b, 0, imageBase, imageBase, size, size, 4096) // all of it
	return append(b, code...)
}

// elf32 is a whole program for i386.
func elf32(code []byte) []byte {
	const headers = 52 + 32
	size := uint32(headers + len(code))
	b := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	b = numbers16(b, 2, 3)
	b = numbers32(b, 1, imageBase+headers, 52, 0, 0)
	b = numbers16(b, 52, 32, 1, 0, 0, 0)
	b = numbers32(b, 1, 0, imageBase, imageBase, size, size, 5, 4096)
	return append(b, code...)
}

func numbers16(b []byte, all ...uint16) []byte {
	for _, n := range all {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	return b
}

func numbers32(b []byte, all ...uint32) []byte {
	for _, n := range all {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

func numbers64(b []byte, all ...uint64) []byte {
	for _, n := range all {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

// installAttempts are about installing itself.
func installAttempts() []attempt {
	return []attempt{
		{name: "this thread only", bare: ok, try: otherThread(guard.thread)},
		{name: "all threads", bare: ok, want: "EPERM", try: otherThread(guard.process)},
		{name: "all threads but one", bare: ok, try: divided},
		{name: "privileges", bare: ok, try: withPrivileges},
		{name: "no program", bare: ok, try: refuses(func(guard) Program { return Program{} })},
		{name: "program for another architecture", bare: ok, try: refuses(func(g guard) Program {
			other := AMD64
			if g.program.Arch() == AMD64 {
				other = ARM64
			}
			p, _ := Build(other, Options{})
			return p
		})},
		{name: "strictest of two", options: Options{Inet: true}, bare: ok, want: "EPERM", try: func(g guard) error {
			strict := g
			strict.program, _ = Build(g.program.Arch(), Options{})
			if err := errors.Join(strict.thread(), g.thread()); err != nil {
				return err
			}
			return tcp()
		}},
	}
}

// tcp makes a socket.
func tcp() error { return made(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0) }

// otherThread makes a socket on a thread that another one guards.
func otherThread(install func(guard) error) func(guard) error {
	return func(g guard) error {
		run := newThread()
		if err := install(g); err != nil {
			return err
		}
		return run(tcp)
	}
}

// newThread starts a thread and returns what runs a function on it.
func newThread() func(func() error) error {
	work, results := make(chan func() error), make(chan error)
	go func() {
		runtime.LockOSThread()
		for f := range work {
			results <- f()
		}
	}()
	run := func(f func() error) error {
		work <- f
		return <-results
	}
	_ = run(func() error { return nil }) // from now on it exists
	return run
}

// divided installs a filter for all threads while one has another one. That
// fails, says which thread it is, and changes nothing.
func divided(g guard) error {
	if !g.install {
		return nil
	}
	run := newThread()
	var stranger int
	if err := run(func() error { stranger = unix.Gettid(); return g.thread() }); err != nil {
		return err
	}
	err := g.process()
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("thread %d ", stranger)) {
		return fmt.Errorf("while thread %d has a filter, installing one says: %v", stranger, err)
	}
	return tcp()
}

// withPrivileges installs a filter on a thread that can gain privileges, which
// root could.
func withPrivileges(g guard) error {
	for _, install := range []func(Program) error{Install, InstallAll} {
		if err := install(g.program); err == nil || !strings.Contains(err.Error(), "no_new_privs") {
			return fmt.Errorf("installing says: %v", err)
		}
	}
	return unfiltered()
}

// refuses tries to install a program that cannot be.
func refuses(program func(guard) Program) func(guard) error {
	return func(g guard) error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		for _, install := range []func(Program) error{Install, InstallAll} {
			if err := install(program(g)); err == nil {
				return errors.New("it was installed")
			}
		}
		return unfiltered()
	}
}

// unfiltered checks that a thread has no filter.
func unfiltered() error {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err
	}
	if !strings.Contains(string(status), "\nSeccomp_filters:\t0\n") {
		return errors.New("the thread has a filter")
	}
	return tcp()
}
