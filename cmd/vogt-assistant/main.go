// Command vogt-assistant will run Vogt's own assistant as an agent's OS user,
// with every action passing the same gate as any other agent's. It never
// decides or approves anything, and this build holds its name only.
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
		Name:      "vogt-assistant",
		Purpose:   "work on described tasks with tools, memory and jobs, each action through Vogt's gate",
		Meanwhile: "Give the agent that you already use an identity with `vogt agent add NAME`, and have it run commands with `vogt run --agent NAME -- COMMAND`",
	}.Run(args, stdio.Out, stdio.Err)
}
