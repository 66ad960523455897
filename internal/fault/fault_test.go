package fault

import (
	"errors"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestNormalBuildImportsNothing proves that the normal build cannot read the
// environment or kill anything: the package imports no other package.
func TestNormalBuildImportsNothing(t *testing.T) {
	normal := build.Default
	normal.BuildTags = nil
	pkg, err := normal.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkg.Imports) != 0 {
		t.Errorf("the normal build of package fault imports %q; it must import nothing", pkg.Imports)
	}

	armed := build.Default
	armed.BuildTags = []string{"vogtfault"}
	pkg, err = armed.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkg.Imports) == 0 {
		t.Error("the vogtfault build imports nothing: this test looks at the wrong files")
	}
}

// TestPoint builds a small program both ways and runs it with every kind of
// value in the environment.
func TestPoint(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not installed, so the victim cannot be built")
	}
	dir := t.TempDir()
	compile := func(name string, args ...string) string {
		exe := filepath.Join(dir, name)
		if runtime.GOOS == "windows" {
			exe += ".exe"
		}
		args = append([]string{"build", "-o", exe}, append(args, "./testdata/victim")...)
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return exe
	}
	normal := compile("normal")
	armed := compile("armed", "-tags", "vogtfault")

	tests := []struct {
		exe, value string
		lines      int
		end        string // "" for a clean end, "kill", or "exit"
	}{
		{normal, "victim.loop", 4, ""},
		{normal, "victim.loop:x", 4, ""},
		{armed, "", 4, ""},
		{armed, "other.point", 4, ""},
		{armed, "victim.loop", 1, "kill"},
		{armed, "victim.loop:1", 1, "kill"},
		{armed, "victim.loop:3", 3, "kill"},
		{armed, "victim.loop:4", 4, ""},
		{armed, "victim.loop:0", 1, "exit"},
		{armed, "victim.loop:x", 1, "exit"},
	}
	for _, tt := range tests {
		t.Run(filepath.Base(tt.exe)+" "+tt.value, func(t *testing.T) {
			cmd := exec.Command(tt.exe)
			cmd.Env = append(os.Environ(), "VOGT_FAULT="+tt.value)
			out, err := cmd.Output()
			if got := strings.Count(string(out), "\n"); got != tt.lines {
				t.Errorf("printed %d lines, want %d:\n%s", got, tt.lines, out)
			}
			var exit *exec.ExitError
			end := ""
			switch {
			case errors.As(err, &exit) && exit.ExitCode() == 2:
				end = "exit"
			case errors.As(err, &exit):
				end = "kill" // -1 for a signal; 1 from TerminateProcess on Windows
			case err != nil:
				t.Fatal(err)
			}
			if end != tt.end {
				t.Errorf("ended by %q (%v), want %q", end, err, tt.end)
			}
		})
	}
}
