//go:build amd64

package main

import (
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sent is what attempts send.
const sent = "probe\n"

// waitLimit bounds how long an attempt waits for the other side, in
// milliseconds.
const waitLimit = 5000

// unixAttempts reach sockets of the host by their names. A name that begins
// with @ is an abstract one.
func unixAttempts() []attempt {
	const stream, datagram, packet = unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET
	return []attempt{
		{"unix-stream", "NAME", "a stream socket", unixConnect(stream)},
		{"unix-packet", "NAME", "a seqpacket socket", unixConnect(packet)},
		{"unix-datagram", "NAME", "a datagram socket", unixSend(datagram, false)},
		{"unix-pair", "NAME", "a datagram socket", unixSend(datagram, true)},
		{"unix-pair-raw", "NAME", "a datagram socket", unixSend(unix.SOCK_RAW, true)},
		{"unix-pair-connect", "NAME", "a datagram socket", func(a []string) (string, error) {
			pair, err := unix.Socketpair(unix.AF_UNIX, datagram|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return "socketpair:", err
			}
			return connectWrite(pair[0], &unix.SockaddrUnix{Name: a[0]})
		}},
		{"unix-opath", "PATH", "a stream socket, /proc", func(a []string) (string, error) {
			fd, err := unix.Open(a[0], unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return "open:", err
			}
			return unixConnect(stream)([]string{fmt.Sprintf("/proc/self/fd/%d", fd)})
		}},
		{"unix-receive", "PATH", "a stream socket that hands out a secret", unixReceive},
		{"unix-bind", "PATH", "", func(a []string) (string, error) {
			return "", inside(a[0], func() error {
				fd, err := unix.Socket(unix.AF_UNIX, stream|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					return err
				}
				return unix.Bind(fd, &unix.SockaddrUnix{Name: a[0]})
			})
		}},
	}
}

func connectWrite(fd int, to unix.Sockaddr) (string, error) {
	if err := connect(fd, to); err != nil {
		return "connect:", err
	}
	_, err := unix.Write(fd, []byte(sent))
	return "", err
}

// connect waits a bounded time for a connection.
func connect(fd int, to unix.Sockaddr) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	err := unix.Connect(fd, to)
	if err != unix.EINPROGRESS {
		return err
	}
	if err := await(fd, unix.POLLOUT); err != nil {
		return err
	}
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	return err
}

func await(fd int, events int16) error {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		n, err := unix.Poll(fds, waitLimit)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return unix.ETIMEDOUT
		default:
			return nil
		}
	}
}

func unixConnect(kind int) func(a []string) (string, error) {
	return func(a []string) (string, error) {
		fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return "socket:", err
		}
		return connectWrite(fd, &unix.SockaddrUnix{Name: a[0]})
	}
}

// unixSend sends to a name from a socket, or from one of a pair.
func unixSend(kind int, pair bool) func(a []string) (string, error) {
	return func(a []string) (string, error) {
		var fd int
		if pair {
			fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return "socketpair:", err
			}
			fd = fds[0]
		} else {
			var err error
			if fd, err = unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0); err != nil {
				return "socket:", err
			}
		}
		return "", unix.Sendmsg(fd, []byte(sent), nil, &unix.SockaddrUnix{Name: a[0]}, unix.MSG_DONTWAIT)
	}
}

// unixReceive takes a descriptor from a server of the host, as from one that
// starts programs for others.
func unixReceive(a []string) (string, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "socket:", err
	}
	if err := connect(fd, &unix.SockaddrUnix{Name: a[0]}); err != nil {
		return "connect:", err
	}
	if err := await(fd, unix.POLLIN); err != nil {
		return "", err
	}
	data, oob := make([]byte, 16), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(fd, data, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return "", err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return "no descriptor came", errHeld
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return "no descriptor came", errHeld
	}
	return descriptorRead([]string{fmt.Sprint(fds[0])})
}

// Protocols and families that the library does not name.
const (
	protocolMPTCP = 262
	optionRepair  = 19 // TCP_REPAIR
)

// networkAttempts reach ports, make sockets of every kind, and change the
// network.
func networkAttempts() []attempt {
	const stream, datagram = unix.SOCK_STREAM, unix.SOCK_DGRAM
	return []attempt{
		{"tcp", "ADDRESS:PORT", "a listener", inetConnect(stream, 0)},
		{"tcp-fast", "ADDRESS:PORT", "a listener", tcpFast},
		{"mptcp", "ADDRESS:PORT", "a listener, MPTCP", inetConnect(stream, protocolMPTCP)},
		{"sctp", "ADDRESS:PORT", "SCTP", inetConnect(stream, unix.IPPROTO_SCTP)},
		{"udp", "ADDRESS:PORT", "a listener", inetConnect(datagram, 0)},
		{"udp-message", "ADDRESS:PORT", "a listener", udpMessage},
		{"udp-lite", "ADDRESS:PORT", "UDP-Lite", inetConnect(datagram, unix.IPPROTO_UDPLITE)},
		{"bind-port", "ADDRESS:PORT", "root for ports below 1024", func(a []string) (string, error) {
			fd, to, err := inetSocket(a[0], stream, 0)
			if err != nil {
				return "", err
			}
			return "", unix.Bind(fd, to)
		}},
		{"socket", "FAMILY TYPE PROTOCOL", "what makes such sockets", anySocket},
		{"packet-listen", "", "root", func([]string) (string, error) {
			fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return "socket:", err
			}
			return "", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: 1})
		}},
		{"uevent-listen", "", "", func([]string) (string, error) {
			fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_KOBJECT_UEVENT)
			if err != nil {
				return "socket:", err
			}
			return "", unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1})
		}},
		{"link-set", "", "root", linkSet},
		{"link-flags", "", "root", linkFlags},
		{"tunnel", "", "root, /dev/net/tun", tunnel},
		{"socket-mark", "", "root", socketOption(unix.SOL_SOCKET, unix.SO_MARK, 1)},
		{"socket-force", "", "root", socketOption(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<20)},
		{"socket-transparent", "", "root", socketOption(unix.SOL_IP, unix.IP_TRANSPARENT, 1)},
		{"socket-repair", "", "root", socketOption(unix.SOL_TCP, optionRepair, 1)},
	}
}

func inetSocket(address string, kind, protocol int) (int, unix.Sockaddr, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return -1, nil, err
	}
	family, at := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()})
	if to.Addr().Is4() {
		family, at = unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return -1, nil, fmt.Errorf("socket: %w", err)
	}
	return fd, at, nil
}

func inetConnect(kind, protocol int) func(a []string) (string, error) {
	return func(a []string) (string, error) {
		fd, to, err := inetSocket(a[0], kind, protocol)
		if err != nil {
			return "", err
		}
		return connectWrite(fd, to)
	}
}

// tcpFast connects by sending.
func tcpFast(a []string) (string, error) {
	fd, to, err := inetSocket(a[0], unix.SOCK_STREAM, 0)
	if err != nil {
		return "", err
	}
	if err := unix.Sendto(fd, []byte(sent), unix.MSG_FASTOPEN|unix.MSG_NOSIGNAL, to); err != nil {
		return "", err
	}
	return "", await(fd, unix.POLLOUT)
}

func udpMessage(a []string) (string, error) {
	fd, to, err := inetSocket(a[0], unix.SOCK_DGRAM, 0)
	if err != nil {
		return "", err
	}
	return "", unix.Sendmsg(fd, []byte(sent), nil, to, unix.MSG_DONTWAIT)
}

func anySocket(a []string) (string, error) {
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = number(a[i]); err != nil {
			return "", err
		}
	}
	_, err := unix.Socket(n[0], n[1]|unix.SOCK_CLOEXEC, n[2])
	return "", err
}

// linkSet asks the kernel to change nothing of the loopback link.
func linkSet([]string) (string, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return "socket:", err
	}
	request := struct {
		unix.NlMsghdr
		unix.IfInfomsg
	}{unix.NlMsghdr{Len: 32, Type: unix.RTM_SETLINK, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK, Seq: 1}, unix.IfInfomsg{Index: 1}}
	message := unsafe.Slice((*byte)(unsafe.Pointer(&request)), unsafe.Sizeof(request))
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return "send:", err
	}
	if err := await(fd, unix.POLLIN); err != nil {
		return "", err
	}
	var answer [256]byte
	n, err := unix.Read(fd, answer[:])
	if err != nil || n < 20 {
		return "", fmt.Errorf("an answer of %d bytes: %w", n, err)
	}
	if code := *(*int32)(unsafe.Pointer(&answer[16])); code != 0 {
		return "the kernel's answer:", unix.Errno(-code)
	}
	return "", nil
}

// linkFlags sets the flags that the loopback link has.
func linkFlags([]string) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "socket:", err
	}
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return "", err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return "SIOCGIFFLAGS:", err
	}
	return "", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// tunnel makes a network link, which ends with the descriptor.
func tunnel([]string) (string, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return "open:", err
	}
	request, err := unix.NewIfreq("probe%d")
	if err != nil {
		return "", err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	return "", unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
}

func socketOption(level, option, value int) func([]string) (string, error) {
	return func([]string) (string, error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return "socket:", err
		}
		return "", unix.SetsockoptInt(fd, level, option, value)
	}
}
