// Package peer tells which OS user is at the other end of a Unix socket.
//
// It owns the system calls of each platform. What follows from the answer is
// the caller's: peer credentials name OS users and never a person.
package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// ErrUnknown tells that this system does not say who is at the other end.
var ErrUnknown = errors.New("this system does not say who is at the other end of a socket")

// Check returns nil if the process at the other end runs as this user or as
// root. Where the system does not say (Windows), the folder's access list is
// what protects the socket, and Check accepts.
func Check(conn *net.UnixConn) error {
	uid, err := UID(conn)
	if errors.Is(err, ErrUnknown) && os.Geteuid() < 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot tell whose socket this is: %w", err)
	}
	if int(uid) != os.Geteuid() && uid != 0 {
		return fmt.Errorf("the process at the other end runs as uid %d, neither this user nor root", uid)
	}
	return nil
}

// UID returns the effective user of the process that connected or listens.
func UID(conn *net.UnixConn) (uid uint32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uidErr error
	if err := raw.Control(func(fd uintptr) { uid, uidErr = uidOf(int(fd)) }); err != nil {
		return 0, err
	}
	return uid, uidErr
}
