// Command vogt-confine puts up the walls of a box and starts one command in it.
// It is started by vogt, which decides what is in the box; it decides nothing.
// Its imports are a closed list.
package main

import (
	"fmt"
	"io"
	"os"

	"vogt/internal/execution/confine/attempt"
	"vogt/internal/execution/confine/inside"
	"vogt/internal/execution/confine/plan"
	"vogt/internal/version"
)

func main() {
	os.Exit(Run(os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `vogt-confine puts up a box and starts a command in it, as vogt tells it to.
It is no command for people: use "vogt confine -- COMMAND".

Usage:
  vogt-confine version   print the version of this build
  vogt-confine help      print this text
`

// exitUsage is EX_USAGE of sysexits.h.
const exitUsage = 64

// Run runs the program with the arguments after its name and returns its exit
// code.
func Run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 2 && args[0] == attempt.Argument {
		return attempt.Main(args[1], stdout, stderr)
	}
	if len(args) >= 4 && args[0] == plan.LimitArgument {
		return inside.Limit(args[1:])
	}
	if len(args) >= 4 && args[0] == plan.WithinArgument {
		return inside.Within(args[1:])
	}
	if len(args) >= 3 && args[0] == plan.ThroughArgument {
		return inside.Through(args[1:])
	}
	if len(args) == 1 {
		switch args[0] {
		case "version", "--version":
			fmt.Fprintln(stdout, version.Line("vogt-confine"))
			return 0
		case "help", "--help", "-h":
			fmt.Fprint(stdout, usage)
			return 0
		case plan.Argument:
			return inside.Main()
		}
	}
	fmt.Fprint(stderr, usage)
	return exitUsage
}
