//go:build linux || darwin

package confine

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"vogt/internal/execution/confine/plan"
)

// check refuses streams that would be a way out: what a folder or a device
// leads to lies outside of the box.
func (s Streams) check() error {
	for i, f := range []*os.File{s.In, s.Out, s.Err} {
		if f == nil {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return &RefusedError{Reason: fmt.Sprintf("descriptor %d: %v", i, err)}
		}
		good := false
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG, unix.S_IFIFO:
			good = true
		case unix.S_IFCHR:
			// The memory devices that a box has, and terminals.
			good = isTerminal(f) || slices.ContainsFunc([]string{"null", "zero", "full", "random", "urandom"}, func(name string) bool {
				var device unix.Stat_t
				return unix.Stat("/dev/"+name, &device) == nil && device.Mode&unix.S_IFMT == unix.S_IFCHR && device.Rdev == st.Rdev
			})
		case unix.S_IFSOCK:
			// A connected stream between processes stays what it is; others can be
			// connected anew, to anywhere on the machine.
			name, err := unix.Getsockname(int(f.Fd()))
			_, local := name.(*unix.SockaddrUnix)
			kind, kindErr := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_TYPE)
			_, peerErr := unix.Getpeername(int(f.Fd()))
			good = err == nil && kindErr == nil && peerErr == nil && local && kind == unix.SOCK_STREAM
		}
		if !good {
			return &RefusedError{Reason: fmt.Sprintf("descriptor %d is no file, pipe or terminal, and would lead out of the box", i), Remedy: "pipe it through another program, as in: cat | vogt confine -- COMMAND"}
		}
	}
	return nil
}

func isTerminal(f *os.File) bool {
	return term.IsTerminal(int(f.Fd()))
}

// compare finds what a command has changed that it should not have, and puts
// aside what it has planted.
func (s *resolver) compare(p *plan.Plan, before snapshot) ([]Change, error) {
	var found seen
	var searching error
	searched := make(chan struct{})
	go func() {
		defer close(searched)
		found, searching = s.search(p.Write, true)
	}()
	after := lookAgain(append(s.watched, p.Guarded...), before)
	<-searched
	var out []Change
	var failed []error
	var gone []string // put aside, with all in them
	moved := false
	for _, name := range before.changes(after) {
		if covered(name, gone) {
			continue
		}
		if _, still := after.files[name]; !still && (slices.Contains(s.missing, name) || before.files[name] == placeDigest) {
			continue // what stood in the place of a missing name, of this box or of another one
		}
		c := Change{Path: name}
		if slices.Contains(s.watched, name) {
			// Nothing was mounted there, so that it is the box's work.
			var err error
			moved = true
			if c.Aside, err = restore(name, before.files[name], after); err != nil {
				failed = append(failed, err)
			}
			if c.Aside != "" {
				gone = append(gone, name)
			}
		}
		out = append(out, c)
	}
	if moved {
		// What was found may be elsewhere now, and something else in its place.
		found, searching = s.search(p.Write, true)
	}
	more, planting := planted(found.dirs, before, p.Guarded)
	return append(out, more...), errors.Join(append(failed, searching, planting)...)
}

// manyNamed are the files of a snapshot that have other names: those may be where
// the box can write, so that a change can be its work.
func manyNamed(s snapshot) (names []string) {
	for name, digest := range s.files {
		st, err := os.Lstat(name)
		if err != nil || !st.Mode().IsRegular() || digest == placeDigest {
			continue
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && sys.Nlink > 1 {
			names = append(names, name)
		}
	}
	return names
}

// restore puts aside what stands in the place of a watched name, and makes the
// link again that was there.
func restore(name, was string, after snapshot) (aside string, err error) {
	if _, there := after.files[name]; there {
		if aside, err = putAside(name); err != nil {
			return "", err
		}
	}
	if target, link := strings.CutPrefix(was, linkDigest); link {
		err = linkBeside(target, name)
	}
	return aside, err
}

// signals are those that this process gets while a box runs.
type signals struct{ got chan os.Signal }

// hear keeps signals from ending this process, until stop.
func hear() *signals {
	s := &signals{make(chan os.Signal, 32)}
	signal.Notify(s.got, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	return s
}

func (s *signals) stop() { signal.Stop(s.got) }

// signalled is a process, or who passes signals on to one.
type signalled interface{ Signal(os.Signal) error }

// to passes them on to a process, until it is told that this one has ended. Those
// that a terminal sends to everybody at it, the process has got itself.
func (s *signals) to(p signalled, terminal bool) (ended func()) {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case got := <-s.got:
				if !terminal || got != syscall.SIGINT && got != syscall.SIGQUIT {
					_ = p.Signal(got) // it has ended, if that fails
				}
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// exitCode is the code of an ended process as a shell gives it.
func exitCode(s *os.ProcessState) int {
	if s == nil {
		return 126
	}
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}
