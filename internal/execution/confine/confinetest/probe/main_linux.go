//go:build amd64

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// marker is in every secret that a scene holds.
const marker = "confinetest-secret"

// sceneName begins the name of the folder that a scene is in. Nothing is
// changed outside of such a folder, whatever the arguments say.
const sceneName = "confinetest-"

// result is what a run prints.
type result struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"` // the attempt succeeded
	Errno  string `json:"errno"`
	Detail string `json:"detail"`
}

// attempt is one thing to try. A nil error says that it succeeded.
type attempt struct {
	name  string
	args  string // its arguments, space-separated; a final ... takes any number
	needs string // what must be there for it to succeed without a box
	try   func(args []string) (detail string, err error)
}

// errHeld is the error of an attempt that no system call refused, and that
// brought nothing all the same.
var errHeld = errors.New("nothing gained")

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintln(stderr, "probe: name an attempt, or list")
		return 2
	}
	// Capabilities, namespaces and traces belong to threads.
	runtime.LockOSThread()
	switch args[0] {
	case "list":
		for _, a := range attempts() {
			fmt.Fprintf(stdout, "%-22s %-34s %s\n", a.name, cmp.Or(a.args, "-"), cmp.Or(a.needs, "-"))
		}
		return 0
	case "victim":
		return victim(stdout, os.Stdin)
	case "child":
		return child(args[1:], stdout)
	}
	all := attempts()
	i := slices.IndexFunc(all, func(a attempt) bool { return a.name == args[0] })
	if i < 0 {
		fmt.Fprintf(stderr, "probe: there is no attempt %q; probe list prints all\n", args[0])
		return 2
	}
	if err := all[i].accepts(args[1:]); err != nil {
		fmt.Fprintf(stderr, "probe: %v\n", err)
		return 2
	}
	r := outcome(all[i], args[1:])
	if err := json.NewEncoder(stdout).Encode(r); err != nil {
		fmt.Fprintf(stderr, "probe: %v\n", err)
		return 1
	}
	return 0
}

// attempts are all that there are.
func attempts() []attempt {
	return slices.Concat(fileAttempts(), nameAttempts(), repositoryAttempts(), procAttempts(), processAttempts(), callAttempts(),
		mountAttempts(), terminalAttempts(), memoryAttempts(), unixAttempts(), networkAttempts(), stageAttempts())
}

// accepts checks the number of arguments.
func (a attempt) accepts(args []string) error {
	want := strings.Fields(a.args)
	if n := len(want); n > 0 && want[n-1] == "..." {
		if len(args) < n-1 {
			return fmt.Errorf("%s takes %s", a.name, a.args)
		}
		return nil
	}
	if len(args) != len(want) {
		return fmt.Errorf("%s takes %d arguments (%s), not %d", a.name, len(want), a.args, len(args))
	}
	return nil
}

func outcome(a attempt, args []string) result {
	detail, err := a.try(args)
	r := result{Name: a.name, OK: err == nil, Detail: detail}
	if err == nil {
		return r
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		r.Errno = unix.ErrnoName(errno)
	}
	if !errors.Is(err, errHeld) || detail == "" {
		r.Detail = strings.TrimSpace(detail + " " + err.Error())
	}
	return r
}

// reached reports success where an error shows that the kernel took the call,
// because only afterwards could it find what is wrong with the arguments.
func reached(err error, proof ...syscall.Errno) (string, error) {
	if err == nil {
		return "", nil
	}
	for _, errno := range proof {
		if errors.Is(err, errno) {
			return "the kernel took the call: " + unix.ErrnoName(errno), nil
		}
	}
	return "", err
}

// call makes a system call.
func call(number uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	value, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return 0, errno
	}
	return value, nil
}

// inScene refuses a path that does not lead into a scene.
func inScene(path string) error {
	real, err := filepath.EvalSymlinks(path)
	for dir := path; err != nil && dir != filepath.Dir(dir); {
		// What is missing is made where its folder leads. What cannot be looked
		// at cannot be changed either.
		dir = filepath.Dir(dir)
		if real, err = filepath.EvalSymlinks(dir); err == nil {
			real = filepath.Join(real, strings.TrimPrefix(path, dir))
		}
	}
	aims := []string{real}
	if target, err := os.Readlink(path); err == nil && filepath.IsAbs(target) {
		aims = append(aims, target) // it may lead to what is missing
	}
	for _, p := range aims {
		if !named(p) {
			return fmt.Errorf("%s is not in a scene, so that this is not tried", path)
		}
	}
	return nil
}

// named reports whether a part of a path is the name of a scene, and none leads
// back out of it.
func named(path string) bool {
	parts := strings.Split(path, "/")
	i := slices.IndexFunc(parts, func(part string) bool { return strings.HasPrefix(part, sceneName) })
	return i >= 0 && !slices.Contains(parts, "..")
}

func number(text string) (int, error) {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", text)
	}
	return int(n), nil
}

// secret reports whether what was read is a secret of the scene.
func secret(data []byte) (string, error) {
	switch {
	case strings.Contains(string(data), marker):
		return "the secret was read", nil
	case len(data) == 0:
		return "empty", errHeld
	}
	return "something else was read", errHeld
}
