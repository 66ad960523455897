// Vogtd is the authority: it keeps people, agents, grants and the log, serves
// the pages on which a person answers, and never executes an agent's action.
//
// Without a command it is the small parent that holds the listening socket and
// runs `vogtd serve`, which does the work. This package owns flags and wiring
// and nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"vogt/internal/config"
	"vogt/internal/notify"
	"vogt/internal/supervise"
	"vogt/internal/version"
)

// Exit codes of sysexits(3), which the parent passes on.
const (
	exitUsage       = 64
	exitUnavailable = 69
	exitInternal    = 70
	exitLocked      = 75
	exitConfig      = 78
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `Vogtd is Vogt's authority. Usually "vogt up" starts it.

Usage:
  vogtd [flags]         hold the listening socket and run the authority
  vogtd serve [flags]   run the authority; the socket comes from the parent or
                        from systemd (LISTEN_FDS), else it binds --listen
  vogtd version

Flags:
`

// settings are the flags; what is unset comes from the configuration files.
type settings struct {
	data, listen, issuer, bearer, file, log, managementFile string
}

// Run is the whole program; it returns the exit code.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	command := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	switch command {
	case "version":
		fmt.Fprintln(stdout, version.Line("vogtd"))
		return 0
	case notifyCommand:
		return notify.Supervise(stdin, stdout, stderr)
	case "", "serve":
	default:
		fmt.Fprintf(stderr, "vogtd: unknown command %q; see vogtd --help\n", command)
		return exitUsage
	}
	var s settings
	flags := flag.NewFlagSet("vogtd", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	flags.StringVar(&s.data, "data", "", "data `directory` (default: $VOGT_HOME/data or $XDG_DATA_HOME/vogt)")
	flags.StringVar(&s.listen, "listen", "", "`address` and port to listen on (default 127.0.0.1:8648)")
	flags.StringVar(&s.issuer, "issuer", "", "`address` under which clients reach the authority (default http://LISTEN)")
	flags.StringVar(&s.bearer, "bearer-decisions", "", "highest `risk` that a login alone may approve: none, medium or high")
	flags.StringVar(&s.file, "config", "", "configuration `file` (default: vogtd.toml in /etc/vogt and the user's folder)")
	flags.StringVar(&s.log, "log", "", "write the log to this `file` instead of standard error")
	flags.StringVar(&s.managementFile, "management-token-file", "", "`file` with the management token (else $VOGT_MANAGEMENT_TOKEN)")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "vogtd: unexpected argument %q\n", flags.Arg(0))
		return exitUsage
	}
	err := s.run(ctx, command, args, stderr)
	if err == nil || errors.Is(err, context.Canceled) {
		return 0
	}
	fmt.Fprintln(stderr, "vogtd:", err)
	return codeOf(err)
}

// exitError is an error with the exit code that it ends the program with.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func fail(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

func codeOf(err error) int {
	var worker *supervise.ExitError
	var bind *supervise.BindError
	var own *exitError
	switch {
	case errors.As(err, &worker):
		return worker.Code
	case errors.As(err, &bind):
		return exitUnavailable
	case errors.As(err, &own):
		return own.code
	}
	return exitInternal
}

func (s *settings) run(ctx context.Context, command string, args []string, stderr io.Writer) error {
	paths, err := config.FindPaths(os.Getenv)
	if err != nil {
		return fail(exitConfig, err)
	}
	if s.data == "" {
		s.data = paths.Data
	}
	if s.data, err = filepath.Abs(s.data); err != nil {
		return fail(exitConfig, err)
	}
	cfg, err := s.load(paths)
	if err != nil {
		return fail(exitConfig, err)
	}
	out := stderr
	if s.log != "" {
		f, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return fail(exitConfig, fmt.Errorf("log file: %w", err))
		}
		defer f.Close()
		out = f
	}
	log := slog.New(newLogHandler(out, cfg.Log))
	if command == "serve" {
		return s.serve(ctx, cfg, paths, log)
	}
	return s.parent(ctx, cfg, args, out, log)
}

// load reads the configuration files and lays the flags over them.
func (s *settings) load(paths config.Paths) (config.Daemon, error) {
	over := func(d *config.Daemon) {
		for _, f := range []struct {
			to   *string
			from string
		}{{&d.Listen, s.listen}, {&d.Issuer, s.issuer}, {&d.BearerDecisions, s.bearer}} {
			if f.from != "" {
				*f.to = f.from
			}
		}
	}
	var cfg config.Daemon
	if s.file != "" {
		path, err := filepath.Abs(s.file)
		if err != nil {
			return cfg, err
		}
		if cfg, err = config.LoadOnto(config.DefaultDaemon(), path); err != nil {
			return cfg, err
		}
		over(&cfg)
	} else {
		layers, err := config.LoadLayers(config.DefaultDaemon(), paths, "vogtd", over)
		if err != nil {
			return cfg, err
		}
		cfg = layers.Value
	}
	return cfg, cfg.Validate()
}

func newLogHandler(w io.Writer, l config.Log) slog.Handler {
	var level slog.Level
	if level.UnmarshalText([]byte(l.Level)) != nil {
		level = slog.LevelInfo // Validate has refused anything else
	}
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}

// parent holds the socket; the worker gets the same flags.
func (s *settings) parent(ctx context.Context, cfg config.Daemon, args []string, out io.Writer, log *slog.Logger) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	listener, _, err := supervise.Listener(supervise.DefaultName)
	if err != nil {
		return fail(exitUnavailable, err)
	}
	options := supervise.Options{
		Listen: cfg.Listen, Listener: listener, Log: log,
		Child: slices.Concat([]string{self, "serve"}, args),
	}
	if f, ok := out.(*os.File); ok {
		options.Output = f
	}
	return supervise.Run(ctx, options)
}
