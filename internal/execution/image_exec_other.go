//go:build !linux

package execution

import "os"

// launch is how a child is started.
type launch struct {
	path    string
	release func()
}

// prepare finds the way to start what was bound: this system starts programs by
// path only, so that a short race with a change of the file remains.
func (b *Bound) prepare([]*os.File) launch {
	return launch{path: b.pathImage(), release: func() {}}
}

// begin starts the child.
func (b *Bound) begin(l launch, attr *os.ProcAttr) (*os.Process, error) {
	return os.StartProcess(l.path, b.argv, attr)
}
