// Command vogt-elevated will run as root by socket activation and execute
// single approved commands as another OS user, after checking the approver's
// signature itself. Its imports are a closed list without any network client,
// and this build holds its name only.
package main

import (
	"context"
	"io"
	"os"

	"vogt/internal/version"
)

func main() {
	os.Exit(Run(context.Background(), os.Args[1:], Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// Stdio is what the program reads and writes, so that a test can run it.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// Run runs the program with the arguments after its name and returns its exit
// code.
func Run(_ context.Context, args []string, stdio Stdio) int {
	return version.Announced{
		Name:      "vogt-elevated",
		Purpose:   "execute single commands as another OS user after checking their approval itself, offline",
		Meanwhile: "Run what needs another user yourself; leave the agent's OS user out of sudoers",
	}.Run(args, stdio.Out, stdio.Err)
}
