//go:build unix

package supervise

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// bind takes the port. Where the address is on the loopback of one family, it
// also guards the same port of the other: browsers resolve names under
// .localhost to ::1 and 127.0.0.1 (RFC 6761, section 6.3), so whoever held the
// other one would be the authority for them.
func bind(o Options) (*port, error) {
	if o.Listener != nil {
		return guarded(o.Listener, o.Log.Warn)
	}
	_, text, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, &BindError{Addr: o.Listen, Err: err}
	}
	// A port that the system chose may be taken on the other address.
	tries := 1
	if text == "0" {
		tries = 16
	}
	for {
		tries--
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.Listen)
		if err != nil {
			return nil, explain(o.Listen, false, err)
		}
		p, err := guarded(l, o.Log.Warn)
		if err == nil || tries == 0 || !errors.Is(err, syscall.EADDRINUSE) {
			return p, err
		}
	}
}

// guarded turns l into a port that can be passed. It closes l.
func guarded(l net.Listener, warn func(string, ...any)) (*port, error) {
	defer l.Close()
	filer, ok := l.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("supervise: a %T cannot be passed to a worker", l)
	}
	f, err := filer.File()
	if err != nil {
		return nil, fmt.Errorf("pass the socket of %s: %w", l.Addr(), err)
	}
	p := &port{file: f, addr: l.Addr()}
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return p, nil
	}
	other, needed := otherLoopback(tcp.AddrPort())
	if !needed {
		return p, nil
	}
	fd, err := occupy(other)
	switch {
	case err == nil:
		p.guard = func() { unix.Close(fd) }
		return p, nil
	case errors.Is(err, unix.EADDRNOTAVAIL), errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.EACCES):
		// No such family on this machine: nobody can listen there either. A
		// privileged port is out of reach of other users too.
		warn("the other loopback address is not guarded", "addr", other.String(), "err", err)
		return p, nil
	}
	p.Close()
	return nil, explain(other.String(), true, err)
}

// otherLoopback names the address that must not be a stranger's.
func otherLoopback(a netip.AddrPort) (netip.AddrPort, bool) {
	ip := a.Addr().Unmap()
	switch {
	case ip.Is4() && (ip.IsLoopback() || ip.IsUnspecified()):
		return netip.AddrPortFrom(netip.IPv6Loopback(), a.Port()), true
	case ip == netip.IPv6Loopback():
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port()), true
	}
	return netip.AddrPort{}, false
}

// occupy binds a socket that never listens: connections to it are refused, so
// that browsers go on to the other address, and nobody else can bind it. It
// sets no SO_REUSEADDR, with which a second socket could.
func occupy(a netip.AddrPort) (fd int, err error) {
	family, sa := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(a.Port()), Addr: [4]byte{127, 0, 0, 1}})
	if a.Addr().Is6() {
		family, sa = unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	syscall.ForkLock.RLock()
	fd, err = unix.Socket(family, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, sa); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("bind", err)
	}
	return fd, nil
}

// explain adds the holder to an error of binding.
func explain(addr string, guard bool, err error) error {
	e := &BindError{Addr: addr, Guard: guard, Err: err}
	if a, perr := netip.ParseAddrPort(addr); perr == nil && errors.Is(err, syscall.EADDRINUSE) {
		e.Holder = HolderOf(a)
	}
	return e
}
