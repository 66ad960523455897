package confine

import (
	"os"

	"vogt/internal/execution/confine/plan"
)

// Streams are the standard streams of the command.
type Streams struct{ In, Out, Err *os.File }

// Outcome tells how a box ended.
type Outcome struct {
	Code    int // exit code of the command, or 128+n when signal n ended it
	Report  plan.Report
	Changed []Change // protected files that are not what they were
	Earlier []Change // those of boxes whose starter was killed, found before this one
	Late    bool     // the box was ended because its time was up
	// Group names what a control group holds for the box as a whole, as the kernel
	// calls it (cgroups(7)). Empty is no group: limits are those of each process.
	Group []string
}

// RefusedError says why no command was started.
type RefusedError struct {
	Reason string
	Remedy string
	// Unseen is set if the program, or what runs it, exists but is not shown in the
	// box.
	Unseen bool

	cause      error // such as a *WideError, or nil
	namespaces bool  // this machine does not let a user have them
}

func (e *RefusedError) Error() string { return e.Reason }

// Unwrap returns what the plan of the box failed at, if it did.
func (e *RefusedError) Unwrap() error { return e.cause }
