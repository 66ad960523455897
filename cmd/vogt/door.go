package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"vogt/cmd/vogt/messages"
	"vogt/internal/execution"
	"vogt/internal/flow"
)

// executor lets package flow use package execution, which does not know it.
type executor struct{ execution.Executor }

func (x executor) Bind(argv []string, folder string) (flow.Bound, error) {
	b, err := x.Executor.Bind(argv, folder)
	if err != nil {
		return nil, err
	}
	return bound{b, x.Executor}, nil
}

type bound struct {
	*execution.Bound
	executor execution.Executor
}

func (b bound) Run(ctx context.Context) (flow.Exit, error) {
	outcome, err := b.executor.Run(ctx, b.Bound)
	return flow.Exit{Code: outcome.Code, Signal: outcome.Signal}, err
}

// executor is that of this process.
func (e *env) executor() flow.Executor {
	return executor{execution.Executor{Environ: e.environ, Stdin: e.stdin, Stdout: e.stdout, Stderr: e.stderr, Box: e.box}}
}

// duration is a flag in the form 30s, 5m, 1h or 7d.
type duration time.Duration

const day = 24 * time.Hour

// Set implements pflag.Value.
func (d *duration) Set(text string) error {
	value, err := parseDuration(text)
	if err != nil {
		return err
	}
	*d = duration(value)
	return nil
}

// longest is what a timed permission may last at most; the authority holds to
// it as well.
const longest = 366 * day

// check refuses a permission that no authority would give; flag names it.
func (d *duration) check(e *env, flag string) error {
	if time.Duration(*d) > longest {
		return &usageError{text: flag + ": " + e.text(messages.DurationTooLong, d.String(), formatDuration(longest))}
	}
	return nil
}

// Type implements pflag.Value.
func (*duration) Type() string { return "duration" }

// String implements pflag.Value. No duration is no text, so that the help shows
// no default.
func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return formatDuration(time.Duration(*d))
}

// formatDuration writes a duration as parseDuration reads it.
func formatDuration(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len(zero)+1]
		}
	}
	return text
}

// parseDuration reads whole seconds, minutes, hours or days.
func parseDuration(text string) (time.Duration, error) {
	bad := errors.New("want a duration such as 30s, 5m, 1h or 7d")
	value, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		value = time.Duration(n) * day
	}
	if err != nil || value < time.Second || value%time.Second != 0 {
		return 0, bad
	}
	return value, nil
}
