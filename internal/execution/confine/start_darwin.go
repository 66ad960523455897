package confine

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
	"vogt/internal/execution/confine/seatbelt"
)

// sandboxExec applies a profile and starts a program under it. Only this path is
// taken: whoever can write it is root already.
const sandboxExec = "/usr/bin/sandbox-exec"

// tryLimit is how long the try of a profile may take.
const tryLimit = 30 * time.Second

// Run runs a command under a profile of Seatbelt and returns when it has ended.
// No helper is needed, and of the ports to be served there is the proxy only, at
// a port of the machine. None of this was ever run on macOS.
func Run(_ string, r Request, streams Streams) (Outcome, error) {
	if err := streams.check(); err != nil {
		return Outcome{}, err
	}
	if err := possible(r); err != nil {
		return Outcome{}, err
	}
	s := &resolver{request: r, profile: r.Profile}
	if r.Profile.Network == plan.Proxied {
		listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return Outcome{}, &RefusedError{Reason: "the proxy of the box cannot listen: " + err.Error()}
		}
		defer listener.Close()
		s.port = listener.Addr().(*net.TCPAddr).Port
		defer served(r.Serve[ProxyPort], listener)()
	}
	// Missing names need no folder in their place: a rule can name what is not
	// there.
	p, _, err := s.resolve()
	if err != nil {
		return Outcome{}, &RefusedError{Reason: err.Error(), cause: err}
	}
	dir, err := os.MkdirTemp("", "vogt-box-")
	if err != nil {
		return Outcome{}, &RefusedError{Reason: err.Error()}
	}
	defer os.RemoveAll(dir)
	if err := s.forSeatbelt(p, dir); err != nil {
		return Outcome{}, &RefusedError{Reason: err.Error()}
	}
	text, params, err := seatbelt.Profile(p)
	if err == nil {
		err = program(p)
	}
	if err == nil {
		err = try(p, text, params)
	}
	if err != nil {
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			return Outcome{}, refused
		}
		return Outcome{}, &RefusedError{Reason: err.Error()}
	}
	before, err := look(append(s.watched, p.Guarded...), snapshot{})
	if err != nil {
		return Outcome{}, &RefusedError{Reason: err.Error()}
	}
	s.watched = append(s.watched, manyNamed(before)...)
	out, err := under(p, seatbelt.Arguments(text, params, p.Program, p.Argv[1:]...), time.Duration(r.Profile.Limits.Wall)*time.Second, streams)
	if err != nil {
		return out, err
	}
	if out.Changed, err = s.compare(p, before); err != nil {
		return out, fmt.Errorf("the protected files cannot be compared: %w", err)
	}
	return out, nil
}

// possible refuses what there is not on macOS.
func possible(r Request) error {
	st, err := os.Lstat(sandboxExec)
	switch {
	case err != nil || !st.Mode().IsRegular():
		return &RefusedError{Reason: "there can be no box: " + sandboxExec + " of macOS is missing"}
	case r.Level != "" && r.Level != plan.Seatbelt:
		return &RefusedError{Reason: fmt.Sprintf("there is no box of level %s on macOS, only %s", r.Level, plan.Seatbelt)}
	case r.Profile.Network == plan.Proxied && r.Serve[ProxyPort] == nil:
		return &RefusedError{Reason: "the profile has a proxy, and nobody serves it"}
	}
	return nil
}

// served serves a listener until the function that it returns is called.
func served(serve func(net.Listener), listener net.Listener) (end func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(listener)
	}()
	return func() {
		listener.Close()
		<-done
	}
}

// forSeatbelt makes the plan one for Seatbelt, which has no file tree of its own
// to mount things in: folders for temporary files and for what tools keep are
// named by variables.
func (s *resolver) forSeatbelt(p *plan.Plan, dir string) (err error) {
	p.Level = plan.Seatbelt
	if p.Private, err = canonicalDir(dir); err != nil {
		return err
	}
	if covered(p.Private, p.Write) {
		return fmt.Errorf("the workspace %s holds the folder for temporary files, where those of other boxes are: start the box in the folder of a project", s.workspace)
	}
	p.Environ = append(p.Environ, "TMPDIR="+p.Private)
	if p.Cache != "" {
		// Go does not look at XDG_CACHE_HOME on macOS.
		p.Environ = append(p.Environ, "XDG_CACHE_HOME="+p.Cache, "GOCACHE="+filepath.Join(p.Cache, "go-build"))
	}
	// Rules go by path, so that links can be protected too.
	for _, name := range s.watched {
		if covered(name, p.Write) && !covered(name, p.Guarded) {
			p.Guarded = append(p.Guarded, name)
		}
	}
	return nil
}

// program refuses a program that is not the one that was asked for. Between this
// and its start it can be replaced by whoever can write it; the box cannot.
func program(p *plan.Plan) error {
	var st unix.Stat_t
	err := unix.Stat(p.Program, &st)
	switch {
	case err != nil:
		return &RefusedError{Reason: fmt.Sprintf("%s cannot be started: %v", p.Program, err)}
	case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0:
		return &RefusedError{Reason: p.Program + " is no program"}
	case p.File != plan.File{} && p.File != plan.File{Device: uint64(st.Dev), Inode: st.Ino}:
		return &RefusedError{Reason: p.Program + " is another file than the one that was asked for"}
	}
	return nil
}

// try finds out whether the profile is taken and holds, before the command is
// started: a program is to make a file outside of the box, and must fail.
func try(p *plan.Plan, text string, params []string) error {
	dir, err := os.MkdirTemp("", "vogt-try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = canonicalDir(dir); err != nil {
		return err
	}
	file := filepath.Join(dir, "file")
	var said bytes.Buffer
	cmd := exec.Command(sandboxExec, seatbelt.Arguments(text, params, seatbelt.Try, file)...)
	cmd.Env, cmd.Dir, cmd.Stderr = []string{}, "/", &said
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s cannot be started: %w", sandboxExec, err)
	}
	limit := time.AfterFunc(tryLimit, func() { _ = cmd.Process.Kill() }) // it has ended, if that fails
	err = cmd.Wait()
	limit.Stop()
	if _, missing := os.Lstat(file); !errors.Is(missing, os.ErrNotExist) {
		return fmt.Errorf("the sandbox of macOS does not hold: a program under the profile could write %s", file)
	}
	// touch ends with 1 when it cannot make a file; sandbox-exec has codes from
	// sysexits(3) when it does not take the profile.
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		return fmt.Errorf("the sandbox of macOS does not take the profile of the box (exit code %d, %v): %.500s", code, err, strings.ToValidUTF8(said.String(), "?"))
	}
	return nil
}

// under runs sandbox-exec, which becomes the command, and waits for its end.
func under(p *plan.Plan, args []string, wall time.Duration, streams Streams) (Outcome, error) {
	passed := hear()
	defer passed.stop()
	cmd := exec.Command(sandboxExec, args...)
	cmd.Env, cmd.Dir = p.Environ, p.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.In, streams.Out, streams.Err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !p.Terminal}
	if err := cmd.Start(); err != nil {
		return Outcome{}, &RefusedError{Reason: fmt.Sprintf("%s cannot be started: %v", sandboxExec, err)}
	}
	defer passed.to(cmd.Process, p.Terminal)()
	end := func() {
		if p.Terminal {
			_ = cmd.Process.Kill() // it has ended, if that fails
			return
		}
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // they have ended, if that fails
	}
	var late atomic.Bool
	if wall > 0 {
		limit := time.AfterFunc(wall, func() {
			late.Store(true)
			end()
		})
		defer limit.Stop()
	}
	waited := cmd.Wait()
	if !p.Terminal {
		end() // what the command left in its group
	}
	out := Outcome{Code: exitCode(cmd.ProcessState), Late: late.Load(), Report: plan.Report{Level: plan.Seatbelt, Lacks: lacks(p)}}
	var exit *exec.ExitError
	if waited != nil && !errors.As(waited, &exit) {
		return out, waited
	}
	return out, nil
}

// lacks names what the plan asks for and Seatbelt does not have.
func lacks(p *plan.Plan) []string {
	out := []string{"processes of its own", "a loopback of its own"}
	if p.Limits != (plan.Limits{}) {
		out = append(out, "limits but the one of wall time")
	}
	return out
}
