//go:build unix && !linux

package config

// unmappedOwner is about user namespaces, which only Linux has.
func unmappedOwner(uint32) bool { return false }
