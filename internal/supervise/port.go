package supervise

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
)

// port is the listening socket and its guards.
type port struct {
	file  *os.File // nil on Windows
	addr  net.Addr
	guard func() // releases the other loopback address
}

func (p *port) Close() {
	if p.file != nil {
		p.file.Close()
	}
	if p.guard != nil {
		p.guard()
	}
}

// BindError tells that an address could not be bound. Holder says who holds
// it, as far as this user may see.
type BindError struct {
	Addr   string
	Guard  bool // Addr is the other loopback address of the port
	Holder Holder
	Err    error
}

func (e *BindError) Unwrap() error { return e.Err }

func (e *BindError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cannot listen on %s: ", e.Addr)
	switch {
	case errors.Is(e.Err, syscall.EADDRINUSE):
		fmt.Fprintf(&b, "the port is in use by %s", e.Holder)
		if e.Guard {
			b.WriteString(" (this address must be free too: browsers try it first when they open the pages, and whoever holds it would be taken for the authority)")
		}
		b.WriteString(". If that is an authority of yours, stop it with `vogt down`; else end that program or choose another port with --listen HOST:PORT")
	case errors.Is(e.Err, syscall.EACCES), errors.Is(e.Err, syscall.EPERM):
		b.WriteString("this user may not use that port. Choose one above 1023 with --listen HOST:PORT, or let systemd pass the socket")
	case errors.Is(e.Err, syscall.EADDRNOTAVAIL):
		b.WriteString("this machine does not have that address. `ip address` shows those it has; choose one with --listen HOST:PORT")
	default:
		fmt.Fprintf(&b, "%v. Give the address as --listen HOST:PORT, such as 127.0.0.1:8648", e.Err)
	}
	return b.String()
}

// Holder is who listens on a port. The zero value is "unknown".
type Holder struct {
	Known   bool
	UID     int
	User    string // may be empty
	PID     int    // zero when this user may not see it
	Program string
}

func (h Holder) String() string {
	if !h.Known {
		return "a program that this user cannot see"
	}
	who := fmt.Sprintf("uid %d", h.UID)
	if h.User != "" {
		who = fmt.Sprintf("user %s (uid %d)", h.User, h.UID)
	}
	if h.PID == 0 {
		return "a process of " + who
	}
	return fmt.Sprintf("process %d (%s) of %s", h.PID, h.Program, who)
}
