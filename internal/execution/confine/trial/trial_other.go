//go:build !linux

package trial

import (
	"context"
	"runtime"
)

// Run reports that there is no box, or none that can be tried.
func Run(context.Context, string) (Verdict, error) {
	if runtime.GOOS == "darwin" {
		return Verdict{Refused: "the box of macOS was never tested, and cannot be tried here yet"}, nil
	}
	return Verdict{Refused: "there is no box on " + runtime.GOOS}, nil
}
