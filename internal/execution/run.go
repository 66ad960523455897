package execution

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// Run starts what was bound and returns when it has ended. It starts nothing,
// and returns an *Error, when a file is not what it was when it was bound. The
// context is looked at before the start only: what becomes of a child that
// runs is up to the signals, which it gets.
func (x Executor) Run(ctx context.Context, b *Bound) (Outcome, error) {
	if err := b.unchanged(); err != nil {
		return Outcome{}, err
	}
	attr := &os.ProcAttr{Env: x.childEnviron()}
	if !b.cwd.current() {
		attr.Dir = b.cwd.path
	}
	for _, stream := range []struct {
		file *os.File
		flag int
	}{{x.Stdin, os.O_RDONLY}, {x.Stdout, os.O_WRONLY}, {x.Stderr, os.O_WRONLY}} {
		file := stream.file
		if file == nil {
			null, err := os.OpenFile(os.DevNull, stream.flag, 0)
			if err != nil {
				return Outcome{}, &Error{Path: os.DevNull, Err: cause(err)}
			}
			defer null.Close()
			file = null
		}
		attr.Files = append(attr.Files, file)
	}
	if ctx.Err() != nil {
		return Outcome{}, &Error{Path: b.program.found, Err: context.Cause(ctx)}
	}
	if b.box != nil {
		return b.box.run(b, attr)
	}
	return supervise(b, attr)
}

// pathImage is the path by which the program is started where it cannot be
// started by its descriptor. A script that was named by a path sees that path
// as its $0, as under a shell.
func (b *Bound) pathImage() string {
	if len(b.interpreters) > 0 && strings.ContainsRune(b.argv[0], '/') {
		return b.argv[0]
	}
	return b.program.found
}

// start starts the child.
func (b *Bound) start(attr *os.ProcAttr) (*os.Process, error) {
	l := b.prepare(attr.Files)
	defer l.release()
	child, err := b.begin(l, attr)
	if err == nil {
		return child, nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return nil, e
	}
	e := &Error{Path: b.program.found, Err: cause(err)}
	if errors.Is(err, fs.ErrNotExist) {
		// The program itself was there a moment ago.
		e.Kind, e.Err = NoInterpreter, nil
	}
	return nil, e
}
