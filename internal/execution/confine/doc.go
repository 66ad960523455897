// Package confine starts commands in a box that the kernel enforces.
//
// It owns profiles (what a box shows and allows), the plan that a profile and a
// workspace become, and the starter's side of the box: helper, report, locks,
// and the comparison of protected files before and after. It leaves out how the
// walls are put up (inside, linked into vogt-confine only) and who may run what
// (flow).
package confine
