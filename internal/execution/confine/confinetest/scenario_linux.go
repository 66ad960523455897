package confinetest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// scenarios are what takes more than one attempt.
func (s *suite) scenarios(t *testing.T, level string) {
	for _, c := range []struct {
		name string
		deep bool // of boxes with namespaces only
		run  func(t *testing.T, level string)
	}{
		{"the host changes settings meanwhile", false, s.meanwhile},              // line 28
		{"two boxes, of which one ends", true, s.twoBoxes},                       // line 29
		{"no namespaces", true, s.noNamespaces},                                  // line 50
		{"the starter is killed", true, s.killed},                                // line 51
		{"a socket that is made later", false, s.laterSocket},                    // line 52
		{"the workspace is named by a link", false, s.linked},                    // line 56
		{"the workspace is in a temporary folder", true, s.temporary},            // line 56
		{"nothing is left of what stood for missing names", true, s.nothingLeft}, // lines 24, 25
	} {
		if !c.deep || level != Reduced {
			t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) { c.run(t, level) })
		}
	}
}

// waitLimit bounds how long a scenario waits for a box.
const waitLimit = time.Minute

// staged is a run that waits between its start and its attempt.
type staged struct {
	result chan Result
	ended  chan struct{}
	stop   *os.File // its end lets the attempt happen
}

// stage starts a run of an attempt, and returns when the command runs in its
// box and waits. The pipes are made for it.
func (s *suite) stage(t *testing.T, scene *Scene, level string, attempt ...string) *staged {
	t.Helper()
	var names [2]string
	for i, kind := range []string{"ready-", "go-"} {
		f, err := os.CreateTemp(scene.Workspace, kind)
		if err != nil {
			t.Fatal(err)
		}
		names[i] = f.Name()
		if err := errors.Join(f.Close(), os.Remove(names[i]), unix.Mkfifo(names[i], 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	open := func(name string) *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	ready, stop := open(names[0]), open(names[1])
	st := &staged{result: make(chan Result, 1), ended: make(chan struct{}), stop: stop}
	command := scene.command(level, append([]string{"when", names[0], names[1]}, attempt...))
	if err := ready.SetReadDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(st.ended)
		defer ready.SetReadDeadline(time.Now()) // nobody will write any more
		st.result <- s.run(t, command)
	}()
	t.Cleanup(func() {
		stop.Close()
		<-st.ended
	})
	if _, err := ready.Read(make([]byte, 16)); err != nil {
		note := "the runner gave up"
		<-st.ended
		select {
		case r := <-st.result:
			note = r.Note
		default:
		}
		t.Fatalf("the command does not run: %v; %s", err, note)
	}
	return st
}

// finish lets the attempt happen and returns what came of it.
func (st *staged) finish(t *testing.T) (answer, Result) {
	t.Helper()
	st.stop.Close()
	<-st.ended
	select {
	case r := <-st.result:
		a, err := answered(r)
		if err != nil {
			t.Fatal(err)
		}
		return a, r
	default:
		t.Fatal("the runner gave up")
		return answer{}, Result{}
	}
}

// meanwhile replaces the settings of the repository while a box runs, as git
// does: the mount that protects them goes with the old file.
func (s *suite) meanwhile(t *testing.T, level string) {
	scene := newScene(t)
	config := scene.Workspace + "/.git/config"
	st := s.stage(t, scene, level, "append", config)
	if err := os.WriteFile(config+".lock", []byte("[user]\n\tname = host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(config+".lock", config); err != nil {
		t.Fatal(err)
	}
	a, r := st.finish(t)
	if a.OK && len(r.Reported) == 0 {
		t.Errorf("%s was changed in the box, and the box reports nothing", config)
	}
}

// twoBoxes ends one of two boxes in a workspace: what stands for missing names
// must stay for the other one.
func (s *suite) twoBoxes(t *testing.T, level string) {
	scene := newScene(t)
	first := s.stage(t, scene, level, "read", scene.Workspace+"/main.go")
	second := s.stage(t, scene, level, "create-deep", scene.Workspace+"/.idea/workspace.xml")
	first.finish(t)
	if a, r := second.finish(t); a.OK {
		t.Errorf("the second box could make .idea when the first one had ended (it reports %q)", r.Reported)
	}
	missing(t, scene)
}

// nothingLeft looks at the workspace after a box.
func (s *suite) nothingLeft(t *testing.T, level string) {
	scene := newScene(t)
	names := func() []string {
		entries, err := os.ReadDir(scene.Workspace)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	before := names()
	s.run(t, scene.command(level, []string{"read", scene.Workspace + "/main.go"}))
	if after := names(); strings.Join(before, "\n") != strings.Join(after, "\n") {
		t.Errorf("the workspace had %q, and has %q", before, after)
	}
	missing(t, scene)
}

// missing checks that names which were missing are so still.
func missing(t *testing.T, scene *Scene) {
	t.Helper()
	for _, name := range []string{".idea", ".mcp.json"} {
		if _, err := os.Lstat(filepath.Join(scene.Workspace, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}

// noNamespaces takes from this thread, and what it starts, the right to make
// namespaces: the box must refuse.
func (s *suite) noNamespaces(t *testing.T, level string) {
	scene := newScene(t)
	made := scene.Workspace + "/made"
	command := scene.command(level, []string{"create", made})
	result, failed := make(chan Result, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		if err := withoutNamespaces(); err != nil {
			failed <- err
			return
		}
		defer close(result)
		result <- s.run(t, command)
	}()
	select {
	case err := <-failed:
		t.Fatalf("take the namespaces away: %v", err)
	case r := <-result:
		if r.Exit != 126 {
			t.Errorf("exit code %d, want 126; %s", r.Exit, r.Note)
		}
	}
	if _, err := os.Lstat(made); err == nil {
		t.Error("the command was started")
	}
	missing(t, scene)
}

// withoutNamespaces installs a filter on this thread by which calls that make
// user namespaces fail, as on machines where they are switched off.
func withoutNamespaces() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return filterNamespaces()
}

// filterNamespaces is withoutNamespaces for root, who may leave it to programs to
// give more rights.
func filterNamespaces() error {
	const load, equal, set, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const permit, fail = 0x7fff0000, 0x00050000
	code := [...]unix.SockFilter{
		{Code: load, K: 0}, // the number of the call
		{Code: equal, Jt: 5, K: uint32(unix.SYS_CLONE3)},
		{Code: equal, Jt: 1, K: uint32(unix.SYS_CLONE)},
		{Code: equal, Jf: 2, K: uint32(unix.SYS_UNSHARE)},
		{Code: load, K: 16}, // the flags
		{Code: set, Jt: 2, K: unix.CLONE_NEWUSER},
		{Code: ret, K: permit},
		{Code: ret, K: fail | uint32(unix.ENOSYS)},
		{Code: ret, K: fail | uint32(unix.EPERM)},
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, 1, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return nil
}

// killed kills the process that started a box: nothing of the box may live on.
func (s *suite) killed(t *testing.T, level string) {
	scene := newScene(t)
	lives := filepath.Join(scene.Workspace, "lives")
	r, err := os.OpenFile(lives, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd, result, output := s.start(t, scene.command(level, []string{"linger", lives}), nil)
	defer result.Close()
	if err := r.SetReadDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	// Until both processes of the box say that they run, or there can be none,
	// the pipe has a writer, so that it does not end.
	writer := scene.pipe(t, "lives", os.O_WRONLY)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
		writer.Close()
	}()
	for said := 0; said < 2; {
		n, err := r.Read(make([]byte, 2))
		if err != nil {
			_ = cmd.Process.Kill()
			<-ended
			t.Fatalf("the command does not run: %v\n%s", err, output)
		}
		said += n
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("processes of the box live on: %v", err)
	}
}

// laterSocket makes a socket when the box is up.
func (s *suite) laterSocket(t *testing.T, level string) {
	scene := newScene(t)
	folders := []string{scene.Outside}
	if level != Own { // in the workspace, a box with sockets reaches them
		folders = append(folders, scene.Workspace)
	}
	for _, folder := range folders {
		at := filepath.Join(folder, "later")
		st := s.stage(t, scene, level, "unix-stream", at)
		if !scene.add(t, at, [3]int{unix.AF_UNIX, unix.SOCK_STREAM, 0}, &unix.SockaddrUnix{Name: at}) {
			t.Fatal("there are no unix sockets")
		}
		a, _ := st.finish(t)
		if n := scene.sockets[len(scene.sockets)-1].count(t); a.OK || n > 0 {
			t.Errorf("the box reached %s, which was made later: %s, %d connections", at, a.word(), n)
		}
	}
}

// linked runs boxes whose workspace is named by a link.
func (s *suite) linked(t *testing.T, level string) {
	scene := newScene(t)
	s.works(t, scene, level, scene.Link)
}

// temporary runs boxes in a workspace below /tmp, which a box replaces.
func (s *suite) temporary(t *testing.T, level string) {
	scene := newSceneIn(t, "/tmp")
	s.works(t, scene, level, scene.Workspace)
}

// works checks that a workspace can be written and is guarded.
func (s *suite) works(t *testing.T, scene *Scene, level, workspace string) {
	t.Helper()
	for _, c := range []struct {
		attempt, at string
		ok          bool
	}{
		{"create", "new", true}, {"append", "main.go", true}, {"append", ".git/config", false}, {"create", ".git/hooks/pre-commit", false},
		{"create-deep", ".idea/x", false}, {"read", "../.ssh/id", false}, {"append", "out/file", false},
	} {
		command := scene.command(level, []string{c.attempt, scene.Workspace + "/" + c.at})
		command.Workspace = workspace
		r := s.run(t, command)
		a, err := answered(r)
		if err != nil {
			t.Fatal(err)
		}
		held := !a.OK || level == Reduced && len(r.Reported) > 0
		if c.ok && !a.OK || !c.ok && !held {
			t.Errorf("%s %s: %s, %s", c.attempt, c.at, a.word(), a.Detail)
		}
	}
}
