//go:build !linux && !darwin

package confine

import "runtime"

// Run refuses: the walls of a box are those of Linux or of macOS.
func Run(string, Request, Streams) (Outcome, error) {
	return Outcome{}, &RefusedError{Reason: "there is no box on " + runtime.GOOS + ": what holds a command here is only its user account"}
}
