package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"vogt/internal/terminal"
)

// Card is what may be told of a request that waits.
type Card struct {
	GrantID    string
	ApproveURL string
	Agent      string // who asks
	Owner      string // who may answer
	Risk       string
	Summary    string // one line without the text of the command
	Command    string // that text; passed on only under Config.ShowCommand
}

// Config says what runs. The zero value runs nothing.
type Config struct {
	// Command is program and arguments. No shell reads them and nothing in them
	// is replaced: the card is in the environment.
	Command []string
	// ShowCommand also passes the text of the request's command, which may leave
	// the machine then.
	ShowCommand bool
	// Limit is after what time the command and all that it started are killed.
	Limit time.Duration
	// Supervisor is how this binary is started so that it calls Supervise; see
	// Self.
	Supervisor []string
	// Getenv looks up what the command inherits: PATH and the like. os.Getenv,
	// or nil for nothing.
	Getenv func(string) string
	// Log takes what went wrong and what was left out.
	Log *slog.Logger
}

const (
	queueLength = 64
	concurrency = 4
	// grace is how much longer than the limit a supervisor may take before it
	// is no longer waited for.
	grace = 5 * time.Second
)

// Notifier tells of cards, a few at a time.
type Notifier struct {
	config Config
	queue  chan Card
}

// New checks config. A Notifier without a command is valid and tells nothing.
func New(config Config) (*Notifier, error) {
	if len(config.Command) > 0 {
		program := config.Command[0]
		switch {
		case program == "" || filepath.Base(program) != program && !filepath.IsAbs(program):
			return nil, fmt.Errorf("notify: the command %q is neither the name of a program nor an absolute path; change notify.command", program)
		case strings.ContainsRune(strings.Join(config.Command, ""), 0):
			return nil, errors.New("notify: the command contains a zero byte; change notify.command")
		case config.Limit <= 0:
			return nil, errors.New("notify: the command has no time limit; set notify.limit")
		case len(config.Supervisor) == 0:
			return nil, errors.New("notify: nothing is given to supervise the command with")
		}
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &Notifier{config: config, queue: make(chan Card, queueLength)}, nil
}

// Send tells of a card and returns at once. If too many wait already, this one
// is dropped with a line in the log: the card itself is on the page anyway.
func (n *Notifier) Send(card Card) {
	if len(n.config.Command) == 0 {
		return
	}
	select {
	case n.queue <- card:
	default:
		n.config.Log.Warn("notification dropped: too many are waiting", "grant", card.GrantID, "waiting", queueLength)
	}
}

// Run runs the commands for the cards sent, until ctx ends. It returns without
// waiting for those that are running: their supervisors end them.
func (n *Notifier) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case card := <-n.queue:
					n.tell(ctx, card)
				}
			}
		})
	}
	workers.Wait()
}

// tell runs the command for one card and logs a failure.
func (n *Notifier) tell(ctx context.Context, card Card) {
	switch result, err := n.run(ctx, card, false); {
	case ctx.Err() != nil:
	case err != nil:
		n.config.Log.Error("notification failed", "grant", card.GrantID, "error", err)
	case !result.OK():
		n.config.Log.Warn("notification failed", "grant", card.GrantID, "result", result.String())
	}
}

// Detach starts the command for a card and returns without waiting for its end,
// for programs that are about to exit themselves.
func (n *Notifier) Detach(card Card) error {
	if len(n.config.Command) == 0 {
		return nil
	}
	process, err := n.start(card, false)
	if err != nil {
		return err
	}
	return process.release()
}

// Test runs the command for a card, waits for it and returns how it went,
// including what it wrote to standard error. The error says that it could not
// be tried.
func (n *Notifier) Test(ctx context.Context, card Card) (Result, error) {
	if len(n.config.Command) == 0 {
		return Result{}, errors.New("notify: no command is configured; set notify.command")
	}
	return n.run(ctx, card, true)
}

func (n *Notifier) run(ctx context.Context, card Card, keepStderr bool) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	process, err := n.start(card, keepStderr)
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, n.config.Limit+grace, errors.New("notify: the supervisor does not answer"))
	defer cancel()
	return process.wait(ctx)
}

// inherited are the variables that notification programs need: where programs
// and files are, the language, and the way to the person's desktop.
var inherited = [...]string{
	"PATH", "HOME", "LANG", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR",
	"SystemRoot", "USERPROFILE", "LOCALAPPDATA", "TEMP", // Windows
}

// environment is the whole environment of the command. Values are made visible,
// so that none can command a terminal or a log.
func (n *Notifier) environment(card Card) []string {
	var env []string
	if n.config.Getenv != nil {
		for _, name := range inherited {
			if value := n.config.Getenv(name); value != "" {
				env = append(env, name+"="+value)
			}
		}
	}
	values := [][2]string{
		{"VOGT_GRANT_ID", card.GrantID},
		{"VOGT_APPROVE_URL", card.ApproveURL},
		{"VOGT_AGENT", card.Agent},
		{"VOGT_OWNER", card.Owner},
		{"VOGT_RISK", card.Risk},
		{"VOGT_SUMMARY", card.Summary},
	}
	if n.config.ShowCommand {
		values = append(values, [2]string{"VOGT_COMMAND", card.Command})
	}
	for _, v := range values {
		env = append(env, v[0]+"="+terminal.Visible(shorten(v[1])))
	}
	return env
}

// maxValue bounds a variable's value, in bytes before it is made visible: a
// kernel refuses a program whose environment is too large (execve(2)).
const maxValue = 4096

func shorten(s string) string {
	if len(s) <= maxValue {
		return s
	}
	end := maxValue
	for !utf8.RuneStart(s[end]) && end > maxValue-utf8.UTFMax {
		end--
	}
	return s[:end] + "…"
}

// Result is how a command ended.
type Result struct {
	// Problem says why the command could not be started; the rest is empty then.
	Problem string `json:"problem,omitempty"`
	// Exit is the exit code, or 128 and the signal's number.
	Exit int `json:"exit"`
	// TimedOut reports that something still ran at the limit and was killed.
	TimedOut bool `json:"timed_out,omitempty"`
	// Duration is until the command and what it started had ended.
	Duration time.Duration `json:"duration"`
	// Stderr is the begin of what was written to standard error, in Test only.
	Stderr string `json:"stderr,omitempty"`
}

// OK reports whether the command did what it should.
func (r Result) OK() bool { return r.Problem == "" && r.Exit == 0 && !r.TimedOut }

// String describes the result in one line.
func (r Result) String() string {
	switch {
	case r.Problem != "":
		return r.Problem
	case r.TimedOut:
		return fmt.Sprintf("killed after %s", r.Duration.Round(time.Millisecond))
	default:
		return fmt.Sprintf("exit code %d after %s", r.Exit, r.Duration.Round(time.Millisecond))
	}
}
