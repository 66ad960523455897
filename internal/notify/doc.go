// Package notify runs the command that tells a person of a card that waits.
//
// It owns how that command runs: without a shell, with what it needs in a few
// environment variables, apart from the authority, and never longer than a
// limit, even if the authority is killed meanwhile. A supervisor does that: the
// running binary, started again, which outlives its parent. Package notify
// leaves out when something is worth telling, and other channels such as push
// messages.
//
// The command ends with everything that it started in its process group (on
// Windows: in its job). On Unix, what it deliberately puts into another group,
// for example with setsid(1), is its own affair.
package notify
