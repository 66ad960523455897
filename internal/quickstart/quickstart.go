// Package quickstart runs an authority for one person on one machine: it
// starts vogtd under the person's own user, brings the first-run set-up to its
// end, tells the client where its authority is, and stops vogtd again.
//
// It owns the life of that vogtd (finding it, starting it detached from the
// caller, waiting for it, stopping it), the dialogue of the set-up on the
// controlling terminal, the control socket's client, and the two keys of
// vogt.toml that name the authority. It leaves out what vogtd does, supervision
// (package supervise), and flags and exit (cmd/vogt).
//
// Whoever can open the control socket runs as the authority's own user, so the
// socket protects against other users only. What a quick start does not stop
// is listed in docs/threat-model.md.
package quickstart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/config"
)

// Exit codes of `vogt up` and `vogt down`, as in sysexits(3).
const (
	CodeUnavailable = 69 // the authority cannot be started
	CodeNotYet      = 75 // running, but the set-up is not finished; or the data is in use
	CodeConfig      = 78 // settings that cannot be, or a set-up that cannot happen
)

// ExitError is an error with the exit code that belongs to it.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode is the code that a program should end with.
func (e *ExitError) ExitCode() int { return e.Code }

func exitf(code int, format string, args ...any) error {
	return &ExitError{code, fmt.Errorf(format, args...)}
}

// Owner is the first owner of an authority that is set up without a page.
type Owner struct {
	Email     string `json:"email"`
	Name      string `json:"name"`
	PublicKey string `json:"public_key"` // one line as in authorized_keys
	// KeyFile is where the owner has the private half, for the advice that is
	// printed; empty when that is not known.
	KeyFile string `json:"-"`
}

// Options of Up. Paths, Daemon, Env, Out and Err are required.
type Options struct {
	Paths  config.Paths
	Daemon string   // absolute path of vogtd, see FindDaemon
	Env    []string // of the caller; vogtd gets the part that it needs
	// Listen and Bearer are settings for vogtd; empty leaves them to its own
	// configuration.
	Listen string
	Bearer string
	// NoWait returns when vogtd serves, without waiting for the set-up.
	NoWait bool
	// Foreground keeps vogtd attached; Up returns when it has ended.
	Foreground bool
	// Headless, when set, makes this owner instead of asking for one.
	Headless *Owner
	// Terminal opens the controlling terminal, or fails where there is none.
	Terminal func() (Terminal, error)
	// Out receives the authority's address, or the report as JSON; Err what is
	// meant for the person.
	Out, Err io.Writer
	JSON     bool
	// StartLimit is how long vogtd may take to serve; twenty seconds when zero.
	StartLimit time.Duration
}

// Report is what `vogt up --json` prints.
type Report struct {
	State   string `json:"state"` // "started" or "running"
	Issuer  string `json:"issuer"`
	Pages   string `json:"pages"`
	Listen  string `json:"listen"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
	Data    string `json:"data"`
	Log     string `json:"log"`
	Bearer  string `json:"bearer_decisions"`
	LogKey  string `json:"log_key"`
	SetUp   bool   `json:"set_up"`
	Owner   string `json:"owner,omitempty"` // only when this call made it
}

// Up makes sure that an authority runs on the data folder of o.Paths, is set
// up, and is the one that this user's client knows. Errors that have an exit
// code are *ExitError.
func Up(ctx context.Context, o Options) error {
	if o.StartLimit == 0 {
		o.StartLimit = 20 * time.Second
	}
	if o.Terminal == nil {
		o.Terminal = OpenTerminal
	}
	if err := prepare(&o); err != nil {
		return err
	}
	u := up{Options: o, control: NewControl(o.Paths.Data)}
	return u.run(ctx)
}

// prepare makes the data folder and finds the address to listen on.
func prepare(o *Options) error {
	if err := os.MkdirAll(o.Paths.Data, 0o700); err != nil {
		return exitf(CodeUnavailable, "cannot make the data folder: %w", err)
	}
	daemon, err := config.LoadLayers(config.DefaultDaemon(), o.Paths, "vogtd", nil)
	if err != nil {
		return &ExitError{CodeConfig, err}
	}
	client, err := config.LoadLayers(config.DefaultClient(), o.Paths, "vogt", nil)
	if err != nil {
		return &ExitError{CodeConfig, err}
	}
	if a := client.Value.Authority; !isLoopback(a) {
		return exitf(CodeConfig, "this user's authority is %s, as %s says, and `vogt up` would replace it by one on this machine.\nTo use a local one, remove the line authority from that file. To reach the other: vogt login", a, strings.Join(client.Files, " or "))
	}
	// An authority that was once started on another address comes back there:
	// the agents and passkeys know it by that.
	if o.Listen == "" && daemon.Value.Listen == config.DefaultDaemon().Listen && client.Value.AuthorityKey != "" {
		if addr, ok := loopbackAddr(client.Value.Authority); ok {
			o.Listen = addr
		}
	}
	return nil
}

// isLoopback reports whether the authority's address is on this machine.
func isLoopback(authority string) bool {
	u, err := url.Parse(authority)
	if err != nil {
		return false
	}
	host := u.Hostname()
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && a.IsLoopback()
}

// loopbackAddr returns host and port of an address like http://127.0.0.1:8648.
func loopbackAddr(authority string) (string, bool) {
	u, err := url.Parse(authority)
	if err != nil || u.Scheme != "http" {
		return "", false
	}
	a, err := netip.ParseAddrPort(u.Host)
	return u.Host, err == nil && a.Addr().IsLoopback() && a.Port() != 0
}

// up is one call of Up.
type up struct {
	Options
	control *Control
	daemon  *process // nil when vogtd ran already
	report  Report
}

func (u *up) run(ctx context.Context) (err error) {
	// Two calls at once must not start two daemons or write one file. The lock
	// is held until vogtd serves and is known, not during the set-up.
	lockCtx, cancel := context.WithTimeout(ctx, u.StartLimit+5*time.Second)
	defer cancel()
	lock, err := config.AcquireLock(lockCtx, filepath.Join(u.Paths.Data, "up.lock"))
	if err != nil {
		return exitf(CodeNotYet, "another `vogt up` is at work: %w", err)
	}
	defer lock.Unlock()

	status, err := u.running(ctx)
	if err != nil {
		return err
	}
	if u.daemon != nil && u.Foreground {
		defer func() {
			if err != nil {
				u.daemon.stop()
			}
		}()
	}
	if err := u.know(ctx, status); err != nil {
		return u.giveUp(err)
	}
	lock.Unlock()
	if err := u.setUp(ctx, status); err != nil {
		return err
	}
	if err := u.print(); err != nil {
		return err
	}
	if u.daemon != nil && u.Foreground {
		return u.attend(ctx)
	}
	return nil
}

// running finds the authority that runs already, or starts one.
func (u *up) running(ctx context.Context) (Status, error) {
	status, err := u.control.Status(ctx)
	switch {
	case err == nil:
		u.report.State = "running"
		return status, u.sameSettings(ctx, status)
	case !errors.Is(err, ErrNotRunning):
		return Status{}, exitf(CodeUnavailable, "an authority seems to run on %s, but it does not answer as it should: %w\nStop it and try again; its log is %s", u.Paths.Data, err, logFile(u.Paths.Data))
	}
	left := u.control.leftBehind()
	u.report.State = "started"
	u.daemon, err = start(u.Options)
	if err != nil {
		return Status{}, err
	}
	status, err = u.daemon.wait(ctx, u.control, u.StartLimit)
	if err == nil || !u.daemon.foundTaken() {
		return status, err
	}
	// An authority whose worker was killed, or is being replaced, still holds
	// the port, and answers again in a moment.
	patience := time.Second
	if left {
		patience = min(restartLimit, u.StartLimit)
	}
	if status, ok := u.control.await(ctx, patience); ok {
		u.daemon, u.report.State = nil, "running"
		return status, u.sameSettings(ctx, status)
	}
	return Status{}, err
}

// restartLimit is how long a supervisor may take to bring its worker back.
const restartLimit = 8 * time.Second

// sameSettings compares a running authority with what was asked for.
func (u *up) sameSettings(ctx context.Context, status Status) error {
	if u.Foreground {
		return exitf(CodeNotYet, "an authority runs already on %s (process %d).\nStop it first: vogt down", u.Paths.Data, status.PID)
	}
	health, err := fetchHealth(ctx, status)
	if err != nil {
		return &ExitError{CodeUnavailable, err}
	}
	var differ []string
	again := "vogt down && vogt up"
	if u.Listen != "" {
		again += " --listen " + u.Listen
		if u.Listen != status.Listen && !strings.HasSuffix(u.Listen, ":0") {
			differ = append(differ, fmt.Sprintf("it listens on %s, not on %s", status.Listen, u.Listen))
		}
	}
	if u.Bearer != "" {
		again += " --bearer-decisions " + u.Bearer
		if u.Bearer != health.Bearer {
			differ = append(differ, fmt.Sprintf("its bearer_decisions is %s, not %s", health.Bearer, u.Bearer))
		}
	}
	if len(differ) > 0 {
		return exitf(CodeConfig, "an authority runs already (process %d), with other settings: %s.\nTo change them: %s", status.PID, strings.Join(differ, "; "), again)
	}
	return nil
}

// know writes the authority's address and log key into vogt.toml, as the
// control socket tells them, once the port answers alike.
func (u *up) know(ctx context.Context, status Status) error {
	health, err := fetchHealth(ctx, status)
	if err != nil {
		return &ExitError{CodeUnavailable, err}
	}
	u.report = Report{
		State: u.report.State, Issuer: status.Issuer, Pages: status.Pages, Listen: status.Listen, PID: status.PID,
		Version: status.Version, Data: u.Paths.Data, Log: logFile(u.Paths.Data), Bearer: health.Bearer, LogKey: status.LogKey,
		SetUp: status.SetUp,
	}
	pin := pinned{authority: status.Issuer, logKey: status.LogKey}
	before, err := pin.write(u.Paths)
	if err != nil {
		return &ExitError{CodeConfig, err}
	}
	if before != "" && before != status.Issuer {
		fmt.Fprintf(u.Err, "The authority's address was %s and is %s now. Agents that logged in under the old one log in again: vogt login\n", before, status.Issuer)
	}
	return nil
}

// setUp brings an authority without an owner to one with an owner.
func (u *up) setUp(ctx context.Context, status Status) error {
	if u.Headless != nil {
		if err := u.control.MakeOwner(ctx, *u.Headless); err != nil {
			return u.giveUp(exitf(CodeConfig, "cannot make %s the owner: %w", u.Headless.Email, err))
		}
		u.report.SetUp, u.report.Owner = true, u.Headless.Email
		return nil
	}
	if status.SetUp || u.NoWait {
		return nil
	}
	tty, err := u.Terminal()
	if err != nil {
		return u.giveUp(exitf(CodeConfig, "this authority has no owner yet, and one cannot be made here: there is no controlling terminal to confirm on (%w), and no --owner-key was given.\n"+
			"Either run `vogt up` in a terminal, or: vogt up --headless --owner EMAIL --owner-key FILE.pub", err))
	}
	defer tty.Close()
	email, err := dialogue{control: u.control, tty: tty}.run(ctx)
	if err != nil {
		return err
	}
	u.report.SetUp, u.report.Owner = true, email
	return nil
}

// giveUp stops a daemon that this call started, so that a failed set-up leaves
// nothing behind that could be set up by somebody else.
func (u *up) giveUp(err error) error {
	if u.daemon != nil {
		u.daemon.stop()
	}
	return err
}

// attend waits for the attached daemon; the end of ctx stops it.
func (u *up) attend(ctx context.Context) error {
	select {
	case <-ctx.Done():
		u.daemon.stop()
		return nil
	case <-u.daemon.done:
		return u.daemon.ended()
	}
}

// fetchHealth asks the authority by the address that it listens on, whatever
// the name is under which clients reach it.
func fetchHealth(ctx context.Context, status Status) (api.Health, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	h, err := askHealth(ctx, status.Issuer, status.Listen)
	if err == nil && (h.Issuer != status.Issuer || h.LogKey != status.LogKey) {
		err = fmt.Errorf("%s answers as %s, and the control socket as %s: another program may hold the port", status.Listen, h.Issuer, status.Issuer)
	}
	return h, err
}

// Down stops the authority on the data folder and returns when its port is
// free again. It reports whether one ran.
func Down(ctx context.Context, data string) (bool, error) {
	control := NewControl(data)
	status, err := control.Status(ctx)
	if errors.Is(err, ErrNotRunning) {
		return false, nil
	}
	if err != nil {
		return false, &ExitError{CodeUnavailable, err}
	}
	if err := control.Shutdown(ctx); err != nil {
		return true, exitf(CodeUnavailable, "the authority (process %d) does not stop: %w", status.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if _, err := control.Status(ctx); errors.Is(err, ErrNotRunning) && free(status.Listen) {
			tick.Stop()
			return true, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return true, exitf(CodeUnavailable, "the authority was asked to stop, but process %d still runs or %s is still in use; see %s", status.PID, status.Listen, logFile(data))
		}
	}
}

// free reports whether nothing accepts connections on addr.
func free(addr string) bool {
	c, err := net.DialTimeout("tcp", dialAddr(addr), time.Second)
	if err != nil {
		return true
	}
	c.Close()
	return false
}
