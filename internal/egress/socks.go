package egress

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"slices"

	"vogt/internal/inet"
)

// Numbers of SOCKS5, RFC 1928.
const (
	socksVersion = 5

	socksNoAuth   = 0
	socksPassword = 2 // RFC 1929
	socksNoMethod = 0xff

	socksConnect = 1

	socksIPv4 = 1
	socksName = 3
	socksIPv6 = 4

	socksDone      = 0
	socksFailed    = 1
	socksRefused   = 2
	socksNoHost    = 4
	socksNoConnect = 5
	socksNoCommand = 7
	socksNoAddress = 8
)

// readSOCKS reads the greeting and a password if one is demanded, answers them on
// w, and reads the request. The first byte of r is known to be the version.
func readSOCKS(r io.Reader, w io.Writer, password credential) (target, *refusal) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return target{}, unread(err)
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(r, methods); err != nil {
		return target{}, unread(err)
	}
	method, reason := byte(socksNoAuth), BadAuth
	if password.demanded {
		method, reason = socksPassword, NoCredential
	}
	if !slices.Contains(methods, method) {
		_, _ = w.Write([]byte{socksVersion, socksNoMethod})
		return target{}, refuse(reason)
	}
	if _, err := w.Write([]byte{socksVersion, method}); err != nil {
		return target{}, refuse(ClientGone)
	}
	if password.demanded {
		if refused := readSOCKSPassword(r, w, password); refused != nil {
			return target{}, refused
		}
	}
	return readSOCKSRequest(r)
}

// readSOCKSPassword reads and answers a name and a password, RFC 1929.
func readSOCKSPassword(r io.Reader, w io.Writer, password credential) *refusal {
	const version = 1
	field := func() (string, error) {
		var n [1]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return "", err
		}
		text := make([]byte, n[0])
		_, err := io.ReadFull(r, text)
		return string(text), err
	}
	var first [1]byte
	if _, err := io.ReadFull(r, first[:]); err != nil {
		return unread(err)
	}
	if first[0] != version {
		return refuse(NoCredential)
	}
	user, err := field()
	if err != nil {
		return unread(err)
	}
	word, err := field()
	if err != nil {
		return unread(err)
	}
	answer := []byte{version, socksDone}
	accepted := password.accepts(user, word)
	if !accepted {
		answer[1] = socksFailed
	}
	if _, err := w.Write(answer); err != nil {
		return refuse(ClientGone)
	}
	if !accepted {
		return refuse(NoCredential)
	}
	return nil
}

func readSOCKSRequest(r io.Reader) (target, *refusal) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return target{}, unread(err)
	}
	if head[0] != socksVersion || head[2] != 0 {
		return target{}, refuse(BadRequest)
	}
	length := 0
	switch head[3] {
	case socksIPv4:
		length = 4
	case socksIPv6:
		length = 16
	case socksName:
		var n [1]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return target{}, unread(err)
		}
		length = int(n[0])
	default:
		return target{}, refuse(BadAddressType)
	}
	rest := make([]byte, length+2)
	if _, err := io.ReadFull(r, rest); err != nil {
		return target{}, unread(err)
	}
	if head[1] != socksConnect { // once all is read, so that the answer arrives
		return target{}, refuse(BadCommand)
	}
	var host inet.Host
	var err error
	if head[3] == socksName {
		host, err = inet.ParseHost(string(rest[:length]))
	} else {
		addr, _ := netip.AddrFromSlice(rest[:length])
		host, err = inet.FromAddr(addr)
	}
	if err != nil {
		return target{}, refuseFor(BadHost, err)
	}
	port := binary.BigEndian.Uint16(rest[length:])
	if port == 0 {
		return target{}, refuseFor(BadRequest, errors.New("0 is no port"))
	}
	return target{host: host, port: port, scheme: Tunnel}, nil
}

// writeSOCKS answers a request. The address that the standard wants in it is
// left empty: it is of no use to a client, and none of its business.
func writeSOCKS(w io.Writer, code byte) error {
	_, err := w.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err
}
