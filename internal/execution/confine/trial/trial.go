// Package trial finds out what a box holds on this machine, by trying: it makes
// the attempts of package attempt without a box and in one.
//
// It owns the scene of the trial, the verdict, and what helps where there can be
// no box. It changes nothing outside of a temporary folder, and disturbs no
// process but one that it starts itself. The many attempts that a box must hold
// belong to tests (confinetest).
package trial

import (
	"vogt/internal/execution/confine/plan"
)

// Verdict is what came of a trial. The zero value says that nothing was tried.
type Verdict struct {
	Report  plan.Report
	Held    []string // what went through without a box and did not in it
	Open    []string // what went through in the box
	Unshown []string // what does not go through here even without a box
	Refused string   // why there is no box with namespaces
	Remedy  string   // what helps
	Reduced bool     // there can be a reduced one
	Group   []string // what a control group holds for the box as a whole
}
