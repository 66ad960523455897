package execution

import (
	"bytes"
	"context"
	"errors"
	"io"
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
		dir := tempDir(t)
		if tmp != "" {
			t.Setenv("TMPDIR", tmp)
		}
		copyProgram(t, "echo", dir+"/tool")
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		b, err := Executor{}.Bind([]string{dir + "/tool", "bound"}, dir)
		if err != nil {
			t.Fatal(err)
		}
		if !b.native {
			t.Fatal("a copy of echo was not recognised as native")
		}
		image, release := b.image([]*os.File{w, w, w})
		if err := os.Rename(dir+"/tool", dir+"/moved"); err != nil {
			t.Fatal(err)
		}
		script(t, dir, "tool", "#!/bin/sh\necho evil\n")
		child, err := os.StartProcess(image, b.Argv(), &os.ProcAttr{Files: []*os.File{nil, w, w}})
		release()
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		printed, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if state, err := child.Wait(); err != nil || !state.Success() || string(printed) != "bound\n" {
			t.Errorf("printed %q, %v, %v", printed, state, err)
		}
		r.Close()
		b.Close()
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
