package supervise

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// Socket is one line of /proc/net/tcp or tcp6 (proc_pid_net(5)).
type Socket struct {
	Local  netip.AddrPort
	Remote netip.AddrPort
	Listen bool
	UID    int
	Inode  uint64
}

const stateListen = 0x0A

// sockets lists the TCP sockets of this network namespace.
func sockets() ([]Socket, error) {
	var all []Socket
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if os.IsNotExist(err) {
			continue // a kernel without that family
		}
		if err != nil {
			return nil, err
		}
		all = append(all, parseSockets(f)...)
		f.Close()
	}
	return all, nil
}

// parseSockets reads the table and skips lines that it does not understand.
func parseSockets(r io.Reader) []Socket {
	var all []Socket
	for lines := bufio.NewScanner(r); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 10 {
			continue
		}
		local, ok1 := parseHexAddr(f[1])
		remote, ok2 := parseHexAddr(f[2])
		state, err1 := strconv.ParseUint(f[3], 16, 8)
		uid, err2 := strconv.ParseUint(f[7], 10, 32)
		inode, err3 := strconv.ParseUint(f[9], 10, 64)
		if !ok1 || !ok2 || err1 != nil || err2 != nil || err3 != nil {
			continue
		}
		all = append(all, Socket{Local: local, Remote: remote, Listen: state == stateListen, UID: int(uid), Inode: inode})
	}
	return all
}

// parseHexAddr reads an address as the kernel prints it: 32-bit words in the
// machine's byte order, a colon, the port.
func parseHexAddr(s string) (netip.AddrPort, bool) {
	host, text, ok := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	port, perr := strconv.ParseUint(text, 16, 16)
	if !ok || err != nil || perr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), ok
}

// Listeners returns the sockets that would answer a connection to a: those on
// its very address and those on all addresses.
func Listeners(a netip.AddrPort) ([]Socket, error) {
	all, err := sockets()
	var found []Socket
	for _, s := range all {
		if !s.Listen || s.Local.Port() != a.Port() {
			continue
		}
		on, want := s.Local.Addr(), a.Addr().Unmap()
		if on == want || want.IsUnspecified() || on == netip.IPv6Unspecified() || on == netip.IPv4Unspecified() && want.Is4() {
			found = append(found, s)
		}
	}
	return found, err
}

// HolderOf says who listens on a. Another user's process cannot be named,
// only its uid.
func HolderOf(a netip.AddrPort) Holder {
	found, err := Listeners(a)
	if err != nil || len(found) == 0 {
		return Holder{}
	}
	h := Holder{Known: true, UID: found[0].UID}
	if u, err := user.LookupId(strconv.Itoa(h.UID)); err == nil {
		h.User = u.Username
	}
	h.PID, h.Program = processOf(found[0].Inode)
	return h
}

// processOf finds a process that holds the socket, among those that this user
// may look into.
func processOf(inode uint64) (int, string) {
	want := "socket:[" + strconv.FormatUint(inode, 10) + "]"
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is constant and well formed
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err != nil || target != want {
			continue
		}
		dir := filepath.Dir(filepath.Dir(fd))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(dir, "comm")) // it may just have ended
		return pid, string(bytes.TrimSpace(name))
	}
	return 0, ""
}
