package supervise

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
)

// The variables of the agreement. LISTEN_PID cannot be used by a parent that
// does not know the child's pid before it runs; the child compares
// parentVariable with its parent instead.
const (
	countVariable  = "LISTEN_FDS"
	namesVariable  = "LISTEN_FDNAMES"
	pidVariable    = "LISTEN_PID"
	parentVariable = "VOGT_PARENT_PID"
	readyVariable  = "VOGT_READY_FD"
)

// longestLine bounds the line that a worker writes when it is ready.
const longestLine = 64 << 10

// worker is one run of the child. Its fields code and how may be read after
// done is closed.
type worker struct {
	cmd   *exec.Cmd
	pid   int
	ready atomic.Bool
	done  chan struct{}
	code  int    // exit code; -1 when a signal ended it
	how   string // in words
}

// start runs the child. A goroutine of the worker waits for its end; it ends
// with the child.
func (p *parent) start() (*worker, error) {
	cmd := exec.Command(p.Child[0], p.Child[1:]...)
	cmd.Env = withoutAgreement(p.Env)
	cmd.Stdout, cmd.Stderr = p.Output, p.Output
	line, err := p.pass(cmd)
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: cmd, done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		line.Close()
		return nil, err
	}
	line.started()
	w.pid = cmd.Process.Pid
	p.Log.Info("worker started", "pid", w.pid)

	told := make(chan struct{})
	go func() {
		defer close(told)
		p.hear(w, line)
	}()
	go func() {
		defer close(w.done)
		err := cmd.Wait()
		line.Close() // a grandchild may still hold the other end
		<-told
		w.code = cmd.ProcessState.ExitCode()
		w.how = cmd.ProcessState.String()
		if err != nil && w.code == 0 {
			w.code, w.how = -1, err.Error()
		}
	}()
	return w, nil
}

// hear reads the one line that the worker writes when it is ready.
func (p *parent) hear(w *worker, line io.Reader) {
	text, err := bufio.NewReaderSize(io.LimitReader(line, longestLine), 4096).ReadBytes('\n')
	if err != nil {
		return // it ended, or closed the pipe, without becoming ready
	}
	if !json.Valid(text) {
		p.Log.Warn("the worker's line of readiness is not JSON", "pid", w.pid)
		return
	}
	w.ready.Store(true)
	p.Log.Info("worker ready", "pid", w.pid)
	if p.Ready != nil {
		p.Ready(json.RawMessage(strings.TrimSpace(string(text))))
	}
}

func (w *worker) kill() { _ = w.cmd.Process.Kill() } // an error means that it has ended

// withoutAgreement drops variables that were meant for the parent itself.
func withoutAgreement(env []string) []string {
	kept := make([]string, 0, len(env)+4)
	for _, e := range env {
		switch name, _, _ := strings.Cut(e, "="); name {
		case countVariable, namesVariable, pidVariable, parentVariable, readyVariable:
		default:
			kept = append(kept, e)
		}
	}
	return kept
}

// Ready tells the parent, if there is one, that the worker serves. Value
// becomes one line of JSON; it may be called once.
func Ready(value any) error {
	f, err := readyPipe()
	if f == nil || err != nil {
		return err
	}
	defer f.Close()
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("tell the parent that the worker is ready: %w", err)
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("tell the parent that the worker is ready: %w", err)
	}
	return nil
}

// pipeLine is the parent's end of the pipe of readiness, and the ends that it
// gives away.
type pipeLine struct {
	io.Reader
	own   *os.File
	given *os.File
}

// started closes the parent's copy of the end that the child now holds.
func (l *pipeLine) started() {
	if l.given != nil {
		l.given.Close()
		l.given = nil
	}
}

func (l *pipeLine) Close() {
	l.started()
	if l.own != nil {
		l.own.Close()
	}
}
