// Package fault lets crash tests stop the process at named points.
//
// In normal builds Point is empty and is compiled away; nothing in the
// environment can arm it. Built with the tag vogtfault, the process kills
// itself, as by SIGKILL, at the point that VOGT_FAULT names. The package owns
// the points' mechanism; which points exist is up to the packages that call
// it.
package fault
