package confinetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	sceneName = "confinetest-"       // begins the names of scenes; the probe changes nothing elsewhere
	marker    = "confinetest-secret" // is in every secret
)

// Scene is a home with a workspace in it, and around them what attempts aim at:
// files, sockets, ports, a process, a terminal. It ends with its test.
type Scene struct {
	Dir       string // everything on disk is in it
	Home      string
	Workspace string // a repository in the home
	Link      string // a symbolic link to the workspace
	Outside   string // a folder that is neither

	values  map[string]string
	sockets []*socket
	victim  *process
	tty     *terminal
	queues  queues
	given   atomic.Int64 // descriptors that were handed out
}

// newScene makes a scene for the user that runs this process.
func newScene(t testing.TB) *Scene {
	t.Helper()
	base, err := os.UserCacheDir()
	if os.Getenv(jailVariable) == "in" {
		base, err = os.TempDir(), nil
	}
	if err == nil {
		err = os.MkdirAll(base, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return newSceneIn(t, base)
}

func newSceneIn(t testing.TB, base string) *Scene {
	t.Helper()
	dir, err := os.MkdirTemp(base, sceneName)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the scene: %v", err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &Scene{Dir: dir, Home: filepath.Join(dir, "home"), Outside: filepath.Join(dir, "outside"), Link: filepath.Join(dir, "link")}
	s.Workspace = filepath.Join(s.Home, "project")
	s.values = map[string]string{
		"scene": s.Dir, "home": s.Home, "ws": s.Workspace, "link": s.Link, "outside": s.Outside, "probe": Program(t, probePackage),
		"id": filepath.Base(s.Dir), "gifts": os.Getenv(giftsVariable), "self": fmt.Sprint(os.Getpid()), "cgroup": cgroup(), "disk": disk(),
	}
	s.files(t)
	s.descriptors(t)
	s.listen(t)
	s.startVictim(t)
	s.openTerminal(t)
	s.makeQueues(t)
	return s
}

// cgroup is a folder of a cgroup filesystem.
func cgroup() string {
	for _, name := range []string{"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/pids/cgroup.procs"} {
		if _, err := os.Stat(name); err == nil {
			return filepath.Dir(name)
		}
	}
	return "/sys/fs/cgroup"
}

// disk is a disk of the machine, if it has one.
func disk() string {
	text, err := os.ReadFile("/proc/partitions")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 4 {
			continue
		}
		name := filepath.Join("/dev", words[3])
		if st, err := os.Stat(name); err == nil && st.Mode()&os.ModeDevice != 0 && !strings.HasPrefix(words[3], "loop") {
			return name
		}
	}
	return ""
}

// content is what a scene's files hold, by their paths. A path that ends with /
// is an empty folder.
func content(dir string) map[string]string {
	repository := func(at string) map[string]string {
		return map[string]string{
			at + "/HEAD":                       "ref: refs/heads/main\n",
			at + "/config":                     "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
			at + "/hooks/post-checkout.sample": "#!/bin/sh\n",
			at + "/info/attributes":            "*.go text\n",
			at + "/objects/":                   "",
			at + "/refs/heads/":                "",
		}
	}
	out := map[string]string{
		"home/.ssh/id":                             marker + " id\n",
		"home/.netrc":                              marker + " netrc\n",
		"home/.bashrc":                             "# bashrc\n",
		"home/.profile":                            "# profile\n",
		"home/.cache/":                             "",
		"outside/file":                             "outside\n",
		"outside/secret":                           marker + " outside\n",
		"outside/folder/":                          "",
		"outside/run/":                             "",
		"home/project/main.go":                     "package main\n",
		"home/project/other.go":                    "package main\n",
		"home/project/.env":                        marker + " env\n",
		"home/project/.envrc":                      "# envrc\n",
		"home/project/.vscode/tasks.json":          "{}\n",
		"home/project/folder/":                     "",
		"home/project/.githooks/":                  "",
		"home/project/bare/":                       "",
		"home/project/wt/.git":                     "gitdir: " + dir + "/home/project/.git/worktrees/wt\n",
		"home/project/wt/file":                     "in a worktree\n",
		"home/project/.git/worktrees/wt/HEAD":      "ref: refs/heads/wt\n",
		"home/project/.git/worktrees/wt/commondir": "../..\n",
		"home/project/.git/worktrees/wt/gitdir":    dir + "/home/project/wt/.git\n",
		"home/project/planted/config":              "[core]\n",
	}
	for _, at := range []string{"home/project/.git", "home/project/a/b/.git"} {
		for name, text := range repository(at) {
			out[name] = text
		}
	}
	return out
}

func (s *Scene) files(t testing.TB) {
	t.Helper()
	for name, text := range content(s.Dir) {
		full := filepath.Join(s.Dir, name)
		folder := filepath.Dir(full)
		if strings.HasSuffix(name, "/") {
			folder = full
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if folder == full {
			continue
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range []struct{ target, at string }{
		{s.Workspace, s.Link}, {s.Outside, s.Workspace + "/out"}, {s.Home + "/.ssh", s.Workspace + "/ssh"},
	} {
		if err := os.Symlink(l.target, l.at); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(s.Workspace, "lives"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.Home+"/.ssh", 0o700); err != nil {
		t.Fatal(err)
	}
}

// descriptors leaves a secret and a folder open for every process that is
// started, as a careless parent does.
func (s *Scene) descriptors(t testing.TB) {
	t.Helper()
	for name, path := range map[string]string{"secretfd": s.Outside + "/secret", "folderfd": s.Outside} {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 100)
		unix.Close(fd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(high) })
		s.values[name] = fmt.Sprint(high)
	}
}

var placeholder = regexp.MustCompile(`\{[a-z0-9-]+\}`)

// expand replaces names in braces by what they are in the scene. It reports the
// name that the scene does not have.
func (s *Scene) expand(text string) (_ string, missing string) {
	out := placeholder.ReplaceAllStringFunc(text, func(name string) string {
		value := s.values[name[1:len(name)-1]]
		if value == "" {
			missing = name
		}
		return value
	})
	return out, missing
}

// pipe opens a named pipe of the workspace without waiting for its other end.
func (s *Scene) pipe(t testing.TB, name string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.Workspace, name), flags|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("close the pipe %s: %v", name, err)
		}
	})
	return f
}
