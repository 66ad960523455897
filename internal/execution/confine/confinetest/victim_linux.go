package confinetest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// process is the victim: a process of the user, outside of every box.
type process struct {
	pid    int
	input  io.Writer
	output *bufio.Reader
}

// startVictim starts a process that leads its own group, with a secret as
// descriptor 3, one in its memory, one in its environment, and one in a key.
func (s *Scene) startVictim(t testing.TB) {
	t.Helper()
	f, err := os.Open(s.Outside + "/secret")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(s.values["probe"], "victim")
	cmd.Env = []string{"SECRET=" + marker}
	cmd.Dir = s.Outside
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close() // it ends with its input
		if err := cmd.Wait(); err != nil {
			t.Errorf("the victim: %v", err)
		}
	})
	s.victim = &process{pid: cmd.Process.Pid, input: input, output: bufio.NewReader(output)}
	var address, length, key int
	if _, err := fmt.Fscanf(s.victim.output, "%d %d %d\n", &address, &length, &key); err != nil {
		t.Fatalf("the victim says nothing: %v", err)
	}
	for name, value := range map[string]int{"victim": s.victim.pid, "address": address, "length": length, "key": key} {
		s.values[name] = fmt.Sprint(value)
	}
	if key == 0 {
		s.values["key"] = ""
	}
}

// ask asks the victim about its memory and the signals that it got.
func (p *process) ask(t testing.TB) string {
	t.Helper()
	if _, err := io.WriteString(p.input, "?\n"); err != nil {
		t.Fatalf("the victim is gone: %v", err)
	}
	answer, err := p.output.ReadString('\n')
	if err != nil {
		t.Fatalf("the victim is gone: %v", err)
	}
	return answer
}

// limits are what others may have set of the victim.
func (p *process) limits(t testing.TB) string {
	t.Helper()
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, p.pid)
	if err != nil {
		t.Fatal(err)
	}
	var core unix.Rlimit
	if err := unix.Prlimit(p.pid, unix.RLIMIT_CORE, nil, &core); err != nil {
		t.Fatal(err)
	}
	class, _, _ := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(p.pid), 0)
	return fmt.Sprintf("nice %d, core %v, input and output %d", nice, core, class)
}

// terminal is a pseudo-terminal, whose other end attempts have as theirs.
type terminal struct {
	master *os.File
	slave  *os.File
}

func (s *Scene) openTerminal(t testing.TB) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("/dev/pts", fmt.Sprint(number))
	slave, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	s.values["tty"] = name
	s.tty = &terminal{master, slave}
}

// pending is how much was typed that nobody has read.
func (p *terminal) pending(t testing.TB) string {
	t.Helper()
	// In lines, the number would be that of complete ones.
	mode, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	raw := *mode
	raw.Lflag &^= unix.ICANON
	if err := unix.IoctlSetTermios(int(p.slave.Fd()), unix.TCSETS, &raw); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(p.slave.Fd()), unix.TIOCINQ)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetTermios(int(p.slave.Fd()), unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d bytes were typed", n)
}

// queues are what processes share by numbers and names.
type queues struct {
	message uintptr
	posix   string
	shared  string
}

const keySize = 4096

// makeQueues makes System V objects, a POSIX queue and a file of shared memory.
func (s *Scene) makeQueues(t testing.TB) {
	t.Helper()
	key := 0x636f0000 | os.Getpid()&0xffff
	memory, err := unix.SysvShmGet(key, keySize, unix.IPC_CREAT|unix.IPC_EXCL|0o600)
	if err != nil {
		t.Fatalf("make shared memory: %v", err)
	}
	t.Cleanup(func() {
		if _, err := unix.SysvShmCtl(memory, unix.IPC_RMID, nil); err != nil {
			t.Error(err)
		}
	})
	page, err := unix.SysvShmAttach(memory, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(page, marker)
	if err := unix.SysvShmDetach(page); err != nil {
		t.Fatal(err)
	}
	s.queues.message = s.sysv(t, unix.SYS_MSGGET, unix.SYS_MSGCTL, uintptr(key))
	s.sysv(t, unix.SYS_SEMGET, unix.SYS_SEMCTL, uintptr(key))

	s.queues.posix = s.values["id"]
	name, err := unix.BytePtrFromString(s.queues.posix)
	if err != nil {
		t.Fatal(err)
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600, 0, 0, 0)
	if errno == 0 {
		s.values["queue"] = s.queues.posix
		t.Cleanup(func() {
			unix.Close(int(fd))
			unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0)
		})
	}
	s.queues.shared = filepath.Join("/dev/shm", s.values["id"])
	if err := os.WriteFile(s.queues.shared, []byte(marker), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(s.queues.shared) })
	s.values["ipc"], s.values["shm"] = fmt.Sprint(key), s.queues.shared
}

// sysv makes an object by one system call, which another one removes.
func (s *Scene) sysv(t testing.TB, get, control, key uintptr) uintptr {
	t.Helper()
	args := [3]uintptr{key, unix.IPC_CREAT | unix.IPC_EXCL | 0o600, 0}
	remove := func(id uintptr) { unix.Syscall(control, id, unix.IPC_RMID, 0) }
	if get == unix.SYS_SEMGET {
		args = [3]uintptr{key, 1, unix.IPC_CREAT | unix.IPC_EXCL | 0o600}
		remove = func(id uintptr) { unix.Syscall(control, id, 0, unix.IPC_RMID) }
	}
	id, _, errno := unix.Syscall(get, args[0], args[1], args[2])
	if errno != 0 {
		t.Fatalf("make an object of System V IPC: %v", errno)
	}
	t.Cleanup(func() { remove(id) })
	return id
}

// state notes how much is in the queues.
func (q *queues) state(t testing.TB, out state) {
	t.Helper()
	var status [128]byte // struct msqid64_ds, of which msg_qnum is at 80
	_, _, errno := unix.Syscall(unix.SYS_MSGCTL, q.message, unix.IPC_STAT, uintptr(unsafe.Pointer(&status)))
	if errno != 0 {
		t.Fatalf("look at the message queue: %v", errno)
	}
	out["message queue"] = fmt.Sprint(*(*uint64)(unsafe.Pointer(&status[80])))
	data, err := os.ReadFile(q.shared)
	if err != nil {
		t.Fatal(err)
	}
	out["shared memory"] = string(data)
	name, err := unix.BytePtrFromString(q.posix)
	if err != nil {
		t.Fatal(err)
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0, 0)
	if errno != 0 {
		return // there is none
	}
	defer unix.Close(int(fd))
	var attributes [8]int64 // struct mq_attr, of which mq_curmsgs is the fourth
	unix.Syscall(unix.SYS_MQ_GETSETATTR, fd, 0, uintptr(unsafe.Pointer(&attributes)))
	out["posix queue"] = fmt.Sprint(attributes[3])
}
