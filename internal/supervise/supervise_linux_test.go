package supervise

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const diesWithParent = true

func TestHolderOf(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0"} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			if strings.HasPrefix(addr, "[") {
				continue // no IPv6 here
			}
			t.Fatal(err)
		}
		a := netip.MustParseAddrPort(l.Addr().String())
		h := HolderOf(a)
		if !h.Known || h.UID != os.Getuid() || h.PID != os.Getpid() || h.Program == "" {
			t.Errorf("%s: %+v", addr, h)
		}
		l.Close()
		if h := HolderOf(a); h.Known {
			t.Errorf("%s after close: %+v", addr, h)
		}
	}
}

func TestParseSockets(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:21C8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0000000000000000 100 0 0 10 0
   1: 0100007F:21C8 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1
   2: 00000000000000000000000001000000:21C8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4244 1
   3: broken
   4: XX00007F:21C8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1
`
	got := parseSockets(strings.NewReader(table))
	want := []Socket{
		{netip.MustParseAddrPort("127.0.0.1:8648"), netip.MustParseAddrPort("0.0.0.0:0"), true, 1000, 4242},
		{netip.MustParseAddrPort("127.0.0.1:8648"), netip.MustParseAddrPort("127.0.0.1:50000"), false, 1000, 4243},
		{netip.MustParseAddrPort("[::1]:8648"), netip.MustParseAddrPort("[::]:0"), true, 0, 4244},
	}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

func FuzzParseSockets(f *testing.F) {
	f.Add("   0: 0100007F:21C8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1")
	f.Add("0: :1 : 0A 0 0 0 1 1 1")
	f.Fuzz(func(t *testing.T, line string) {
		for _, s := range parseSockets(strings.NewReader(line)) {
			if !s.Local.Addr().IsValid() || !s.Remote.Addr().IsValid() || s.UID < 0 {
				t.Errorf("%q gives %+v", line, s)
			}
		}
	})
}

// TestListenerFromSystemd is systemd's side of the agreement: LISTEN_PID is
// the process's own pid, which a shell that execs can know.
func TestListenerFromSystemd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"http", "vogtd.socket", "unknown", ""} {
		cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0"`, os.Args[0])
		cmd.Env = append(os.Environ(), role+"=worker", quickEnd, countVariable+"=1", namesVariable+"="+name)
		cmd.ExtraFiles = []*os.File{f}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if got := say(t, l.Addr().String(), "pid"); got != strconv.Itoa(cmd.Process.Pid) {
			t.Errorf("name %q: answered by %q, want %d", name, got, cmd.Process.Pid)
		}
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}
}

// TestTwoSocketsFromSystemd: of several sockets only the named one is taken,
// and one that does not listen is refused.
func TestTwoSocketsFromSystemd(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fo, _ := other.(*net.TCPListener).File()
	fl, _ := l.(*net.TCPListener).File()
	defer fo.Close()
	defer fl.Close()
	run := func(names string, files ...*os.File) *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0"`, os.Args[0])
		cmd.Env = append(os.Environ(), role+"=worker", quickEnd, countVariable+"="+strconv.Itoa(len(files)), namesVariable+"="+names)
		cmd.ExtraFiles = files
		return cmd
	}
	cmd := run("metrics:http", fo, fl)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := say(t, l.Addr().String(), "pid"); got != strconv.Itoa(cmd.Process.Pid) {
		t.Errorf("answered by %q, want %d", got, cmd.Process.Pid)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()

	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for names, want := range map[string]string{"metrics:other": "false <nil>", "http:x": "descriptor 3"} {
		out, err := run(names, null, fo).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("names %q: %s, %v; want %q", names, out, err, want)
		}
	}
}

// TestSquatterOfAnotherUser binds as nobody while the port is held, and must
// fail in a process that has nothing of ours.
func TestSquatterOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become another user")
	}
	r := start(t, nil)
	r.pid()
	r.say("exit 1")
	r.pid()
	r.say("exit 1")
	r.nextPause(firstDelay)
	_, port, _ := net.SplitHostPort(r.addr)
	// By /proc, since the folder of the test binary is closed to others.
	cmd := exec.Command("/proc/self/exe", port)
	cmd.Env = append(os.Environ(), role+"=squatter", quickEnd)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := string(out); got != "65534 0\n" {
		t.Fatalf("the other user's uid and the number of addresses that it took: %q, want none", got)
	}
}
