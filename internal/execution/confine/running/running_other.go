//go:build !linux

package running

import (
	"context"
	"errors"
	"runtime"
)

func recordOf(pid int) (record, error) { return record{Process: pid}, nil }

func unsupported() error {
	return errors.New("processes of a box can be stopped and ended on Linux only, not on " + runtime.GOOS + "; end them by hand")
}

func (r record) stop(context.Context) (bool, error) { return false, unsupported() }

func (r record) proceed(context.Context) (bool, error) { return false, unsupported() }

func (r record) kill(context.Context) (bool, error) { return false, unsupported() }

// Program sees nothing on this system.
func Program(int, uint16) string { return "" }
