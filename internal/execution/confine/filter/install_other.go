//go:build !linux

package filter

import (
	"fmt"
	"runtime"
)

// Install fails: only Linux has filters of this kind.
func Install(Program) error { return onlyLinux() }

// InstallAll fails like [Install].
func InstallAll(Program) error { return onlyLinux() }

func onlyLinux() error {
	return fmt.Errorf("%s has no system call filters like those of Linux; its sandbox is another one", runtime.GOOS)
}
