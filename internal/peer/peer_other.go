//go:build !linux && !darwin && !freebsd

package peer

func uidOf(int) (uint32, error) { return 0, ErrUnknown }
