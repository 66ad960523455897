// Command vogt-confine will start one program in a box that the kernel
// enforces: chosen paths, no or named network, masked credentials. Its imports
// are a closed list, and this build holds its name only.
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
		Name:      "vogt-confine",
		Purpose:   "start a program in a box of chosen paths and network that the kernel enforces",
		Meanwhile: "Keep each agent under an OS user of its own; `vogt run` asks before a command runs, but does not box it",
	}.Run(args, stdio.Out, stdio.Err)
}
