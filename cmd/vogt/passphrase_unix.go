//go:build unix

package main

// The controlling terminal (tty(4)).
const consoleIn, consoleOut = "/dev/tty", "/dev/tty"
