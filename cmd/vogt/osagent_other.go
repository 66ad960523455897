//go:build !linux

package main

import (
	"context"
	"errors"
	"runtime"

	"vogt/internal/osuser"
)

func noUsers() error {
	return errors.New("agents as own OS users work on Linux only, not on " + runtime.GOOS)
}

func (e *env) asAgent(context.Context, osuser.User, []byte, ...string) ([]byte, error) {
	return nil, noUsers()
}

func (e *env) asPersonUID(context.Context, uint32, []byte, ...string) ([]byte, error) {
	return nil, noUsers()
}

func (e *env) runAsAgent(context.Context, string, osuser.User, []string) (int, error) {
	return 0, noUsers()
}
