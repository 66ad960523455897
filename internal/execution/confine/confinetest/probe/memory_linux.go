//go:build amd64

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// memoryAttempts reach memory and queues that processes share.
func memoryAttempts() []attempt {
	return []attempt{
		{"sysv-memory", "KEY", "a secret in such a segment", sysvMemory},
		{"sysv-queue", "KEY", "such a queue", sysvQueue},
		{"sysv-semaphore", "KEY", "such a semaphore", sysvSemaphore},
		{"posix-queue", "NAME", "such a queue", posixQueue},
	}
}

func sysvMemory(a []string) (string, error) {
	key, err := number(a[0])
	if err != nil {
		return "", err
	}
	id, err := unix.SysvShmGet(key, 0, 0)
	if err != nil {
		return "", err
	}
	data, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err != nil {
		return "", err
	}
	return secret(data)
}

func sysvQueue(a []string) (string, error) {
	key, err := number(a[0])
	if err != nil {
		return "", err
	}
	id, err := call(unix.SYS_MSGGET, uintptr(key), 0)
	if err != nil {
		return "", err
	}
	message := struct {
		kind int64
		text [8]byte
	}{kind: 1, text: [8]byte{'p', 'r', 'o', 'b', 'e'}}
	const noWait = 0o4000
	_, err = call(unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&message)), 8, noWait)
	return "", err
}

func sysvSemaphore(a []string) (string, error) {
	key, err := number(a[0])
	if err != nil {
		return "", err
	}
	_, err = call(unix.SYS_SEMGET, uintptr(key), 1, 0)
	return "", err
}

func posixQueue(a []string) (string, error) {
	name, err := unix.BytePtrFromString(a[0])
	if err != nil {
		return "", err
	}
	fd, err := call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_WRONLY|unix.O_NONBLOCK, 0, 0)
	if err != nil {
		return "", err
	}
	text := []byte("probe")
	_, err = call(unix.SYS_MQ_TIMEDSEND, fd, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), 0, 0)
	return "", err
}
