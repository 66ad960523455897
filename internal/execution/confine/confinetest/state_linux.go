package confinetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// state is what must stay as it is, by names. Files have their paths.
type state map[string]string

// guarded are the paths of the workspace that a box must not change, and what
// lies in them.
var guarded = []string{
	".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes", ".git/commondir", ".githooks", ".vscode", ".idea", ".mcp.json", ".env", ".envrc",
	"a/b/.git/hooks", "a/b/.git/config", "a/b/.git/info/attributes", "wt/.git",
}

// free reports whether a path is what a box may write: the ordinary part of the
// workspace.
func (s *Scene) free(path string) bool {
	rest, ok := strings.CutPrefix(path, s.Workspace)
	if !ok {
		return false
	}
	rest = strings.TrimPrefix(rest, "/")
	return !slices.ContainsFunc(guarded, func(g string) bool { return rest == g || strings.HasPrefix(rest, g+"/") }) &&
		!slices.Contains([]string{".git", "a/b/.git", ""}, rest)
}

// state looks at all that the scene has, but for the free part of the workspace.
func (s *Scene) state(t testing.TB) state {
	t.Helper()
	out := state{}
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case s.free(path):
			return nil
		}
		text, err := describe(path)
		if err == nil {
			out[path] = text
		}
		return err
	})
	if err != nil {
		t.Fatalf("look at the scene: %v", err)
	}
	for _, c := range s.sockets {
		out[c.name] = fmt.Sprintf("received %d", c.count(t))
	}
	out["giver"] = fmt.Sprintf("gave %d", s.given.Load())
	out["victim"] = s.victim.ask(t)
	out["victim's limits"] = s.victim.limits(t)
	out["terminal"] = s.tty.pending(t)
	s.queues.state(t, out)
	return out
}

// describe is what a path is, holds and may.
func describe(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", err
	}
	text := fmt.Sprintf("mode %o, owner %d", st.Mode, st.Uid)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf(", links %d, changed %d, %d bytes: %q", st.Nlink, st.Mtim.Nano(), len(data), data[:min(len(data), 200)])
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		if flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS); err == nil {
			text += fmt.Sprintf(", flags %x", flags)
		}
		names := make([]byte, 1024)
		if n, err := unix.Flistxattr(fd, names); err == nil && n > 0 {
			text += fmt.Sprintf(", attributes %q", names[:n])
		}
	case unix.S_IFLNK:
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		text += " to " + target
	}
	return text, nil
}

// changes are the differences to a later state, sorted.
func (s state) changes(later state) []string {
	var out []string
	for name, was := range s {
		if is, ok := later[name]; !ok {
			out = append(out, name+": is gone")
		} else if is != was {
			out = append(out, fmt.Sprintf("%s: was %s; is %s", name, was, is))
		}
	}
	for name, is := range later {
		if _, ok := s[name]; !ok {
			out = append(out, name+": is new: "+is)
		}
	}
	slices.Sort(out)
	return out
}
