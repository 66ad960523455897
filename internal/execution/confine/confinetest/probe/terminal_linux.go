//go:build amd64

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// terminalAttempts type into the terminal that standard input is.
func terminalAttempts() []attempt {
	const needs = "a controlling terminal as standard input"
	return []attempt{
		{"tiocsti", "", needs + ", legacy_tiocsti=1", typeIn(0, unix.TIOCSTI)},
		{"tiocsti-high", "", needs + ", legacy_tiocsti=1", typeIn(0, unix.TIOCSTI|1<<32)},
		{"tiocsti-odd", "", needs + ", legacy_tiocsti=1", typeIn(0, unix.TIOCSTI|0xdeadbeef<<32)},
		{"tiocsti-device", "", needs + ", legacy_tiocsti=1", typeInDevice},
		{"tioclinux", "", needs, onTerminal(unix.TIOCLINUX)},
		{"tioclinux-high", "", needs, onTerminal(unix.TIOCLINUX | 1<<32)},
		{"tiocsetd", "", needs, func([]string) (string, error) {
			if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err != nil {
				return "no terminal:", err
			}
			return "", unix.IoctlSetPointerInt(0, unix.TIOCSETD, 0) // the discipline that it has
		}},
		{"tiocsctty", "", needs + ", root", func([]string) (string, error) {
			// A session of its own takes the terminal from the one that has it.
			return "", forked(0, step{unix.SYS_SETSID, [6]uintptr{}}, step{unix.SYS_IOCTL, [6]uintptr{0, unix.TIOCSCTTY, 1}})
		}},
		{"tty-open", "", "a controlling terminal", func([]string) (string, error) { return openOnly("/dev/tty", unix.O_RDWR) }},
	}
}

// typeIn puts a character into the input of a terminal.
func typeIn(fd, request uintptr) func([]string) (string, error) {
	return func([]string) (string, error) {
		key := byte('#')
		_, err := call(unix.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(&key)))
		return "", err
	}
}

func typeInDevice([]string) (string, error) {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return "open:", err
	}
	return typeIn(uintptr(fd), unix.TIOCSTI)(nil)
}

// onTerminal makes a request that terminals without a screen do not know: that
// they say so shows that it reached them.
func onTerminal(request uintptr) func([]string) (string, error) {
	return func([]string) (string, error) {
		if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err != nil {
			return "no terminal:", err
		}
		var none [8]byte
		none[0] = 255
		_, err := call(unix.SYS_IOCTL, 0, request, uintptr(unsafe.Pointer(&none)))
		return reached(err, unix.ENOTTY, unix.EINVAL)
	}
}
