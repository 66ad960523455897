// Package secret reads what the proxy sets in requests: a password or token that a
// program is to use and not to have.
//
// It owns the places that a secret may come from and the checks of them. It leaves
// out what becomes of it (egress), and who may say where it is (a profile of the
// user's, never a file of a workspace). No error and no log names the secret.
package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// Source says where a secret is: one of the three is set.
type Source struct {
	File     string   // absolute path; nobody else may read it
	Variable string   // of this process
	Command  []string // whose standard output it is
}

const (
	maxSize      = 16 << 10
	commandLimit = 30 * time.Second
)

// Read returns the secret without the end of its line.
func (s Source) Read(ctx context.Context, getenv func(string) string) (string, error) {
	var data []byte
	var err error
	switch {
	case s.File != "":
		data, err = readFile(s.File)
	case s.Variable != "":
		if data = []byte(getenv(s.Variable)); len(data) == 0 {
			err = fmt.Errorf("the variable %s is not set", s.Variable)
		}
	case len(s.Command) > 0:
		data, err = run(ctx, s.Command)
	default:
		err = errors.New("nothing says where the secret is")
	}
	if err != nil {
		return "", err
	}
	data = bytes.TrimRight(data, "\r\n")
	if len(data) == 0 || len(data) > maxSize || bytes.ContainsAny(data, "\r\n\x00") {
		return "", fmt.Errorf("the secret %s is not one line of up to %d bytes", s, maxSize)
	}
	return string(data), nil
}

// String says where the secret is.
func (s Source) String() string {
	switch {
	case s.File != "":
		return "in " + s.File
	case s.Variable != "":
		return "in the variable " + s.Variable
	case len(s.Command) > 0:
		return "of the command " + s.Command[0]
	}
	return "of nobody"
}

// readFile reads a file that belongs to this user and that no other may read or
// replace the content of.
func readFile(name string) ([]byte, error) {
	if !filepath.IsAbs(name) {
		return nil, fmt.Errorf("the path %q of a secret is not absolute", name)
	}
	st, err := os.Stat(name) // before it is opened, so that no pipe is waited for
	if err != nil {
		return nil, pathless(name, err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, pathless(name, err)
	}
	defer f.Close()
	if st, err = f.Stat(); err != nil {
		return nil, err
	}
	switch {
	case !st.Mode().IsRegular() || st.Size() > maxSize:
		return nil, fmt.Errorf("%s is no file of a few lines", name)
	case runtime.GOOS != "windows" && st.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others can read %s; what helps: chmod 600 %s", name, name)
	case !mine(st):
		return nil, fmt.Errorf("%s belongs to another user", name)
	}
	return io.ReadAll(io.LimitReader(f, maxSize+1))
}

// pathless names the file once.
func pathless(name string, err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	return fmt.Errorf("the secret in %s: %w", name, err)
}

// run runs a command of the user's in the user's home, where no workspace can put a
// program in its way.
func run(ctx context.Context, argv []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	if !filepath.IsAbs(argv[0]) && filepath.Base(argv[0]) != argv[0] {
		return nil, fmt.Errorf("the command %q of a secret is neither a name nor an absolute path", argv[0])
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = home, os.Stderr, time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the command %s of a secret: %w", argv[0], err)
	}
	return out, nil
}
