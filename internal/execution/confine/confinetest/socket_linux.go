package confinetest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// socket is one that listens, or takes datagrams, outside of every box.
type socket struct {
	name     string
	fd       int
	stream   bool
	received int
}

// listen makes the sockets of the scene. What this machine does not have is left
// out, and so is its value.
func (s *Scene) listen(t testing.TB) {
	t.Helper()
	run := s.Outside + "/run"
	if os.Getenv(jailVariable) == "in" {
		dir, err := os.MkdirTemp("/run", sceneName)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		run = dir
	}
	s.values["run"] = run
	s.give(t)
	abstract := "@" + s.values["id"]
	for _, u := range []struct {
		name, address string
		kind          int
	}{
		{"stream", run + "/stream", unix.SOCK_STREAM},
		{"packet", run + "/packet", unix.SOCK_SEQPACKET},
		{"datagram", run + "/datagram", unix.SOCK_DGRAM},
		{"home-stream", s.Home + "/.agent", unix.SOCK_STREAM},
		{"home-datagram", s.Home + "/.log", unix.SOCK_DGRAM},
		{"ws-stream", s.Workspace + "/service", unix.SOCK_STREAM},
		{"ws-datagram", s.Workspace + "/log", unix.SOCK_DGRAM},
		{"abstract", abstract, unix.SOCK_STREAM},
		{"abstract-datagram", abstract + "-datagram", unix.SOCK_DGRAM},
	} {
		if s.add(t, u.name, [3]int{unix.AF_UNIX, u.kind, 0}, &unix.SockaddrUnix{Name: u.address}) {
			s.values[u.name] = u.address
		}
	}
	for _, i := range []struct {
		name     string
		kind     int
		protocol int
		address  string
	}{
		{"tcp", unix.SOCK_STREAM, 0, "127.0.0.1"}, {"tcp-six", unix.SOCK_STREAM, 0, "::1"}, {"mptcp", unix.SOCK_STREAM, 262, "127.0.0.1"},
		{"sctp", unix.SOCK_STREAM, unix.IPPROTO_SCTP, "127.0.0.1"},
		{"udp", unix.SOCK_DGRAM, 0, "127.0.0.1"}, {"udp-six", unix.SOCK_DGRAM, 0, "::1"}, {"udp-lite", unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, "127.0.0.1"},
	} {
		ip := netip.MustParseAddr(i.address)
		family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: ip.As16()})
		if ip.Is4() {
			family, to = unix.AF_INET, &unix.SockaddrInet4{Addr: ip.As4()}
		}
		if !s.add(t, i.name, [3]int{family, i.kind, i.protocol}, to) {
			continue
		}
		port := s.port(t)
		s.values[i.name] = netip.AddrPortFrom(ip, port).String()
		s.values[i.name+"-port"] = fmt.Sprint(port)
	}
}

// give serves a socket at which whoever connects gets a secret, open.
func (s *Scene) give(t testing.TB) {
	t.Helper()
	at := s.values["run"] + "/giver"
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := os.Open(s.Outside + "/secret")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		listener.Close()
		<-ended
		secret.Close()
	})
	go func() {
		defer close(ended)
		for {
			c, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			s.given.Add(1)
			// Whether it arrived is what the attempt says.
			_, _, _ = c.WriteMsgUnix([]byte("take"), unix.UnixRights(int(secret.Fd())), nil)
			c.Close()
		}
	}()
	s.values["giver"] = at
}

// add makes a socket, and reports whether this machine has its kind.
func (s *Scene) add(t testing.TB, name string, kind [3]int, at unix.Sockaddr) bool {
	t.Helper()
	fd, err := unix.Socket(kind[0], kind[1]|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, kind[2])
	if err != nil {
		return false
	}
	t.Cleanup(func() { unix.Close(fd) })
	c := &socket{name: name, fd: fd, stream: kind[1] != unix.SOCK_DGRAM}
	if err := unix.Bind(fd, at); errors.Is(err, unix.EADDRNOTAVAIL) {
		return false
	} else if err != nil {
		t.Fatalf("bind %s: %v", name, err)
	}
	if c.stream {
		if err := unix.Listen(fd, 16); err != nil {
			t.Fatalf("listen at %s: %v", name, err)
		}
	}
	s.sockets = append(s.sockets, c)
	return true
}

// port is that of the last socket.
func (s *Scene) port(t testing.TB) uint16 {
	t.Helper()
	name, err := unix.Getsockname(s.sockets[len(s.sockets)-1].fd)
	if err != nil {
		t.Fatal(err)
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return uint16(a.Port)
	case *unix.SockaddrInet6:
		return uint16(a.Port)
	}
	t.Fatalf("no port: %v", name)
	return 0
}

// count takes what has come so far: connections, or datagrams.
func (c *socket) count(t testing.TB) int {
	t.Helper()
	for {
		var err error
		if c.stream {
			var fd int
			if fd, _, err = unix.Accept4(c.fd, unix.SOCK_CLOEXEC); err == nil {
				unix.Close(fd)
			}
		} else {
			_, _, err = unix.Recvfrom(c.fd, make([]byte, 256), 0)
		}
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
		case errors.Is(err, unix.EAGAIN):
			return c.received
		case err != nil:
			t.Fatalf("receive at %s: %v", c.name, err)
		default:
			c.received++
		}
	}
}
