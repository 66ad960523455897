package doctor

import (
	"net/netip"
	"os"
	"testing"

	"vogt/internal/quickstart"
	"vogt/internal/supervise"
)

func TestJudgePort(t *testing.T) {
	self := os.Getuid()
	const stranger = 54321
	addr, v6 := netip.MustParseAddrPort("127.0.0.1:8648"), netip.MustParseAddrPort("[::1]:8648")
	on := func(a netip.AddrPort, uid int) []supervise.Socket {
		return []supervise.Socket{{Local: a, Listen: true, UID: uid}}
	}
	theirs := t.TempDir()
	if self == 0 {
		os.Chown(theirs, stranger, stranger)
	}
	tests := []struct {
		name              string
		running           bool // our control socket answers
		listeners, beside []supervise.Socket
		want              State
		says              string
	}{
		{"ours", true, on(addr, self), nil, InForce, "authority's user"},
		{"a squatter while ours runs", true, on(addr, stranger+1), nil, Failed, "not by the authority of this user"},
		{"a squatter on ::1", true, on(addr, self), on(v6, stranger+1), Failed, "browsers"},
		{"a squatter on ::1 while ours is down", false, nil, on(v6, stranger+1), Failed, "browsers"},
		{"ours on both", true, on(addr, self), on(v6, self), InForce, "authority's user"},
		{"nobody", false, nil, nil, NotInForce, "nobody holds"},
		{"unknown user", false, on(addr, stranger+1), nil, InPart, "nothing here tells"},
		{"another program of ours", false, on(addr, self), nil, InPart, "another program"},
	}
	if self == 0 {
		tests = append(tests, struct {
			name              string
			running           bool
			listeners, beside []supervise.Socket
			want              State
			says              string
		}{"the user who owns the data", false, on(addr, stranger), nil, InForce, "uid 54321"})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := exam{Subject: Subject{Places: []string{theirs}}}
			if !test.running {
				x.controlErr = quickstart.ErrNotRunning
			}
			expect(t, x.judgePort(addr, test.listeners, test.beside), test.want, test.says)
		})
	}
}

// TestPort looks at a real listener of this process.
func TestPort(t *testing.T) {
	s := subject(t, authority(t, nil))
	expect(t, find(t, s, "port"), InPart, "another program")
	s = subject(t, "http://127.0.0.1:1")
	expect(t, find(t, s, "port"), NotInForce, "nobody holds 127.0.0.1:1")
	s = subject(t, "https://vogt.example.org")
	x := exam{Subject: s}
	x.address = "https://vogt.example.org"
	expect(t, x.port(t.Context()), InForce, "another machine")
}
