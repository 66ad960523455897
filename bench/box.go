package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"vogt/internal/egress"
)

// boxMemory measures what a box that runs holds in memory, besides its command:
// the anonymous pages of the starter and of the helper.
func (b *bench) boxMemory(workspace string, environ []string) error {
	fmt.Print("\n| box that runs `sh` | anonymous MB |\n|---|---|\n")
	for _, way := range []struct {
		name string
		argv []string
	}{
		{"vogt confine", []string{filepath.Join(b.bin, "vogt"), "confine", "--"}},
		{"vogt confine with the proxy", []string{filepath.Join(b.bin, "vogt"), "confine", "--allow", "example.com", "--"}},
		{"bwrap", []string{"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", workspace, workspace, "--unshare-all", "--die-with-parent", "--new-session", "--"}},
	} {
		if _, err := exec.LookPath(way.argv[0]); err != nil {
			continue
		}
		kb, err := b.heldBy(append(way.argv, "/bin/sh", "-c", "echo up; read x"), workspace, environ)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		fmt.Printf("| %s | %.1f |\n", way.name, float64(kb)/1000)
	}
	return nil
}

// heldBy starts a command that says that it is up and waits, and returns the
// anonymous memory of all processes but the last one, in kB.
func (b *bench) heldBy(argv []string, dir string, environ []string) (int, error) {
	cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, environ
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return 0, err
	}
	total := 0
	for pids := []int{cmd.Process.Pid}; len(pids) > 0; pids = pids[1:] {
		below, err := children(pids[0])
		if err != nil {
			return 0, err
		}
		if len(below) == 0 {
			break // the command itself
		}
		pids = append(pids, below...)
		kb, err := anonymous(pids[0])
		if err != nil {
			return 0, err
		}
		total += kb
	}
	return total, nil
}

func children(pid int) (out []int, err error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range lists {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // a thread that has ended
		}
		for word := range strings.FieldsSeq(string(data)) {
			n, err := strconv.Atoi(word)
			if err != nil {
				return nil, err
			}
			out = append(out, n)
		}
	}
	return out, err
}

// anonymous reads RssAnon in kB (proc_pid_status(5)).
func anonymous(pid int) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte("RssAnon:")); ok {
			return strconv.Atoi(string(bytes.Fields(rest)[0]))
		}
	}
	return 0, fmt.Errorf("process %d tells no anonymous size", pid)
}

// proxyCost measures a request on a new connection, with and without the proxy of
// a box, to a server on loopback.
func (b *bench) proxyCost() error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") }))
	defer server.Close()
	target, err := netip.ParseAddrPort(server.Listener.Addr().String())
	if err != nil {
		return err
	}
	proxy, err := egress.New(egress.Config{
		Identity: egress.Identity{Agent: "bench", Command: "bench"},
		Policy: egress.Policy{HostKind: func(string) string { return "" }, Limits: egress.Limits{Upload: 1 << 30},
			Rules: []egress.Rule{{Host: "server.example", Ports: []uint16{target.Port()}, Within: []netip.Prefix{netip.PrefixFrom(target.Addr(), 32)}}}},
		Audit:   noAudit{},
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{target.Addr()}, nil },
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- proxy.Serve(b.ctx, listener) }()
	by := &url.URL{Scheme: "http", Host: listener.Addr().String()}
	ways := []struct {
		address string
		client  *http.Client
	}{
		{server.URL, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}},
		{fmt.Sprintf("http://server.example:%d", target.Port()), &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyURL(by)}}},
	}
	times := make([][]time.Duration, len(ways))
	for round := range 201 {
		for i, way := range ways {
			t := time.Now()
			resp, err := way.client.Get(way.address)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil {
				return err
			}
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: %s", way.address, resp.Status)
			}
			if round > 0 {
				times[i] = append(times[i], time.Since(t))
			}
		}
	}
	listener.Close()
	<-ended
	fmt.Printf("\nA request on a new connection, median of %d: %.2f ms, by the proxy of a box %.2f ms.\n", len(times[0]), ms(median(times[0])), ms(median(times[1])))
	return nil
}

// noAudit records nothing: writing a line is no cost of the proxy itself.
type noAudit struct{}

func (noAudit) Begin(egress.Record) error { return nil }
func (noAudit) End(egress.Record)         {}
