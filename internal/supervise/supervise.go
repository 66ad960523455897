// Package supervise is the small parent of the authority: it binds the TCP
// port, hands it to a worker process and keeps it across the worker's restarts,
// so that nobody else can become the authority's address while it is down.
//
// It owns the listening port (binding, keeping, guarding the other loopback
// address, saying who holds it), the worker's life (start, restart with
// back-off, replacement, stop with a limit), and the worker's side of the
// agreement ([Listener], [Ready]). The sockets are passed as systemd passes
// them (sd_listen_fds(3)). It leaves out what the worker does, the control
// socket, and leaving the terminal.
//
// On Windows file descriptors cannot be passed to a child: there the parent
// only runs and restarts the worker, which binds the port itself, and the port
// is free for a moment during a restart.
package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// DefaultName is the name of the passed socket when Options.Name is empty.
const DefaultName = "http"

// The times of a supervisor. Stable is how long a ready worker must have lived
// for its death to count as the first one again.
const (
	defaultStopLimit = 10 * time.Second
	stable           = time.Minute
	firstDelay       = 250 * time.Millisecond
	longestDelay     = 30 * time.Second
)

// Options say what to run and where to listen.
type Options struct {
	// Listen is the TCP address, host:port; port 0 lets the system choose.
	Listen string
	// Listener, when set, is used instead of Listen, such as one that systemd
	// passed. It must have a File method, as *net.TCPListener has. Run takes
	// it over and closes it.
	Listener net.Listener
	// Name of the socket in LISTEN_FDNAMES; DefaultName when empty.
	Name string
	// Child is the worker's argument vector; the first element is the path of
	// its executable.
	Child []string
	// Env is the worker's environment, to which the variables of the agreement
	// are added; nil means the parent's own.
	Env []string
	// Output receives what the worker writes to standard output and error;
	// nil means the parent's standard error.
	Output *os.File
	// Log receives the parent's own lines; nil discards them.
	Log *slog.Logger
	// Bound, when set, is called once with the address that was bound, before
	// the first worker starts. It is not called on Windows.
	Bound func(net.Addr)
	// Ready, when set, is called with the line of JSON that a worker wrote
	// when it became ready, once for each worker.
	Ready func(json.RawMessage)
	// Signals brings SIGTERM and SIGINT (stop; a second one kills) and SIGHUP
	// (replace the worker). When nil, Run takes those of the process; ctx may
	// end by the same ones.
	Signals <-chan os.Signal
	// StopLimit is how long a worker may take to end after SIGTERM before it
	// is killed; ten seconds when zero.
	StopLimit time.Duration
	// Now and After are the clock; nil means the real one.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
}

// ExitError tells that the worker refused to start or to go on and that
// starting it again would not help. Code is its exit code, 64 to 78 as in
// sysexits(3), which the parent should pass on.
type ExitError struct{ Code int }

func (e *ExitError) Error() string {
	what := map[int]string{
		64: "wrong usage",
		69: "something that it needs is not available",
		70: "internal error",
		75: "the data directory is in use by another vogtd",
		77: "permission denied",
		78: "configuration error",
	}[e.Code]
	if what == "" {
		what = "see sysexits(3)"
	}
	return fmt.Sprintf("the worker stopped with exit code %d (%s) and is not started again: its own message stands above in the log", e.Code, what)
}

// final reports whether code is one that ends the supervision.
func final(code int) bool { return code >= 64 && code <= 78 }

// Run binds the port and runs the worker until ctx ends, a signal asks to
// stop, or the worker ends for good: with code 0, which gives nil, or with a
// code from 64 to 78, which gives an *ExitError. A port that cannot be bound
// gives a *BindError. Any other end of the worker starts it again, the first
// time at once.
func Run(ctx context.Context, o Options) error {
	if len(o.Child) == 0 {
		return errors.New("supervise: no worker to run: Options.Child is empty")
	}
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Output == nil {
		o.Output = os.Stderr
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.StopLimit == 0 {
		o.StopLimit = defaultStopLimit
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Signals == nil {
		c := make(chan os.Signal, 4)
		signal.Notify(c, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		defer signal.Stop(c)
		o.Signals = c
	}

	port, err := bind(o)
	if err != nil {
		return err
	}
	defer port.Close()
	if o.Bound != nil && port.file != nil {
		o.Bound(port.addr)
	}

	// The kernel's parent-death signal follows the thread that started the
	// worker, so that thread must live as long as the supervision.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := parent{Options: o, port: port}
	return p.run(ctx)
}

// parent is a running supervision.
type parent struct {
	Options
	port     *port
	failures int // deaths in a row without a stable life between them
}

// end says why watching a worker ended.
type end int

const (
	died    end = iota // by itself
	stopped            // because the supervision ends
	replace            // because a new worker is wanted
)

func (p *parent) run(ctx context.Context) error {
	for {
		w, err := p.start()
		if err != nil {
			return fmt.Errorf("cannot start the worker %s: %w", p.Child[0], err)
		}
		began := p.Now()
		switch p.watch(ctx, w) {
		case stopped:
			return nil
		case replace:
			p.failures = 0
			continue
		}
		if w.code == 0 {
			p.Log.Info("the worker ended as asked", "pid", w.pid)
			return nil
		}
		if final(w.code) {
			return &ExitError{Code: w.code}
		}
		if w.ready.Load() && p.Now().Sub(began) >= stable {
			p.failures = 0
		}
		delay := backOff(p.failures)
		p.failures++
		p.Log.Error("the worker died; it is started again", "pid", w.pid, "how", w.how, "delay", delay, "deaths", p.failures)
		if p.pause(ctx, delay) == stopped {
			return nil
		}
	}
}

// backOff is the wait before a restart: none after the first death, then
// doubling.
func backOff(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	d := firstDelay
	for range failures - 1 {
		if d *= 2; d >= longestDelay {
			return longestDelay
		}
	}
	return d
}

// watch waits for the worker's death or an order, and returns when the worker
// has ended.
func (p *parent) watch(ctx context.Context, w *worker) end {
	for {
		select {
		case <-w.done:
			return died
		case <-ctx.Done():
			// A signal may have ended ctx: its copy is no second one.
			p.stop(w, 1)
			return stopped
		case s := <-p.Signals:
			if s != syscall.SIGHUP {
				p.Log.Info("stopping", "signal", s.String())
				p.stop(w, 0)
				return stopped
			}
			p.Log.Info("replacing the worker", "pid", w.pid)
			if p.stop(w, 0) == stopped {
				return stopped
			}
			return replace
		}
	}
}

// stop ends the worker: it is asked first, and killed when the limit has
// passed or a signal to stop comes, after as many as are to be ignored. It
// returns stopped when such a signal came, so that an order to replace does
// not swallow it.
func (p *parent) stop(w *worker, ignored int) end {
	if err := w.terminate(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.Log.Warn("cannot ask the worker to end", "pid", w.pid, "err", err)
	}
	limit := p.After(p.StopLimit)
	result := died
	for {
		select {
		case <-w.done:
			return result
		case s := <-p.Signals:
			if s == syscall.SIGHUP {
				continue
			}
			if ignored > 0 {
				ignored--
				continue
			}
			result = stopped
			w.kill()
		case <-limit:
			p.Log.Warn("the worker did not end in time and is killed", "pid", w.pid, "limit", p.StopLimit)
			limit = nil
			w.kill()
		}
	}
}

// pause waits before a restart. SIGHUP ends the wait.
func (p *parent) pause(ctx context.Context, d time.Duration) end {
	if d == 0 {
		return died
	}
	select {
	case <-p.After(d):
		return died
	case <-ctx.Done():
		return stopped
	case s := <-p.Signals:
		if s == syscall.SIGHUP {
			return died
		}
		return stopped
	}
}
