//go:build !linux

package trial

import (
	"context"
	"runtime"
)

// Run reports that there is no box.
func Run(context.Context, string) (Verdict, error) {
	return Verdict{Refused: "there is no box on " + runtime.GOOS}, nil
}
