//go:build !linux

package osuser

import (
	"context"
	"errors"
	"runtime"
)

func unsupported(s Spec) error {
	if _, err := s.complete(); err != nil {
		return err
	}
	return errors.New("osuser: agents as own OS users work on Linux only, not on " + runtime.GOOS + "; make the user by hand, and run the agent as it")
}

// Add is not possible on this system.
func Add(_ context.Context, spec Spec) (User, error) { return User{}, unsupported(spec) }

// Remove is not possible on this system.
func Remove(_ context.Context, spec Spec, _ HomeChoice) (Removal, error) {
	return Removal{}, unsupported(spec)
}

// Check says that nothing can be promised on this system.
func Check(_ context.Context, spec Spec) []Finding {
	return []Finding{{Promise: "user", Text: unsupported(spec).Error(), Remedy: "use Linux for agents as own OS users"}}
}

// Pause is not possible on this system.
func Pause(_ context.Context, spec Spec) error { return unsupported(spec) }

// Resume is not possible on this system.
func Resume(_ context.Context, spec Spec) error { return unsupported(spec) }

// Kill is not possible on this system.
func Kill(_ context.Context, spec Spec) error { return unsupported(spec) }
