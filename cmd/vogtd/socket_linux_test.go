package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/vogtdtest"
)

// squat tries to listen where browsers and clients look for the authority, and
// returns the addresses that it got.
func squat(port uint16) (got []string) {
	reuse := func(_, _ string, c syscall.RawConn) (err error) {
		controlErr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return errors.Join(controlErr, err)
	}
	for _, lc := range []net.ListenConfig{{}, {Control: reuse}} {
		for _, host := range []string{"127.0.0.1", "::1", "0.0.0.0", "::"} {
			address := netip.AddrPortFrom(netip.MustParseAddr(host), port).String()
			if l, err := lc.Listen(context.Background(), "tcp", address); err == nil {
				l.Close()
				got = append(got, address)
			}
		}
	}
	return got
}

// TestNobodyTakesThePort looks at the time between two workers: nobody else can
// have the port, and who calls then is served by the next worker.
func TestNobodyTakesThePort(t *testing.T) {
	d := vogtdtest.Start(t, vogtdtest.Options{})
	s, _ := d.Status()
	port := netip.MustParseAddrPort(s.Listen).Port()
	// The first restart comes at once, later ones after a while.
	for range 6 {
		old := d.KillWorker()
		_, before := d.Status()
		got := squat(port)
		served := make(chan error, 1)
		go func() {
			a, err := d.API.Stranger().Try("GET", api.PathHealth, nil)
			if err == nil && a.Status != 200 {
				err = fmt.Errorf("status %d", a.Status)
			}
			served <- err
		}()
		_, after := d.Status()
		d.AwaitWorker(old)
		if len(got) > 0 {
			t.Errorf("a squatter got %v", got)
		}
		if err := <-served; err != nil {
			t.Errorf("a call made while no worker ran: %v", err)
		}
		if !before && !after {
			return
		}
	}
	t.Error("a worker was always there already, so nothing was tried")
}

// TestHangup replaces the worker while calls come in, each on a connection of
// its own and on kept ones. None may fail.
func TestHangup(t *testing.T) {
	const callers, times = 8, 3
	d := vogtdtest.Start(t, vogtdtest.Options{})
	var all sync.WaitGroup
	var stop atomic.Bool
	var calls atomic.Int64
	defer all.Wait()
	defer stop.Store(true)
	for i := range callers {
		all.Go(func() {
			var headers []string
			if i%2 == 0 {
				headers = []string{"Connection", "close"}
			}
			for !stop.Load() {
				a, err := d.API.Stranger().Try("GET", api.PathHealth, nil, headers...)
				if err != nil || a.Status != 200 {
					t.Errorf("a call while the worker is replaced: %d, %v", a.Status, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	for range times {
		enough := calls.Load() + 5*callers
		vogtdtest.Await(t, "calls are made", func() bool { return t.Failed() || calls.Load() >= enough })
		s, _ := d.Status()
		d.Signal(syscall.SIGHUP)
		d.AwaitWorker(s.PID)
	}
	s, _ := d.Status()
	if parent := d.PID(); parent == s.PID {
		t.Errorf("parent and worker are one process, %d", parent)
	}
}

// TestHangupEndsWaits replaces the worker while a client waits for a person: it
// must learn that it has no answer, and not take an end for one.
func TestHangupEndsWaits(t *testing.T) {
	d := vogtdtest.Start(t, vogtdtest.Options{Config: "[limits]\nwaits_per_agent = 1\n"})
	owner := d.Owner()
	agent := d.API.Agent(owner, "helper")
	id := agent.Ask("uptime").ID
	type result struct {
		authoritytest.Answer
		err error
	}
	waited := make(chan result, 1)
	go func() {
		var r result
		for ok := true; ok; ok = r.err == nil && r.Status == 429 { // the other call waits
			r.Answer, r.err = agent.Try("GET", authoritytest.GrantPath(id)+"?wait=55", nil)
		}
		waited <- r
	}()
	// It waits once there is no room for another.
	vogtdtest.Await(t, "the client waits", func() bool {
		return agent.Get(authoritytest.GrantPath(id)+"?wait=1").Status == 429
	})
	s, _ := d.Status()
	d.Signal(syscall.SIGHUP)
	d.AwaitWorker(s.PID)
	r := <-waited
	var g api.Grant
	switch {
	case r.err != nil: // the connection broke: no answer
	case r.Status == 503:
		r.Problem(503)
	default:
		r.Into(&g)
		if g.Status != grant.Pending {
			t.Errorf("the wait ended with %d %s", r.Status, r.Body)
		}
	}
}

// TestParentKilled kills the parent alone: the worker may not stay behind with
// port and data.
func TestParentKilled(t *testing.T) {
	d := vogtdtest.Start(t, vogtdtest.Options{})
	owner := d.Owner()
	id := d.API.Agent(owner, "helper").Ask("uptime").ID
	d.Kill() // waits until the worker has ended as well
	d.Restart()
	if g := owner.Grant(id); g.Status != grant.Pending {
		t.Errorf("after the parent's death the grant is %s", g.Status)
	}
}

// TestStaleControlSocket starts on the socket that a killed worker left behind.
func TestStaleControlSocket(t *testing.T) {
	d := vogtdtest.Start(t, vogtdtest.Options{Serve: true})
	path := filepath.Join(d.Data(), "control.sock")
	before, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := before.Mode(); mode != os.ModeSocket|0o600 {
		t.Errorf("the control socket has mode %v", mode)
	}
	d.Kill()
	if _, err := os.Lstat(path); err != nil {
		t.Fatalf("the killed worker left no socket, so nothing is tried: %v", err)
	}
	if _, ok := d.Status(); ok {
		t.Fatal("somebody answers on the stale socket")
	}
	d.Restart()
	if _, ok := d.Status(); !ok {
		t.Error("nobody answers on the control socket")
	}
	d.Stop()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("vogtd left its control socket when it stopped: %v", err)
	}
}
