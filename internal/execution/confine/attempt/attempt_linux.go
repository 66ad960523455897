package attempt

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func all() []one {
	return []one{
		{"read a key in the home", func(s Scene) error { return reads(filepath.Join(s.Home, ".ssh", "id"), s.Secret) }},
		{"read a file outside of the workspace", func(s Scene) error { return reads(filepath.Join(s.Outside, "file"), s.Secret) }},
		{"write a file outside of the workspace", func(s Scene) error { return makes(filepath.Join(s.Outside, "made")) }},
		{"change a file outside of the workspace", func(s Scene) error { return appends(filepath.Join(s.Outside, "file")) }},
		{"plant a hook of git", func(s Scene) error { return makes(filepath.Join(s.Workspace, ".git", "hooks", "post-commit")) }},
		{"change git's settings", func(s Scene) error { return appends(filepath.Join(s.Workspace, ".git", "config")) }},
		{"move .git away", func(s Scene) error {
			git := filepath.Join(s.Workspace, ".git")
			if err := os.Rename(git, git+"2"); err != nil {
				return err
			}
			return os.Rename(git+"2", git)
		}},
		{"plant settings of an editor", func(s Scene) error {
			dir := filepath.Join(s.Workspace, ".vscode")
			if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
				return err
			}
			return makes(filepath.Join(dir, "tasks.json"))
		}},
		{"connect to a port of this machine", func(s Scene) error {
			return connects(unix.AF_INET, &unix.SockaddrInet4{Port: s.Port, Addr: [4]byte{127, 0, 0, 1}})
		}},
		{"connect to a unix socket", func(s Scene) error { return connects(unix.AF_UNIX, &unix.SockaddrUnix{Name: s.Socket}) }},
		{"connect to an abstract unix socket", func(s Scene) error { return connects(unix.AF_UNIX, &unix.SockaddrUnix{Name: "@" + s.Abstract}) }},
		{"signal another process", func(s Scene) error { return unix.Kill(s.PID, 0) }},
		{"read another process's environment", func(s Scene) error { return reads("/proc/"+strconv.Itoa(s.PID)+"/environ", s.Secret) }},
		{"trace another process", func(s Scene) error { return inThread(func() error { return unix.PtraceSeize(s.PID) }) }},
		{"see the environment of the caller", func(s Scene) error {
			if os.Getenv(s.Variable) != s.Secret {
				return errHeld
			}
			return nil
		}},
		{"make namespaces of its own", func(Scene) error {
			pid, err := syscall.ForkExec("/proc/self/exe", []string{"vogt-confine", "version"}, &syscall.ProcAttr{
				Env: []string{}, Files: []uintptr{}, Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWUTS},
			})
			if err == nil {
				_, err = syscall.Wait4(pid, nil, 0, nil)
			}
			return err
		}},
		{"set up io_uring", func(Scene) error {
			var params [120]byte // struct io_uring_params
			fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
			if errno == 0 {
				unix.Close(int(fd))
			}
			return fail(errno)
		}},
		{"use the kernel's keyring", func(Scene) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
			return err
		}},
	}
}

func fail(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

func reads(name, secret string) error {
	data, err := os.ReadFile(name)
	if err == nil && !bytes.Contains(data, []byte(secret)) {
		err = errHeld
	}
	return err
}

func makes(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(name)
}

func appends(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func connects(family int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

// inThread makes an attempt on a thread that ends with it: so does a trace.
func inThread(try func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		result <- try()
	}()
	return <-result
}
