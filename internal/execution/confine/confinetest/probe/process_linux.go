//go:build amd64

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// victim is the process that attempts are aimed at. It prints where in its
// memory a secret is, and the number of a key that holds one. It answers each
// line with what has become of the memory and with the signals that have come.
func victim(stdout io.Writer, stdin io.Reader) int {
	mine := []byte(marker + " in the memory of a process")
	signals := make(chan os.Signal, 64)
	// The fence is a later signal than those that are counted: the runtime hands
	// them on in the order of their numbers.
	const fence = unix.Signal(40)
	signal.Notify(signals, unix.SIGWINCH, fence)
	key := userKey()
	if key != 0 {
		defer unix.KeyctlInt(unix.KEYCTL_UNLINK, key, unix.KEY_SPEC_USER_KEYRING, 0, 0)
	}
	fmt.Fprintf(stdout, "%d %d %d\n", uintptr(unsafe.Pointer(&mine[0])), len(mine), key)
	came := 0
	for lines := bufio.NewScanner(stdin); lines.Scan(); {
		if err := unix.Kill(os.Getpid(), fence); err != nil {
			return 1
		}
		for s := <-signals; s != fence; s = <-signals {
			came++
		}
		fmt.Fprintf(stdout, "%q, %d signals\n", mine, came)
	}
	return 0
}

// userKey makes a key that all processes of the user can read, or returns 0.
func userKey() int {
	key, err := unix.AddKey("user", fmt.Sprintf("%s%d", sceneName, os.Getpid()), []byte(marker+" in a key"), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		return 0
	}
	const everything = 0x3f3f0000 // of the possessor and the user
	if err := unix.KeyctlSetperm(key, everything); err != nil {
		return 0
	}
	return key
}

// onProcess makes an attempt of something that is done to a process.
func onProcess(do func(pid int) error) func(a []string) (string, error) {
	return func(a []string) (string, error) {
		pid, err := number(a[0])
		if err != nil {
			return "", err
		}
		return "", do(pid)
	}
}

// procAttempts look at processes.
func procAttempts() []attempt {
	return []attempt{
		{"pid-listed", "PID", "/proc", pidListed},
		{"proc-comm", "NAME", "/proc", procComm},
		{"map-files", "PID", "root", mapFiles},
		{"cgroup-mkdir", "FOLDER", "root, a cgroup filesystem", cgroupMkdir},
		{"oom-score", "VALUE", "root", func(a []string) (string, error) {
			return "", os.WriteFile("/proc/self/oom_score_adj", []byte(a[0]), 0)
		}},
	}
}

func pidListed(a []string) (string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Name() == a[0] {
			return "the process is listed", nil
		}
	}
	return fmt.Sprintf("%d names, and not that one", len(entries)), errHeld
}

// procComm looks for a process of the host by its arguments.
func procComm(a []string) (string, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return "", err
	}
	for _, path := range lines {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), a[0]) && filepath.Dir(path) != fmt.Sprintf("/proc/%d", os.Getpid()) {
			return path, nil
		}
	}
	return fmt.Sprintf("%d processes, and not that one", len(lines)), errHeld
}

func mapFiles(a []string) (string, error) {
	dir := "/proc/" + a[0] + "/map_files"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) == 0 {
		return "empty", errHeld
	}
	return openOnly(filepath.Join(dir, entries[0].Name()), unix.O_RDONLY)
}

func cgroupMkdir(a []string) (string, error) {
	if !strings.HasPrefix(filepath.Clean(a[0]), "/sys/fs/cgroup") {
		return "", fmt.Errorf("%s is no folder of cgroups", a[0])
	}
	path := filepath.Join(a[0], sceneName+strconv.Itoa(os.Getpid()))
	if err := unix.Mkdir(path, 0o755); err != nil {
		return "", err
	}
	return "", unix.Rmdir(path)
}

// processAttempts do something to other processes, or gain rights for their
// own.
func processAttempts() []attempt {
	return []attempt{
		{"signal", "PID", "the same user", onProcess(func(pid int) error { return unix.Kill(pid, 0) })},
		{"signal-thread", "PID", "the same user", onProcess(func(pid int) error { return unix.Tgkill(pid, pid, 0) })},
		{"signal-queue", "PID", "the same user", onProcess(signalQueue)},
		{"signal-pidfd", "PID", "the same user", onProcess(signalPidfd)},
		{"signal-owner", "PID", "the same user", onProcess(signalOwner)},
		{"signal-thread-queue", "PID", "the same user", onProcess(func(pid int) error {
			info := queued()
			_, err := call(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(pid), 0, uintptr(unsafe.Pointer(&info)))
			return err
		})},
		{"signal-tkill", "PID", "the same user", onProcess(func(pid int) error {
			_, err := call(unix.SYS_TKILL, uintptr(pid), 0)
			return err
		})},
		{"signal-group", "PID", "the same user, a process that leads its group", onProcess(func(pid int) error { return unix.Kill(-pid, 0) })},
		{"signal-all", "", "a process of the same user", func([]string) (string, error) { return "", unix.Kill(-1, 0) }},
		{"signal-window", "PID", "the same user", onProcess(func(pid int) error { return unix.Kill(pid, unix.SIGWINCH) })},
		{"pidfd-open", "PID", "", onProcess(func(pid int) error { _, err := unix.PidfdOpen(pid, 0); return err })},
		{"pidfd-getfd", "PID FD", "the same user, a secret open as FD", pidfdGetfd},
		{"ptrace-seize", "PID", "the same user", onProcess(unix.PtraceSeize)},
		{"ptrace-attach", "PID", "the same user", onProcess(ptraceAttach)},
		{"ptrace-traceme", "", "", func([]string) (string, error) {
			return "", forked(0, step{unix.SYS_PTRACE, [6]uintptr{unix.PTRACE_TRACEME}})
		}},
		{"set-ptracer", "", "Yama", func([]string) (string, error) {
			return "", unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0)
		}},
		{"vm-read", "PID ADDRESS LENGTH", "the same user", vmRead},
		{"vm-write", "PID ADDRESS", "the same user", vmWrite},
		{"mem-write", "PID ADDRESS", "the same user", memWrite},
		{"kcmp", "PID", "the same user", onProcess(func(pid int) error {
			_, err := call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), 1, 0, 0)
			return err
		})},
		{"process-madvise", "PID ADDRESS", "the same user", processMadvise},
		{"move-pages", "PID", "the same user", onProcess(func(pid int) error {
			_, err := call(unix.SYS_MOVE_PAGES, uintptr(pid), 0, 0, 0, 0, 0)
			return err
		})},
		{"migrate-pages", "PID", "the same user, NUMA", onProcess(func(pid int) error {
			node := uint64(1)
			_, err := call(unix.SYS_MIGRATE_PAGES, uintptr(pid), 64, uintptr(unsafe.Pointer(&node)), uintptr(unsafe.Pointer(&node)))
			return err
		})},
		{"process-release", "PID", "the same user", onProcess(func(pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			_, err = call(unix.SYS_PROCESS_MRELEASE, uintptr(fd), 0)
			_, err = reached(err, unix.EINVAL) // only what dies is released
			return err
		})},
		{"pidfd-namespace", "PID", "the same user, Linux 6.11", onProcess(func(pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			const mountNamespace = 0xff03 // PIDFD_GET_MNT_NAMESPACE
			_, err = call(unix.SYS_IOCTL, uintptr(fd), mountNamespace, 0)
			return err
		})},
		{"prlimit", "PID", "the same user", onProcess(func(pid int) error {
			return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{Cur: 0, Max: 4096}, nil)
		})},
		{"priority", "PID", "the same user", onProcess(func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 7) })},
		{"sched-attr", "PID", "the same user", onProcess(func(pid int) error {
			attr, err := unix.SchedGetAttr(pid, 0)
			if err != nil {
				return err
			}
			return unix.SchedSetAttr(pid, attr, 0)
		})},
		{"affinity", "PID", "the same user", onProcess(affinity)},
		{"ioprio", "PID", "the same user", onProcess(func(pid int) error {
			_, err := call(unix.SYS_IOPRIO_SET, 1, uintptr(pid), 2<<13|4)
			return err
		})},
		{"priority-group", "", "", func([]string) (string, error) { return "", unix.Setpriority(unix.PRIO_PGRP, 0, 7) }},
		{"ioprio-group", "", "", func([]string) (string, error) {
			_, err := call(unix.SYS_IOPRIO_SET, 2, 0, 2<<13|4)
			return "", err
		}},
		{"robust-list", "PID", "the same user", onProcess(func(pid int) error {
			var head, length uintptr
			_, err := call(unix.SYS_GET_ROBUST_LIST, uintptr(pid), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&length)))
			return err
		})},
		{"setuid-exec", "PROGRAM", "a program that sets the user to root; not root", func(a []string) (string, error) { return gained(a[0], "ids") }},
		{"filecap-exec", "PROGRAM", "a program with a capability; not root", func(a []string) (string, error) { return gained(a[0], "caps") }},
		{"ids", "", "root", func([]string) (string, error) {
			if os.Geteuid() != 0 {
				return fmt.Sprintf("user %d", os.Geteuid()), errHeld
			}
			return "the user is root", nil
		}},
		{"caps", "", "root", effective},
		{"capset", "", "root", capset},
		{"ambient", "", "root", ambient},
		{"setuid", "UID", "root", onProcess(func(uid int) error { _, err := call(unix.SYS_SETUID, uintptr(uid)); return err })},
		{"secure-bits", "", "root", func([]string) (string, error) { return "", unix.Prctl(unix.PR_SET_SECUREBITS, 1, 0, 0, 0) }},
		{"setgroups", "", "root", func([]string) (string, error) { _, err := call(unix.SYS_SETGROUPS, 0, 0); return "", err }},
		{"nice", "", "root", func([]string) (string, error) { return "", unix.Setpriority(unix.PRIO_PROCESS, 0, -5) }},
		{"rlimit", "", "root, or a soft limit below the hard one", rlimit},
		{"scheduler", "", "root", scheduler},
		{"memory-lock", "BYTES", "root", memoryLock},
		{"core-dump", "FOLDER", "a core_pattern that is no pipe", coreDump},
		{"memfd-exec", "ATTEMPT ...", "what the attempt needs", memfdExec},
	}
}

func signalQueue(pid int) error {
	info := queued()
	_, err := call(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), 0, uintptr(unsafe.Pointer(&info)))
	return err
}

// queued is the siginfo of a signal that comes with a value.
func queued() (info [128]byte) {
	*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
	return info
}

func signalPidfd(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, 0, nil, 0)
}

// signalOwner lets the kernel send a signal to whom it was told to own a
// socket. Whether one came only the victim knows.
func signalOwner(pid int) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(pair[0]), unix.F_SETOWN, pid); err != nil {
		return err
	}
	const setSignal = 10 // F_SETSIG
	if _, err := unix.FcntlInt(uintptr(pair[0]), setSignal, int(unix.SIGWINCH)); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(pair[0]), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK); err != nil {
		return err
	}
	_, err = unix.Write(pair[1], []byte("x"))
	return err
}

func pidfdGetfd(a []string) (string, error) {
	pid, err := number(a[0])
	if err != nil {
		return "", err
	}
	target, err := number(a[1])
	if err != nil {
		return "", err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return "pidfd_open:", err
	}
	got, err := unix.PidfdGetfd(fd, target, 0)
	if err != nil {
		return "pidfd_getfd:", err
	}
	return descriptorRead([]string{strconv.Itoa(got)})
}

func ptraceAttach(pid int) error {
	if err := unix.PtraceAttach(pid); err != nil {
		return err
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		return err
	}
	return unix.PtraceDetach(pid)
}

// remote reads a process and an address from arguments.
func remote(a []string) (pid int, address uintptr, err error) {
	if pid, err = number(a[0]); err != nil {
		return 0, 0, err
	}
	n, err := number(a[1])
	return pid, uintptr(n), err
}

func vmRead(a []string) (string, error) {
	pid, address, err := remote(a)
	if err != nil {
		return "", err
	}
	length, err := number(a[2])
	if err != nil {
		return "", err
	}
	buffer := make([]byte, length)
	local := []unix.Iovec{{Base: &buffer[0], Len: uint64(length)}}
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: address, Len: length}}, 0)
	if err != nil {
		return "", err
	}
	return secret(buffer[:n])
}

func vmWrite(a []string) (string, error) {
	pid, address, err := remote(a)
	if err != nil {
		return "", err
	}
	buffer := []byte("!")
	local := []unix.Iovec{{Base: &buffer[0], Len: 1}}
	_, err = unix.ProcessVMWritev(pid, local, []unix.RemoteIovec{{Base: address, Len: 1}}, 0)
	return "", err
}

func memWrite(a []string) (string, error) {
	pid, address, err := remote(a)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte("!"), int64(address))
	return "", err
}

func processMadvise(a []string) (string, error) {
	pid, address, err := remote(a)
	if err != nil {
		return "", err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return "pidfd_open:", err
	}
	page := uintptr(os.Getpagesize())
	vector := unix.RemoteIovec{Base: address &^ (page - 1), Len: int(page)}
	const cold = 20 // MADV_COLD
	_, err = call(unix.SYS_PROCESS_MADVISE, uintptr(fd), uintptr(unsafe.Pointer(&vector)), 1, cold, 0)
	return "", err
}

// affinity sets the processors of a process to those that it has.
func affinity(pid int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return err
	}
	return unix.SchedSetaffinity(pid, &set)
}

// gained runs another copy of the probe, whose file gives it rights.
func gained(program, attempt string) (string, error) {
	out, err := exec.Command(program, attempt).Output()
	if err != nil {
		return "", err
	}
	if strings.Contains(string(out), `"ok":true`) {
		return strings.TrimSpace(string(out)), nil
	}
	return strings.TrimSpace(string(out)), errHeld
}

func capabilities() (unix.CapUserHeader, [2]unix.CapUserData, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return header, data, err
}

// effective reports whether the process has a capability.
func effective([]string) (string, error) {
	_, data, err := capabilities()
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("effective %08x%08x", data[1].Effective, data[0].Effective)
	if data[0].Effective|data[1].Effective == 0 {
		return text, errHeld
	}
	return text, nil
}

func capset([]string) (string, error) {
	header, data, err := capabilities()
	if err != nil {
		return "", err
	}
	data[0].Permitted |= 1 << unix.CAP_SYS_ADMIN
	data[0].Effective |= 1 << unix.CAP_SYS_ADMIN
	return "", unix.Capset(&header, &data[0])
}

func ambient([]string) (string, error) {
	header, data, err := capabilities()
	if err != nil {
		return "", err
	}
	data[0].Inheritable |= 1 << unix.CAP_SYS_ADMIN
	if err := unix.Capset(&header, &data[0]); err != nil {
		return "capset:", err
	}
	return "", unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0)
}

func rlimit([]string) (string, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return "", err
	}
	limit.Max++
	return "", unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
}

func scheduler([]string) (string, error) {
	priority := int32(1)
	_, err := call(unix.SYS_SCHED_SETSCHEDULER, 0, 1, uintptr(unsafe.Pointer(&priority))) // SCHED_FIFO
	return "", err
}

func memoryLock(a []string) (string, error) {
	n, err := number(a[0])
	if err != nil {
		return "", err
	}
	page, err := unix.Mmap(-1, 0, n, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return "", err
	}
	return "", unix.Mlock(page)
}

// coreDump lets a child die with a core dump in a folder of the scene. Where
// core_pattern is a pipe, it starts a program outside of every box.
func coreDump(a []string) (string, error) {
	if err := inScene(filepath.Join(a[0], "x")); err != nil {
		return "", err
	}
	if err := unix.Chdir(a[0]); err != nil {
		return "", err
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}); err != nil {
		return "setrlimit:", err
	}
	var byDefault [4]uintptr // struct sigaction of the kernel: no handler
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return "", errno
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0)
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGXCPU), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
		id, _, _ := unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
		unix.RawSyscall(unix.SYS_KILL, id, uintptr(unix.SIGXCPU), 0)
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(int(pid), &status, 0, nil); err != nil {
		return "", err
	}
	if !status.CoreDump() {
		return fmt.Sprintf("wait status %#x, without a dump", uint32(status)), errHeld
	}
	return "the kernel wrote a dump", nil
}

// memfdExec makes another attempt from a program that has no file.
func memfdExec(a []string) (string, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	fd, err := unix.MemfdCreate("probe", 0)
	if err != nil {
		return "", err
	}
	memory := os.NewFile(uintptr(fd), "probe")
	if _, err := io.Copy(memory, self); err != nil {
		return "", err
	}
	cmd := exec.Command("/proc/self/fd/3", a...)
	cmd.ExtraFiles = []*os.File{memory}
	out, err := cmd.Output()
	if err != nil {
		return "exec of a memfd:", err
	}
	text := strings.TrimSpace(string(out))
	if strings.Contains(text, `"ok":true`) {
		return text, nil
	}
	return text, errHeld
}
