//go:build unix

package supervise

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// role lets this test binary be the worker, or a parent in a process of its
// own.
const role = "SUPERVISE_TEST_ROLE"

// quickEnd spares the second that a binary with race detection waits at its
// end.
const quickEnd = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "worker":
		os.Exit(runWorker(os.Args[1:]))
	case "parent":
		os.Exit(runParent(os.Args[1:]))
	case "squatter":
		fmt.Println(os.Getuid(), len(squat(os.Args[1])))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runWorker answers each connection's one line: "pid" with its pid, "env" with
// what it was given, "exit N" by ending, "deaf" by ignoring SIGTERM from then
// on. With the argument "refuse N" it ends before it is ready.
func runWorker(args []string) int {
	if len(args) == 2 && args[0] == "refuse" {
		n, _ := strconv.Atoi(args[1])
		return n
	}
	l, ok, err := Listener(DefaultName)
	if !ok || err != nil {
		fmt.Fprintln(os.Stderr, "worker: no listener:", ok, err)
		return 1
	}
	term := make(chan os.Signal, 4)
	signal.Notify(term, syscall.SIGTERM)
	deaf := make(chan bool, 1)
	go func() {
		for ignore := false; ; {
			select {
			case ignore = <-deaf:
			case <-term:
				if !ignore {
					os.Exit(0)
				}
			}
		}
	}()
	if err := Ready(map[string]int{"pid": os.Getpid()}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return 1
		}
		line, _ := bufio.NewReader(c).ReadString('\n')
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "pid":
			fmt.Fprintln(c, os.Getpid())
		case "env":
			fmt.Fprintln(c, os.Getenv("COLOUR"), os.Getenv(countVariable), os.Getenv(namesVariable))
		case "deaf":
			deaf <- true
			fmt.Fprintln(c, "yes")
		case "exit":
			n, _ := strconv.Atoi(rest)
			os.Exit(n)
		}
		c.Close()
	}
}

// runParent is Run in a process of its own, with the process's own signals.
func runParent(args []string) int {
	err := Run(context.Background(), Options{
		Listen: args[0],
		Child:  []string{os.Args[0]},
		Env:    append(os.Environ(), role+"=worker", quickEnd),
		Bound:  func(a net.Addr) { fmt.Println("bound", a) },
		Ready:  func(line json.RawMessage) { fmt.Println("ready", string(line)) },
	})
	var exit *ExitError
	switch {
	case errors.As(err, &exit):
		fmt.Println(err)
		return exit.Code
	case err != nil:
		fmt.Println(err)
		return 69
	}
	fmt.Println("ended")
	return 0
}

// run is a supervision inside the test.
type run struct {
	t       *testing.T
	signals chan os.Signal
	addr    string
	ready   chan string // the worker's lines
	pause   chan pause  // waits that the parent asked its clock for
	result  chan error
	cancel  func()
}

// pause is a wait that the parent asked its clock for.
type pause struct {
	d    time.Duration
	fire chan time.Time
}

func start(t *testing.T, change func(*Options)) *run {
	t.Helper()
	r := &run{
		t:       t,
		signals: make(chan os.Signal, 4),
		ready:   make(chan string, 16),
		pause:   make(chan pause, 16),
		result:  make(chan error, 1),
	}
	bound := make(chan string, 1)
	o := Options{
		Listen:  "127.0.0.1:0",
		Child:   []string{os.Args[0]},
		Env:     append(os.Environ(), role+"=worker", quickEnd, "COLOUR=green", pidVariable+"=1", countVariable+"=9"),
		Signals: r.signals,
		Bound:   func(a net.Addr) { bound <- a.String() },
		Ready:   func(line json.RawMessage) { r.ready <- string(line) },
		After: func(d time.Duration) <-chan time.Time {
			p := pause{d, make(chan time.Time, 1)}
			r.pause <- p
			return p.fire
		},
	}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.result <- Run(ctx, o)
	}()
	t.Cleanup(func() {
		cancel()
		for {
			select {
			case <-done:
				return
			case p := <-r.pause: // no wait may hold up the end
				p.fire <- time.Time{}
			}
		}
	})
	select {
	case r.addr = <-bound:
	case err := <-r.result:
		t.Fatalf("did not start: %v", err)
	}
	return r
}

// pid waits for a worker to become ready.
func (r *run) pid() int {
	r.t.Helper()
	select {
	case line := <-r.ready:
		var v struct{ Pid int }
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.Pid == 0 {
			r.t.Fatalf("line of readiness %q: %v", line, err)
		}
		return v.Pid
	case err := <-r.result:
		r.t.Fatalf("ended before a worker was ready: %v", err)
	case <-time.After(20 * time.Second):
		r.t.Fatal("no worker became ready")
	}
	return 0
}

func (r *run) say(line string) string { return say(r.t, r.addr, line) }

func say(t *testing.T, addr, line string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintln(c, line)
	answer, _ := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(answer)
}

func (r *run) end() error {
	r.t.Helper()
	select {
	case err := <-r.result:
		r.result <- err
		return err
	case <-time.After(20 * time.Second):
		r.t.Fatal("the supervision did not end")
	}
	return nil
}

// nextPause waits until the parent waits for d.
func (r *run) nextPause(d time.Duration) pause {
	r.t.Helper()
	select {
	case p := <-r.pause:
		if p.d != d {
			r.t.Fatalf("the parent waits %v, want %v", p.d, d)
		}
		return p
	case <-time.After(20 * time.Second):
		r.t.Fatalf("the parent does not wait")
	}
	return pause{}
}

func TestWorkerServesAndIsRestarted(t *testing.T) {
	r := start(t, nil)
	first := r.pid()
	if got := r.say("pid"); got != strconv.Itoa(first) {
		t.Fatalf("answered by %s, want %d", got, first)
	}
	if got := r.say("env"); got != "green 1 http" {
		t.Fatalf("environment of the worker: %q", got)
	}
	r.say("exit 3") // the first restart waits for nothing
	second := r.pid()
	if second == first || r.say("pid") != strconv.Itoa(second) {
		t.Fatalf("no new worker answers: %d, %d", first, second)
	}
	syscall.Kill(second, syscall.SIGKILL)
	r.nextPause(firstDelay).fire <- time.Time{}
	third := r.pid()
	syscall.Kill(third, syscall.SIGKILL)
	r.nextPause(2 * firstDelay) // not fired: an order ends the wait
	r.signals <- syscall.SIGTERM
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}

func TestAStableLifeForgivesDeaths(t *testing.T) {
	var mu sync.Mutex
	now := time.Unix(1_000_000, 0)
	r := start(t, func(o *Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	r.pid()
	r.say("exit 1")
	r.pid()
	mu.Lock()
	now = now.Add(stable)
	mu.Unlock()
	r.say("exit 1")
	r.pid() // at once again: no pause was asked for
	select {
	case p := <-r.pause:
		t.Fatalf("the parent waited %v after a stable life", p.d)
	default:
	}
}

// TestNobodyElseGetsThePort attacks the port while no worker lives: a squatter
// of another user tries every way to bind it, then a caller connects and is
// served by the next worker.
func TestNobodyElseGetsThePort(t *testing.T) {
	r := start(t, nil)
	r.pid()
	r.say("exit 1")
	r.pid()
	r.say("exit 1")
	down := r.nextPause(firstDelay)

	_, port, _ := net.SplitHostPort(r.addr)
	for _, taken := range squat(port) {
		t.Errorf("a squatter took %s of the port", taken)
	}

	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatalf("a caller is refused while the worker is down: %v", err)
	}
	defer c.Close()
	fmt.Fprintln(c, "pid")
	down.fire <- time.Time{}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if want := r.pid(); strings.TrimSpace(answer) != strconv.Itoa(want) {
		t.Fatalf("served by %q, want %d", answer, want)
	}
}

// squat tries to listen on port by every address and way, and returns those
// that succeeded or failed for another reason than that it is taken.
func squat(port string) []string {
	reuse := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
	}}
	var taken []string
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "::1", "::"} {
		if strings.Contains(host, ":") && !hasIPv6() {
			continue
		}
		for name, lc := range map[string]net.ListenConfig{"plain": {}, "reuse": reuse} {
			l, err := lc.Listen(context.Background(), "tcp", net.JoinHostPort(host, port))
			if err == nil {
				l.Close()
			}
			if !errors.Is(err, syscall.EADDRINUSE) {
				taken = append(taken, fmt.Sprintf("%s (%s: %v)", host, name, err))
			}
		}
	}
	return taken
}

// TestTheOtherLoopbackIsRefusedNotServed: a browser that tries ::1 first must
// be refused there at once, so that it goes on to 127.0.0.1.
func TestTheOtherLoopbackIsRefusedNotServed(t *testing.T) {
	if !hasIPv6() {
		t.Skip("this machine has no ::1")
	}
	r := start(t, nil)
	r.pid()
	_, port, _ := net.SplitHostPort(r.addr)
	c, err := net.Dial("tcp", net.JoinHostPort("::1", port))
	if err == nil {
		c.Close()
		t.Fatal("something answers on ::1")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial ::1: %v, want connection refused", err)
	}
}

func hasIPv6() bool {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		return false
	}
	l.Close()
	return true
}

func TestFinalExitCodes(t *testing.T) {
	for _, code := range []int{0, 64, 69, 75, 78} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			r := start(t, func(o *Options) { o.Child = append(o.Child, "refuse", strconv.Itoa(code)) })
			err := r.end()
			var exit *ExitError
			switch {
			case code == 0 && err != nil:
				t.Fatalf("a worker that ended as asked gives %v", err)
			case code != 0 && (!errors.As(err, &exit) || exit.Code != code):
				t.Fatalf("got %v, want exit code %d", err, code)
			case code != 0 && !strings.Contains(err.Error(), strconv.Itoa(code)):
				t.Fatalf("the message does not name the code: %v", err)
			}
		})
	}
	for _, code := range []int{1, 2, 63, 79, 255} {
		if final(code) {
			t.Errorf("exit code %d ends the supervision", code)
		}
	}
}

func TestReplace(t *testing.T) {
	r := start(t, nil)
	first := r.pid()
	r.signals <- syscall.SIGHUP
	second := r.pid()
	if first == second || r.say("pid") != strconv.Itoa(second) {
		t.Fatalf("SIGHUP did not replace worker %d", first)
	}
	r.signals <- syscall.SIGINT
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(second, 0); !errors.Is(err, syscall.ESRCH) {
		t.Fatalf("worker %d outlives the parent: %v", second, err)
	}
}

func TestADeafWorkerIsKilled(t *testing.T) {
	tests := []struct {
		name string
		then func(r *run)
	}{
		{"by the limit", func(r *run) {
			for p := range r.pause {
				if p.d == 42*time.Second {
					p.fire <- time.Time{}
					return
				}
			}
		}},
		{"by a second signal", func(r *run) { r.signals <- syscall.SIGTERM }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := start(t, func(o *Options) { o.StopLimit = 42 * time.Second })
			pid := r.pid()
			if r.say("deaf") != "yes" {
				t.Fatal("the worker did not answer")
			}
			r.signals <- syscall.SIGTERM
			test.then(r)
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Fatalf("worker %d still lives: %v", pid, err)
			}
		})
	}
}

// TestOneSignalTwice: a signal that ended the context and comes by the channel
// too is one signal; only the next one kills.
func TestOneSignalTwice(t *testing.T) {
	r := start(t, func(o *Options) { o.StopLimit = 42 * time.Second })
	pid := r.pid()
	if r.say("deaf") != "yes" {
		t.Fatal("the worker did not answer")
	}
	r.cancel()
	r.nextPause(42 * time.Second) // it stops because of the context
	r.signals <- syscall.SIGTERM
	eventually(t, "the parent takes the signal", func() bool { return len(r.signals) == 0 })
	r.signals <- syscall.SIGHUP // taken only when the one before has been dealt with
	eventually(t, "the parent takes the signal", func() bool { return len(r.signals) == 0 })
	if gone(pid) {
		t.Fatal("the copy of the signal killed the worker")
	}
	r.signals <- syscall.SIGTERM
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Fatalf("worker %d still lives", pid)
	}
}

func TestBackOff(t *testing.T) {
	want := []time.Duration{0, 250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000}
	for n, ms := range want {
		if got := backOff(n); got != ms*time.Millisecond {
			t.Errorf("after %d deaths: %v, want %v", n, got, ms*time.Millisecond)
		}
	}
	if got := backOff(1 << 40); got != longestDelay {
		t.Errorf("after very many deaths: %v", got)
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = Run(t.Context(), Options{Listen: l.Addr().String(), Child: []string{"/nonexistent"}})
	var bind *BindError
	if !errors.As(err, &bind) {
		t.Fatalf("got %v, want a BindError", err)
	}
	for _, want := range []string{l.Addr().String(), "in use by", "vogt down", "--listen"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("message lacks %q: %v", want, err)
		}
	}
}

func TestOtherLoopbackInUse(t *testing.T) {
	if !hasIPv6() {
		t.Skip("this machine has no ::1")
	}
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	err = Run(t.Context(), Options{Listen: "127.0.0.1:" + port, Child: []string{"/nonexistent"}})
	if err == nil || !strings.Contains(err.Error(), "browsers try it first") {
		t.Fatalf("a squatter on ::1 is accepted: %v", err)
	}
}

func TestBadOptions(t *testing.T) {
	tests := []struct {
		o    Options
		want string
	}{
		{Options{}, "no worker"},
		{Options{Listen: "nonsense", Child: []string{"x"}}, "--listen"},
		{Options{Listen: "192.0.2.1:0", Child: []string{"x"}}, "does not have that address"},
		{Options{Listen: "127.0.0.1:0", Child: []string{filepath.Join(t.TempDir(), "none")}}, "cannot start the worker"},
	}
	for _, test := range tests {
		if err := Run(t.Context(), test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %q", test.o, err, test.want)
		}
	}
}

// TestParentProcess runs the parent as a process with real signals, and kills
// it the hard way at the end: the worker must not outlive it.
func TestParentProcess(t *testing.T) {
	cmd := exec.Command(os.Args[0], "127.0.0.1:0")
	cmd.Env = append(os.Environ(), role+"=parent", quickEnd)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	next := func(prefix string) string {
		t.Helper()
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), prefix+" "); ok {
				return rest
			}
		}
		t.Fatalf("the parent ended without a line %q", prefix)
		return ""
	}
	addr := next("bound")
	first := next("ready")
	cmd.Process.Signal(syscall.SIGHUP)
	if second := next("ready"); second == first {
		t.Fatal("SIGHUP did not replace the worker")
	}
	pid, err := strconv.Atoi(say(t, addr, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if pgid, err := syscall.Getpgid(pid); err != nil || pgid != pid {
		t.Errorf("the worker shares the terminal's signals: group %d, %v", pgid, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if !diesWithParent {
		return
	}
	eventually(t, fmt.Sprintf("the end of worker %d, whose parent was killed", pid), func() bool { return gone(pid) })
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// gone reports whether the process has ended; a zombie that an init has not
// collected yet has.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(stat, []byte(") Z "))
}

// TestLeftOverVariables: variables of an ancestor must not make a process take
// its descriptor 3 for a socket.
func TestLeftOverVariables(t *testing.T) {
	tests := []struct {
		name    string
		env     map[string]string
		wantErr bool
	}{
		{"none", nil, false},
		{"another pid", map[string]string{countVariable: "1", pidVariable: "1"}, false},
		{"another parent", map[string]string{countVariable: "1", parentVariable: "1"}, false},
		{"no pid", map[string]string{countVariable: "1"}, false},
		{"not a number", map[string]string{countVariable: "many", pidVariable: strconv.Itoa(os.Getpid())}, true},
		{"negative", map[string]string{countVariable: "-1", pidVariable: strconv.Itoa(os.Getpid())}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range []string{countVariable, namesVariable, pidVariable, parentVariable} {
				t.Setenv(name, test.env[name])
			}
			l, ok, err := Listener(DefaultName)
			if l != nil || ok || (err != nil) != test.wantErr {
				t.Fatalf("got %v, %v, %v", l, ok, err)
			}
		})
	}
}

func TestReadyWithoutParent(t *testing.T) {
	t.Setenv(readyVariable, "1")
	t.Setenv(parentVariable, "1")
	if err := Ready(struct{}{}); err != nil {
		t.Fatal(err)
	}
}

func TestLogNamesWhatHappened(t *testing.T) {
	var b safeBuffer
	r := start(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&b, nil)) })
	pid := r.pid()
	r.say("exit 3")
	r.pid()
	if text := b.String(); !strings.Contains(text, fmt.Sprintf("pid=%d", pid)) || !strings.Contains(text, "exit status 3") {
		t.Fatalf("log: %s", text)
	}
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
