//go:build !linux

package main

// harden has nothing to do here: the system offers no such switch to a program
// for itself, or none that this project has tried.
func harden() error { return nil }
