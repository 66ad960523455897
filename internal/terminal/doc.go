// Package terminal is what Vogt needs of a terminal: asking a person on the
// controlling one, printing tables, and showing text that a stranger wrote so
// that it can neither command the terminal nor pass for something else.
//
// Visible and MixedScript are pure functions and serve web pages too. The
// package leaves out colours, line editing and full-screen programs, and it
// knows nothing of grants or cards.
package terminal
