//go:build !linux

package confine

// surrounded cannot be found out here.
func surrounded() bool { return true }
