//go:build amd64

package main

import (
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// stageLimit bounds how long a probe waits for the scene.
const stageLimit = 30 * time.Second

// stageAttempts are for scenes with several steps, which named pipes keep in
// order.
func stageAttempts() []attempt {
	return []attempt{
		{"when", "READY GO ATTEMPT ...", "somebody at the other ends of the pipes", when},
		{"linger", "PIPE", "somebody who reads the pipe", linger},
		{"hold", "PIPE", "", hold},
	}
}

// when says by one pipe that it runs, waits for the end of another one, and then
// makes an attempt.
func when(a []string) (string, error) {
	if err := inScene(a[0]); err != nil {
		return "", err
	}
	end := time.AfterFunc(stageLimit, func() { os.Exit(3) }) // opening a pipe cannot be bounded otherwise
	defer end.Stop()
	// Opened first: whoever closes it after the word must not have been alone.
	signal, err := os.OpenFile(a[1], os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer signal.Close()
	if err := os.WriteFile(a[0], []byte("ready\n"), 0); err != nil {
		return "", err
	}
	if _, err := io.Copy(io.Discard, signal); err != nil {
		return "", err
	}
	for _, other := range attempts() {
		if other.name == a[2] {
			if err := other.accepts(a[3:]); err != nil {
				return "", err
			}
			return other.try(a[3:])
		}
	}
	return "", unix.ENOENT
}

// linger starts a process that wants to outlive everything, and stays. Whoever
// reads the pipe sees its end when both are gone.
func linger(a []string) (string, error) {
	if err := inScene(a[0]); err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	pipe, err := os.OpenFile(a[0], os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	cmd := exec.Command(self, "hold", a[0])
	cmd.ExtraFiles = []*os.File{pipe}
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	return hold(a)
}

// hold says that it runs, and stays for a bounded time with the pipe open.
func hold(a []string) (string, error) {
	if err := inScene(a[0]); err != nil {
		return "", err
	}
	pipe, err := os.OpenFile(a[0], os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	defer pipe.Close()
	if _, err := pipe.WriteString("h"); err != nil {
		return "", err
	}
	fds := []unix.PollFd{{Fd: int32(pipe.Fd()), Events: 0}}
	if _, err := unix.Poll(fds, int(stageLimit.Milliseconds())); err != nil && err != unix.EINTR {
		return "", err
	}
	return "", nil
}
