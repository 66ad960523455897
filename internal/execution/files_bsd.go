//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package execution

import "golang.org/x/sys/unix"

const termiosRequest = unix.TIOCGETA
