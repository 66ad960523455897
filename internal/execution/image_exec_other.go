//go:build !linux

package execution

import "os"

// image returns the path to execute: this system starts programs by path only,
// so that a short race with a change of the file remains.
func (b *Bound) image([]*os.File) (path string, release func()) {
	return b.pathImage(), func() {}
}
