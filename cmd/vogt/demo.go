package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"vogt/internal/quickstart"
	"vogt/internal/reading"
	"vogt/internal/terminal"
)

func newDemoCommand(e *env) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "A tour: an agent asks, you answer, it runs once, it is on record",
		Long: `Demo shows Vogt at work on a throwaway authority of its own: an owner, an agent,
a command that waits for your answer, its one execution, a second one that is
refused, the audit log, and a forged record that is found out. Every
step is a real command line that you can use yourself. Your own settings are
not touched, and at the end nothing is left behind.`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if !signal.Ignored(syscall.SIGHUP) {
				// A closed terminal ends the tour like Ctrl-C: with nothing
				// left behind.
				attached, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
				defer stop()
				ctx = attached
			}
			return e.demo(ctx, yes)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask; answer yes")
	return cmd
}

const (
	demoOwner  = "you@example.org"
	demoAgent  = "demo"
	demoWord   = "hello from an agent"
	demoReason = "to greet you"
)

// tour is one demonstration.
type tour struct {
	ctx     context.Context
	out     io.Writer
	vogt    string // the running binary
	dir     string
	environ []string
	steps   int
	confirm func(ctx context.Context, question string) (bool, error)
}

// demo prepares the folder, makes the tour and removes everything again, also
// after an interrupt.
func (e *env) demo(ctx context.Context, yes bool) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	t := &tour{ctx: ctx, out: e.stdout, vogt: self, confirm: askYes}
	if yes {
		t.confirm = func(context.Context, string) (bool, error) { return true, nil }
	}
	if e.json {
		t.out = e.stderr
	}
	if !yes {
		if err := canAsk(); err != nil {
			return err
		}
	}
	if t.dir, err = os.MkdirTemp("", "vogt-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.cleanUp()) }()
	for _, entry := range e.environ {
		if !strings.HasPrefix(entry, "VOGT_") {
			t.environ = append(t.environ, entry)
		}
	}
	t.environ = append(t.environ, "VOGT_HOME="+t.dir)
	if err := t.run(); err != nil {
		return err
	}
	return e.print(map[string]any{"ok": true, "steps": t.steps}, func(io.Writer) error { return nil })
}

// canAsk refuses, before anything is started, where nobody can be asked.
func canAsk() error {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return errNobodyToAsk
	}
	return tty.Close()
}

var errNobodyToAsk = &usageError{text: "there is no terminal to ask on; run it with --yes"}

// askYes asks on the controlling terminal.
func askYes(ctx context.Context, question string) (bool, error) {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return false, errNobodyToAsk
	}
	defer tty.Close()
	answer, err := tty.Prompt(ctx, question)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.Is(err, io.EOF):
		return false, nil
	}
	return strings.EqualFold(strings.TrimSpace(answer), "y"), err
}

// cleanUp stops the authority and removes the folder.
func (t *tour) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 30*time.Second)
	defer cancel()
	_, err := quickstart.Down(ctx, filepath.Join(t.dir, "data"))
	return errors.Join(err, os.RemoveAll(t.dir))
}

func (t *tour) run() error {
	fmt.Fprintf(t.out, "A tour of Vogt, in %s, which is removed at the end.\n", t.dir)
	owner := filepath.Join(t.dir, "owner")
	if _, err := makeKey(owner, demoOwner); err != nil {
		return err
	}
	t.step("An authority of its own, whose owner is known by an SSH key.")
	if _, err := t.vogtRun(0, "up", "--headless", "--listen", "127.0.0.1:0", "--owner", demoOwner, "--owner-key", owner+".pub"); err != nil {
		return err
	}
	t.step("You log in. This token reads, denies and revokes; it permits nothing.")
	if _, err := t.vogtRun(0, "login", demoOwner, "--key", owner); err != nil {
		return err
	}
	t.step("You enrol an agent. That changes whom you trust, so your key signs it.")
	if _, err := t.vogtRun(0, "agent", "add", demoAgent); err != nil {
		return err
	}
	t.step("The agent wants to run a command. It gets exit code 75: not decided yet.")
	said, err := t.vogtRun(exitUndecided, append([]string{"run", "--agent", demoAgent, "--reason", demoReason, "--"}, greeting()...)...)
	if err != nil {
		return err
	}
	id, err := grantIn(said)
	if err != nil {
		return err
	}
	t.step("This waits for you. What you see here is what would run, and nothing else.")
	if _, err := t.vogtRun(0, "grant", "show", id); err != nil {
		return err
	}
	t.step("The agent tries to answer itself, and is refused.")
	if _, err := t.vogtRun(exitRefused, "grant", "approve", id, "--agent", demoAgent); err != nil {
		return err
	}
	yes, err := t.confirm(t.ctx, "\nMay the agent run it, once? [y/N] ")
	if err != nil {
		return err
	}
	if !yes {
		return t.denied(id)
	}
	return t.approved(id)
}

// denied is the rest of the tour after a no.
func (t *tour) denied(id string) error {
	t.step("You say no.")
	if _, err := t.vogtRun(0, "grant", "deny", id, "--note", "not today"); err != nil {
		return err
	}
	t.step("The agent learns it by exit code 77, with your note.")
	if _, err := t.vogtRun(exitRefused, "grant", "run", id, "--agent", demoAgent); err != nil {
		return err
	}
	return t.record()
}

// approved is the rest of the tour after a yes.
func (t *tour) approved(id string) error {
	t.step("You say yes. Your key signs exactly what is shown.")
	if _, err := t.vogtRun(0, "grant", "approve", id); err != nil {
		return err
	}
	t.step("The agent goes on, and the command runs.")
	said, err := t.vogtRun(0, "grant", "run", id, "--agent", demoAgent)
	if err != nil {
		return err
	}
	if !strings.Contains(said, demoWord) {
		return fmt.Errorf("the demonstration went wrong: the command did not greet, it said %q", said)
	}
	t.step("Once is once: the second time the agent gets exit code 76, spent.")
	if _, err := t.vogtRun(exitSpent, "grant", "run", id, "--agent", demoAgent); err != nil {
		return err
	}
	return t.record()
}

// record shows the log, and that a forged one is found out.
func (t *tour) record() error {
	t.step("All of it is on record: each record is a leaf of a signed tree.")
	if _, err := t.vogtRun(0, "audit", "verify"); err != nil {
		return err
	}
	t.step("Somebody who can write the authority's database changes one word of it behind its back.")
	if _, err := t.vogtRun(0, "down"); err != nil {
		return err
	}
	if err := t.forge(filepath.Join(t.dir, "data", "vogt.db")); err != nil {
		return err
	}
	if _, err := t.vogtRun(0, "up"); err != nil {
		return err
	}
	t.step("The record does not fit its leaf any more. Exit code 1 names it.")
	if _, err := t.vogtRun(exitMismatch, "audit", "verify"); err != nil {
		return err
	}
	t.step("That was it. The authority is stopped and everything is removed.")
	if _, err := t.vogtRun(0, "down"); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "\nFor your own: vogt up\n")
	return nil
}

// greeting is the agent's command.
func greeting() []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/c", "echo", demoWord}
	}
	// Its echo would need no card: it is one of the safe commands.
	return []string{"printf", demoWord + `\n`}
}

// step begins a step of the tour.
func (t *tour) step(text string) {
	t.steps++
	fmt.Fprintf(t.out, "\n%d. %s\n", t.steps, text)
}

// vogtRun shows a command line, runs it, shows what it says and returns that.
// Another exit code than the expected one ends the tour.
func (t *tour) vogtRun(want int, args ...string) (string, error) {
	fmt.Fprintf(t.out, "   $ vogt %s\n", reading.Line(args))
	var said bytes.Buffer
	code, err := t.start(args, &said)
	for line := range strings.Lines(said.String()) {
		fmt.Fprintf(t.out, "   | %s\n", strings.TrimRight(line, "\n"))
	}
	if err != nil {
		return "", err
	}
	if want != 0 || code != 0 {
		fmt.Fprintf(t.out, "   (exit code %d)\n", code)
	}
	if code != want {
		return "", fmt.Errorf("the demonstration went wrong at step %d: the command above exited with %d instead of %d", t.steps, code, want)
	}
	return said.String(), nil
}

// start runs vogt to its end. An interrupt is passed on, and the command gets
// the time to clean up.
func (t *tour) start(args []string, said io.Writer) (int, error) {
	cmd := exec.CommandContext(t.ctx, t.vogt, args...)
	cmd.Env, cmd.Dir = t.environ, t.dir
	cmd.Stdout, cmd.Stderr = said, said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	err := cmd.Run()
	if t.ctx.Err() != nil {
		return 0, context.Cause(t.ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// forge changes the reason that the agent gave, wherever it stands in the
// file. Both have the same length, so the file stays a database.
func (t *tour) forge(path string) error {
	const word, instead = demoReason, "to thank you"
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	forged := bytes.ReplaceAll(text, []byte(word), []byte(instead))
	if bytes.Equal(forged, text) {
		return fmt.Errorf("the demonstration went wrong: %q is not in %s", word, path)
	}
	fmt.Fprintf(t.out, "   $ sed -i 's/%s/%s/' %s\n", word, instead, filepath.Base(path))
	return os.WriteFile(path, forged, 0o600)
}

// grantIn finds the label that vogt prints for agents.
func grantIn(said string) (string, error) {
	for line := range strings.Lines(said) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "Grant: "); ok {
			return id, nil
		}
	}
	return "", errors.New("the demonstration went wrong: the pending answer names no grant")
}
