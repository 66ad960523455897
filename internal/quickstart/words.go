package quickstart

import (
	"encoding/json"
	"fmt"
)

// print writes the address or the report to Out, and the rest for the person
// to Err.
func (u *up) print() error {
	r := u.report
	if u.JSON {
		e := json.NewEncoder(u.Out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	state := "The authority runs already"
	if r.State == "started" {
		state = "The authority runs"
	}
	fmt.Fprintf(u.Err, "%s (process %d). Its pages: %s\nIts address for programs, on standard output:\n", state, r.PID, r.Pages)
	if _, err := fmt.Fprintln(u.Out, r.Issuer); err != nil {
		return err
	}
	switch {
	case !r.SetUp:
		fmt.Fprintf(u.Err, "It has no owner yet. Set it up in a terminal: vogt up\n")
	case r.Owner != "":
		fmt.Fprintf(u.Err, "\nOwner: %s\n%s", r.Owner, firstSteps)
		if u.Headless != nil {
			key := u.Headless.KeyFile
			if key == "" {
				key = "FILE"
			}
			fmt.Fprintf(u.Err, "  vogt login %s --key %s\n", r.Owner, key)
		}
		fmt.Fprint(u.Err, nextSteps)
	}
	if r.Bearer != "none" && r.Bearer != "" {
		fmt.Fprintf(u.Err, "bearer_decisions is %s: whoever has a copy of your token may approve up to that risk.\n", r.Bearer)
	}
	return nil
}

// firstSteps is what a new owner reads. It promises nothing that docs/
// threat-model.md does not hold.
const firstSteps = `
What this set-up protects: mistakes. A command that your agent gives to
` + "`vogt run`" + ` waits for you, runs once, and is on record; a token on disk approves
nothing; other users of this machine are kept out.
What it does not: the authority runs as your own user. A program of yours that
sets out to can read its database and keys, and an agent that starts commands
without ` + "`vogt run`" + ` is not held. ` + "`vogt doctor`" + ` says what is in force.

Next:
`

// nextSteps are what makes use of it.
const nextSteps = `  vogt agent add NAME                          an identity for your agent
  vogt run --agent NAME --wait -- COMMAND      what it runs in place of COMMAND
`
