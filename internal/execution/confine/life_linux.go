package confine

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"vogt/internal/execution/confine/plan"
)

// life is how the starter ends a box, and passes signals on into it. Where the
// helper is the first process of namespaces, it is a signal to it. Where there are
// none, or bwrap stands between, it is a pipe: the helper ends the box when it
// closes, and so when the starter is killed.
type life struct {
	process *os.Process
	pipe    *os.File // or nil
	theirs  *os.File
}

// lifeOf gives the command the helper's end of a pipe, where one is needed.
func lifeOf(p *plan.Plan, cmd *exec.Cmd) (*life, error) {
	if p.Level == plan.Full {
		return &life{}, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, r)
	return &life{pipe: w, theirs: r}, nil
}

// begun says that the command was started, or could not be.
func (l *life) begun(cmd *exec.Cmd) {
	if l.theirs != nil {
		l.theirs.Close()
	}
	l.process = cmd.Process
}

// Signal passes a signal on.
func (l *life) Signal(s os.Signal) error {
	number, ok := s.(syscall.Signal)
	switch {
	case l.pipe == nil:
		return l.process.Signal(s)
	case !ok || number <= 0 || number > 64:
		return errors.New("no signal that can be passed on")
	}
	_, err := l.pipe.Write([]byte{byte(number)})
	return err
}

// endLimit is how long a helper has to end the box before it is ended itself.
const endLimit = 10 * time.Second

// end ends the box. It may be called more than once.
func (l *life) end() {
	switch {
	case l.process == nil:
		if l.pipe != nil {
			l.pipe.Close()
			l.theirs.Close()
		}
	case l.pipe == nil:
		_ = l.process.Kill() // it has ended, if that fails
	default:
		if l.pipe.Close() == nil {
			time.AfterFunc(endLimit, func() { _ = l.process.Kill() })
		}
	}
}
