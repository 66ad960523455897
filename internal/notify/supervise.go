package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// Subcommand is the hidden subcommand with which Self starts the running
// binary, and which has to call Supervise.
const Subcommand = "notify-run"

// Self returns how to start the running binary as a supervisor.
func Self() ([]string, error) {
	if runtime.GOOS == "linux" {
		return []string{"/proc/self/exe", Subcommand}, nil // also after an update has replaced the file
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("notify: cannot find the running program: %w", err)
	}
	return []string{exe, Subcommand}, nil
}

// order is what a supervisor is told, on its standard input: unlike arguments,
// other users cannot read it there.
type order struct {
	Command []string      `json:"command"`
	Limit   time.Duration `json:"limit"`
	Stderr  bool          `json:"stderr"`
}

// maxMessage bounds what supervisor and notifier tell each other.
const maxMessage = 1 << 20

// process is a started supervisor.
type process struct {
	cmd *exec.Cmd
	out *os.File // its standard output
}

// start starts a supervisor and gives it its order.
func (n *Notifier) start(card Card, keepStderr bool) (*process, error) {
	message, err := json.Marshal(order{Command: n.config.Command, Limit: n.config.Limit, Stderr: keepStderr})
	if err != nil {
		return nil, fmt.Errorf("notify: %w", err)
	}
	cmd := exec.Command(n.config.Supervisor[0], n.config.Supervisor[1:]...)
	cmd.Env = n.environment(card)
	cmd.SysProcAttr = apart()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("notify: %w", err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("notify: %w", err)
	}
	cmd.Stdout = childOut
	err = cmd.Start()
	childOut.Close()
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("notify: the supervisor cannot be started: %w", err)
	}
	_, err = in.Write(message)
	if err = errors.Join(err, in.Close()); err != nil {
		out.Close()
		cmd.Process.Kill()
		cmd.Wait() // its own error adds nothing
		return nil, fmt.Errorf("notify: the supervisor does not take its order: %w", err)
	}
	return &process{cmd: cmd, out: out}, nil
}

// release lets the supervisor go on alone.
func (p *process) release() error {
	p.out.Close()
	if err := p.cmd.Process.Release(); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}

// wait returns the supervisor's answer, or the cause of ctx if that ends first.
func (p *process) wait(ctx context.Context) (Result, error) {
	type answer struct {
		result Result
		err    error
	}
	answers := make(chan answer, 1)
	go func() { // ends with the supervisor, which has a limit
		var a answer
		a.err = json.NewDecoder(io.LimitReader(p.out, maxMessage)).Decode(&a.result)
		answers <- a
		p.out.Close()
		p.cmd.Wait() // reaps it; what it had to say is in the answer
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return Result{}, fmt.Errorf("notify: the supervisor ended without an answer; does this binary know %q? (%w)", Subcommand, a.err)
		}
		return a.result, nil
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
}

// Exit codes of Supervise.
const (
	exitDone  = 0
	exitUsage = 64
)

// Supervise is the other end of a Notifier: it reads an order from stdin, runs
// the command with its own environment, ends all of it at the limit, and writes
// the result to stdout. It returns the process's exit code. It is not for
// people to call, and gives no power that its caller does not have.
func Supervise(stdin io.Reader, stdout, stderr io.Writer) int {
	var o order
	decoder := json.NewDecoder(io.LimitReader(stdin, maxMessage))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o); err != nil || len(o.Command) == 0 || o.Limit <= 0 {
		fmt.Fprintf(stderr, "%s is started by Vogt itself, to run the notification command with a time limit.\nTo try that command, use the --test switch of the notification settings.\n", Subcommand)
		return exitUsage
	}
	// Whoever gave the order may be gone; the work is done either way.
	json.NewEncoder(stdout).Encode(o.run())
	return exitDone
}

// run runs the command and returns when it and what it started have ended.
func (o order) run() Result {
	program, err := exec.LookPath(o.Command[0])
	if err != nil {
		return Result{Problem: unavailable(o.Command[0], err)}
	}
	cmd := &exec.Cmd{Path: program, Args: o.Command, Env: os.Environ(), Dir: filepath.VolumeName(program) + string(filepath.Separator)}
	var stderr *capture
	if o.Stderr {
		if stderr, err = newCapture(); err != nil {
			return Result{Problem: err.Error()}
		}
		cmd.Stderr = stderr.writer
	}
	group, err := newGroup(cmd)
	if err != nil {
		return Result{Problem: "the command cannot be confined to a group: " + err.Error()}
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return Result{Problem: unavailable(program, err)}
	}
	var result Result
	result.Exit, result.TimedOut = group.wait(cmd, o.Limit)
	result.Duration = time.Since(begin)
	if stderr != nil {
		result.Stderr = stderr.finish()
	}
	return result
}

func unavailable(program string, err error) string {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Sprintf("the command %q is not in any folder of PATH (%s); install it or change notify.command", program, os.Getenv("PATH"))
	}
	return fmt.Sprintf("the command cannot be started: %v; change notify.command", err)
}

// maxStderr is how much of standard error is kept.
const maxStderr = 64 << 10

// capture keeps the begin of what is written to a pipe, and reads the rest, so
// that no writer has to wait.
type capture struct {
	reader, writer *os.File
	kept           []byte
	done           chan struct{}
}

func newCapture() (*capture, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &capture{reader: r, writer: w, done: make(chan struct{})}
	go func() { // ends when all writers or the reader are closed: finish closes the reader
		defer close(c.done)
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			c.kept = append(c.kept, buf[:min(n, maxStderr-len(c.kept))]...)
			if err != nil {
				return
			}
		}
	}()
	return c, nil
}

// finish returns what was kept. All writers have usually ended, so that the
// pipe ends by itself; one that left the group is not waited for.
func (c *capture) finish() string {
	c.writer.Close()
	select {
	case <-c.done:
	case <-time.After(time.Second):
	}
	c.reader.Close()
	<-c.done
	return string(c.kept)
}
