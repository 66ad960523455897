package execution

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// copyProgram copies an installed program to path.
func copyProgram(t *testing.T, name, path string) {
	t.Helper()
	from, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

// The name that ps and pkill see is that of the program, and the child gets the
// same descriptors as when it is started by its path.
func TestNativeProgramLooksOrdinary(t *testing.T) {
	dir := tempDir(t)
	copyProgram(t, "bash", dir+"/renamed")
	t.Setenv("TMPDIR", mkdir(t, dir+"/tmp"))
	plain, err := exec.Command(dir+"/renamed", "-c", "echo /proc/$$/fd/*").Output()
	if err != nil {
		t.Fatal(err)
	}
	const show = `read comm </proc/$$/comm; echo "$comm"; echo /proc/$$/fd/*; readlink /proc/$$/exe; echo "$0"`
	_, printed, err := capture(t, Executor{Environ: os.Environ()}, []string{dir + "/renamed", "-c", show, "zero"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(printed, "\n")
	if lines[0] != "renamed" || lines[2] != dir+"/renamed" || lines[3] != "zero" {
		t.Errorf("the child sees %q", lines)
	}
	numbers := func(list string) string {
		return regexp.MustCompile(`/proc/\d+/fd/`).ReplaceAllString(strings.TrimSpace(list), "")
	}
	if got, want := numbers(lines[1]), numbers(string(plain)); got != want {
		t.Errorf("the child has descriptors %s, want %s", got, want)
	}
	if left, err := os.ReadDir(dir + "/tmp"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The race that the descriptor closes: the path leads elsewhere after the last
// check, before execve(2).
func TestNativeProgramIsExecutedByDescriptor(t *testing.T) {
	for _, tmp := range []string{"", "/nosuch/folder"} { // with and without a place for the named link
		if tmp != "" {
			t.Setenv("TMPDIR", tmp)
		}
		dir := tempDir(t)
		copyProgram(t, "echo", dir+"/tool")
		printed, err := attack(t, dir, []string{dir + "/tool", "bound"}, func(b *Bound, l launch) {
			if !b.native || l.watched != (tmp == "") {
				t.Errorf("native %v, watched %v", b.native, l.watched)
			}
			rename(t, dir+"/tool", dir+"/moved")
			script(t, dir, "tool", "#!/bin/sh\necho evil\n")
		})
		if err != nil || printed != "bound\n" {
			t.Errorf("printed %q, %v", printed, err)
		}
	}
}

// attack binds argv and lets do its worst between the last check and the start.
func attack(t *testing.T, dir string, argv []string, do func(*Bound, launch)) (printed string, err error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := Executor{}.Bind(argv, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	attr := &os.ProcAttr{Files: []*os.File{w, w, w}}
	l := b.prepare(attr.Files)
	do(b, l)
	child, err := b.begin(l, attr)
	l.release()
	w.Close()
	text, readErr := io.ReadAll(r)
	if readErr != nil {
		t.Fatal(readErr)
	}
	if err == nil {
		if _, err := child.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	return string(text), err
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func wantSwapped(t *testing.T, printed string, err error) {
	t.Helper()
	if e, ok := errors.AsType[*Error](err); !ok || e.Kind != Swapped || e.ExitCode() != 126 || !strings.Contains(e.Error(), "another file was executed") {
		t.Errorf("got %v, want that another file was executed", err)
	}
	if printed != "" {
		t.Errorf("the other file printed %q", printed)
	}
}

// A process of the same user puts another file in the place of the link that
// gives the program its name: it is not executed for a single instruction.
func TestSwappedLinkIsNoticed(t *testing.T) {
	t.Setenv("TMPDIR", tempDir(t))
	for name, put := range map[string]func(t *testing.T, dir, at string){
		"another link": func(t *testing.T, dir, at string) {
			if err := os.Symlink(dir+"/evil", at); err != nil {
				t.Fatal(err)
			}
		},
		"another file": func(t *testing.T, dir, at string) { rename(t, dir+"/evil", at) },
		"a script": func(t *testing.T, dir, at string) {
			if err := os.WriteFile(at, []byte("#!/bin/sh\necho evil\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			copyProgram(t, "echo", dir+"/tool")
			copyProgram(t, "echo", dir+"/evil")
			printed, err := attack(t, dir, []string{dir + "/tool", "evil"}, func(b *Bound, l launch) {
				if !l.watched {
					t.Fatal("the child is not watched")
				}
				if err := os.Remove(l.path); err != nil {
					t.Fatal(err)
				}
				put(t, dir, l.path)
			})
			wantSwapped(t, printed, err)
		})
	}
}

// The start of a script: another interpreter, or another script, before the
// interpreter has begun to read it.
func TestSwappedScriptIsNoticed(t *testing.T) {
	dir := tempDir(t)
	copyProgram(t, "bash", dir+"/interpreter")
	path := script(t, dir, "tool", "#!"+dir+"/interpreter\necho bound\n")
	printed, err := attack(t, dir, []string{path}, func(*Bound, launch) {})
	if err != nil || printed != "bound\n" {
		t.Fatalf("without an attack: printed %q, %v", printed, err)
	}
	printed, err = attack(t, dir, []string{path}, func(*Bound, launch) {
		rename(t, dir+"/interpreter", dir+"/moved")
		copyProgram(t, "bash", dir+"/interpreter")
	})
	wantSwapped(t, printed, err)
	printed, err = attack(t, dir, []string{path}, func(*Bound, launch) {
		script(t, dir, "tool", "#!"+dir+"/interpreter\necho evil\n")
	})
	if err == nil || printed != "" {
		t.Errorf("another script printed %q, %v", printed, err)
	}
}

// No link is made where other users could put another folder in the place of
// the one that holds it; the program runs all the same.
func TestLinkOnlyWhereItIsSafe(t *testing.T) {
	dir := tempDir(t)
	copyProgram(t, "echo", dir+"/tool")
	for _, tt := range []struct {
		mode fs.FileMode
		uid  int // of the folder; -1 for ours
		safe bool
	}{
		{0o700, -1, true}, {0o755, -1, true}, {0o777 | fs.ModeSticky, -1, true}, {0o777, -1, false}, {0o770, -1, false}, {0o777 | fs.ModeSticky, 12345, false}, {0o755, 12345, false},
	} {
		if tt.uid >= 0 && os.Getuid() != 0 {
			continue // giving a folder away takes root
		}
		tmp := mkdir(t, tempDir(t)+"/tmp")
		if err := os.Chmod(tmp, tt.mode); err != nil {
			t.Fatal(err)
		}
		if tt.uid >= 0 {
			if err := os.Chown(tmp, tt.uid, -1); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("TMPDIR", tmp)
		printed, err := attack(t, dir, []string{dir + "/tool", "bound"}, func(_ *Bound, l launch) {
			made, err := os.ReadDir(tmp)
			if err != nil || (len(made) > 0) != tt.safe || l.watched != tt.safe {
				t.Errorf("mode %v of %d: made %v, watched %v (%v)", tt.mode, tt.uid, made, l.watched, err)
			}
		})
		if err != nil || printed != "bound\n" {
			t.Errorf("mode %v of %d: printed %q, %v", tt.mode, tt.uid, printed, err)
		}
	}
}

// Where the start of a watched child fails, as it does where ptrace(2) is
// forbidden, the program is started by its descriptor alone.
func TestStartWithoutWatching(t *testing.T) {
	dir := tempDir(t)
	copyProgram(t, "echo", dir+"/tool")
	b, err := Executor{}.Bind([]string{dir + "/tool", "bound"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	attr := &os.ProcAttr{Files: []*os.File{w, w, w}}
	l := b.prepare(attr.Files)
	defer l.release()
	if !strings.HasPrefix(l.plain, "/proc/self/fd/") || strings.HasSuffix(l.plain, "tool") {
		t.Fatalf("the way without a link is %q", l.plain)
	}
	l.path = "/nosuch/tool"
	child, err := b.begin(l, attr)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if printed, err := io.ReadAll(r); err != nil || string(printed) != "bound\n" {
		t.Errorf("printed %q, %v", printed, err)
	}
}

// A program with more rights than its caller must keep them, so it is not
// watched, and has no link that would need it.
func TestPrivilegedProgramIsNotWatched(t *testing.T) {
	dir := tempDir(t)
	copyProgram(t, "echo", dir+"/tool")
	if err := os.Chmod(dir+"/tool", 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	printed, err := attack(t, dir, []string{dir + "/tool", "bound"}, func(_ *Bound, l launch) {
		if l.watched || !strings.HasPrefix(l.path, "/proc/self/fd/") || strings.HasSuffix(l.path, "tool") {
			t.Errorf("started by %s, watched %v", l.path, l.watched)
		}
	})
	if err != nil || printed != "bound\n" {
		t.Errorf("printed %q, %v", printed, err)
	}
}

func TestForeignImages(t *testing.T) {
	if otherFormats() {
		t.Skip("this machine has handlers for foreign formats (binfmt_misc)")
	}
	dir := tempDir(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	other := slices.Clone(program[:4096])
	const s390 = 22
	other[elfMachineAt], other[elfMachineAt+1] = s390, 0
	script(t, dir, "other", string(other))
	script(t, dir, "text", "echo hi\n")
	script(t, dir, "empty", "")
	script(t, dir, "stub", "\x7fELF")
	for name, kind := range map[string]Kind{"other": Architecture, "stub": Architecture, "text": NoProgram, "empty": NoProgram} {
		_, err := Executor{}.Bind([]string{dir + "/" + name}, dir)
		if e, ok := errors.AsType[*Error](err); !ok || e.Kind != kind || e.ExitCode() != 126 {
			t.Errorf("%s: %v, want kind %d (%s)", name, err, kind, kindTexts[kind])
		}
	}
}

// An image that only the kernel can refuse: its loader is missing.
func TestMissingLoader(t *testing.T) {
	dir := tempDir(t)
	copyProgram(t, "echo", dir+"/tool")
	program, err := os.ReadFile(dir + "/tool")
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(program, []byte("/lib"))
	if at < 0 {
		t.Skip("echo has no loader here")
	}
	program[at+1] = 'X'
	script(t, dir, "tool", string(program))
	b, err := Executor{}.Bind([]string{dir + "/tool"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = Executor{}.Run(context.Background(), b)
	if e, ok := errors.AsType[*Error](err); !ok || e.Kind != NoInterpreter || e.ExitCode() != 126 {
		t.Errorf("got %v, want the missing loader", err)
	}
}

// A program that may be executed but not read, as sudo is on some systems, is
// bound by its identity.
func TestUnreadableProgram(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making a file that one cannot read takes another user")
	}
	dir := tempDir(t)
	for d := dir; d != "/"; d = filepath.Dir(d) {
		if d == dir || strings.HasPrefix(d, os.TempDir()+"/") {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	copyProgram(t, "echo", dir+"/tool")
	if err := os.Chmod(dir+"/tool", 0o711); err != nil {
		t.Fatal(err)
	}
	cmd := helperCommand(t, dir+"/tool", "ran")
	copyProgram(t, cmd.Path, dir+"/helper") // the test binary lies where others may not look
	cmd.Path, cmd.Dir = dir+"/helper", dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ran\n" {
		t.Errorf("printed %q, %v", out, err)
	}
}
