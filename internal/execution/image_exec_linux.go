package execution

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// image returns the path to execute, and what to do once the child has started.
//
// A native program is executed through its descriptor, /proc/self/fd/N: the
// path could lead to another file between the last check and execve(2), the
// descriptor cannot. The link of the program's name in front of it is for the
// sake of the process name, which the kernel takes from the last part of the
// path (comm in proc_pid_comm(5)) and by which ps and pkill know it.
//
// A script is executed by its path: the kernel hands the path to the
// interpreter, which opens it again, after the descriptor has closed; and
// scripts find their files by it. So for scripts a short race remains. The
// same is true where /proc is not mounted.
func (b *Bound) image(streams []*os.File) (path string, release func()) {
	if !b.native {
		return b.pathImage(), func() {}
	}
	// Above the numbers that the standard streams and the start of a process
	// use, or they would replace it in the child.
	least := 3
	for _, f := range streams {
		least = max(least, int(f.Fd())+1)
	}
	const margin = 8
	fd, err := unix.FcntlInt(b.program.file.Fd(), unix.F_DUPFD_CLOEXEC, least+margin)
	if err != nil {
		return b.pathImage(), func() {}
	}
	link := fmt.Sprintf("/proc/self/fd/%d", fd)
	if _, err := os.Stat(link); err != nil {
		unix.Close(fd)
		return b.pathImage(), func() {}
	}
	folder, err := os.MkdirTemp("", ".vogt-")
	if err != nil {
		return link, func() { unix.Close(fd) }
	}
	release = func() {
		os.RemoveAll(folder)
		unix.Close(fd)
	}
	named := filepath.Join(folder, filepath.Base(b.program.found))
	if err := os.Symlink(link, named); err != nil || !filepath.IsAbs(named) {
		return link, release
	}
	return named, release
}
