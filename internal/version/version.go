// Package version says which build of Vogt is running, and speaks for binaries
// that a build announces but does not contain yet.
//
// It owns the version string and those binaries' answers. It leaves out update
// checks and compatibility between versions. It imports the standard library
// only, so that the binaries with a closed list of imports can use it.
package version

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// stamp is what `git describe` said when the binary was made. The linker sets
// it (-X vogt/internal/version.stamp=…); nothing else does.
var stamp string

// String returns the version of the running binary: what the linker wrote, else
// the revision that the Go tool recorded, else "unknown".
func String() string {
	info, _ := debug.ReadBuildInfo()
	return describe(stamp, info)
}

// Line returns the sentence that `NAME version` prints, without a newline:
// name, version, Go release and platform.
func Line(name string) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)", name, String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// describe picks the version from stamp and from info, which may be nil.
func describe(stamp string, info *debug.BuildInfo) string {
	if stamp != "" {
		return stamp
	}
	if info == nil {
		return "unknown"
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if revision != "" {
		return revision[:min(12, len(revision))] + dirty
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "unknown"
}

// exitUnavailable is EX_UNAVAILABLE of sysexits.h: the service asked for is not
// there.
const exitUnavailable = 69

// Announced is a binary that this build has by name only. Scripts and units may
// refer to it; whoever runs it learns what it will be and what to use today.
type Announced struct {
	Name      string // of the binary
	Purpose   string // what it will do, completing "NAME will …"
	Meanwhile string // what to use until then, a sentence without its full stop
}

// Run answers `version` and `help` on stdout with exit code 0. Anything else is
// answered in two lines on stderr and with exit code 69.
func (a Announced) Run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 {
		switch args[0] {
		case "version", "--version":
			fmt.Fprintln(stdout, Line(a.Name))
			return 0
		case "help", "--help", "-h":
			fmt.Fprintf(stdout, "%s will %s.\nThis build does not contain it yet. %s.\n\nUsage:\n  %s version   print the version of this build\n  %s help      print this text\n",
				a.Name, a.Purpose, a.Meanwhile, a.Name, a.Name)
			return 0
		}
	}
	fmt.Fprintf(stderr, "%s: this build does not contain it yet; it will %s.\nMeanwhile: %s.\n", a.Name, a.Purpose, a.Meanwhile)
	return exitUnavailable
}
