//go:build unix && !linux

package supervise

const diesWithParent = false
