package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	osusers "os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"vogt/internal/osuser"
)

// systemPath is where programs are looked for as another user.
const systemPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

// rightsOf are those of a user, without root's groups.
func rightsOf(uid uint32) (*syscall.Credential, *osusers.User, error) {
	u, err := osusers.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nil, nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, nil, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, nil, err
	}
	c := &syscall.Credential{Uid: uid, Gid: uint32(gid)}
	for _, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, nil, err
		}
		c.Groups = append(c.Groups, uint32(n))
	}
	return c, u, nil
}

// childOf is this program as another user, with nothing of root's surroundings but
// the terminal and the language.
func (e *env) childOf(ctx context.Context, c *syscall.Credential, name, home string, args []string) (*exec.Cmd, error) {
	if c.Uid == 0 {
		return nil, errors.New("root is nobody's agent and no person here")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0] = "vogt"
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "USER=" + name, "LOGNAME=" + name, "PATH=" + systemPath}
	for _, variable := range []string{"TERM", "LANG", "LC_ALL", "LC_MESSAGES"} {
		if value := e.getenv(variable); value != "" {
			cmd.Env = append(cmd.Env, variable+"="+value)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c}
	return cmd, nil
}

// output runs a child and returns what it prints.
func (e *env) output(cmd *exec.Cmd, input []byte) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, said(err, errs.Bytes())
	}
	return out.Bytes(), nil
}

// asAgent runs this program as the user of an agent.
func (e *env) asAgent(ctx context.Context, u osuser.User, input []byte, args ...string) ([]byte, error) {
	cmd, err := e.childOf(ctx, &syscall.Credential{Uid: u.UID, Gid: u.UID}, u.Name, u.Home, args)
	if err != nil {
		return nil, err
	}
	return e.output(cmd, input)
}

// asPersonUID runs this program as the person, who sees its standard error: it may
// show what is signed, or ask for a passphrase.
func (e *env) asPersonUID(ctx context.Context, uid uint32, input []byte, args ...string) ([]byte, error) {
	c, u, err := rightsOf(uid)
	if err != nil {
		return nil, err
	}
	cmd, err := e.childOf(ctx, c, u.Username, u.HomeDir, args)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, e.stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// runAsAgent runs this program as the user of an agent, with this process's
// streams: in the agent's slice where systemd runs, else with limits of its own.
func (e *env) runAsAgent(ctx context.Context, name string, u osuser.User, args []string) (code int, err error) {
	c := &syscall.Credential{Uid: u.UID, Gid: u.UID}
	cmd, err := e.childOf(ctx, c, u.Name, u.Home, args)
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil && u.Slice != "" {
		if cmd, err = e.inSlice(ctx, cmd, u); err != nil {
			return 0, err
		}
	} else if err := limits(); err != nil {
		return 0, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.stdin, e.stdout, e.stderr
	// A terminal tells the agent itself; else it is asked to end, and not killed.
	cmd.Cancel = func() error {
		if term.IsTerminal(int(e.stdin.Fd())) {
			return os.ErrProcessDone
		}
		return cmd.Process.Signal(syscall.SIGTERM)
	}
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if w := exit.Sys().(syscall.WaitStatus); w.Signaled() {
			return 128 + int(w.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

// inSlice is a child that systemd starts in the agent's slice.
func (e *env) inSlice(ctx context.Context, cmd *exec.Cmd, u osuser.User) (*exec.Cmd, error) {
	run, err := exec.LookPath("systemd-run")
	if err != nil {
		return nil, err
	}
	streams := "--pipe"
	if term.IsTerminal(int(e.stdin.Fd())) && term.IsTerminal(int(e.stdout.Fd())) {
		streams = "--pty"
	}
	id := strconv.FormatUint(uint64(u.UID), 10)
	args := []string{"--quiet", "--collect", "--wait", streams, "--slice=" + u.Slice, "--uid=" + id, "--gid=" + id,
		"--working-directory=" + u.Home, "--property=NoNewPrivileges=yes", "--property=UMask=0077"}
	for _, variable := range cmd.Env {
		args = append(args, "--setenv="+variable)
	}
	args = append(append(args, "--", cmd.Path), cmd.Args[1:]...)
	return exec.CommandContext(ctx, run, args...), nil
}

// limits are set for this process, which does nothing but wait for the agent's:
// what a slice would hold, as far as there is a limit for it.
func limits() error {
	for _, l := range []struct {
		resource int
		value    uint64
	}{{unix.RLIMIT_NPROC, 2048}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, 65536}} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.resource, &now); err != nil {
			return err
		}
		value := min(l.value, now.Max)
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("limit the agent: %w", err)
		}
	}
	unix.Umask(0o077)
	return nil
}
