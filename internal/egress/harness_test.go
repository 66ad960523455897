package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// records is an Audit that keeps everything.
type records struct {
	mu     sync.Mutex
	begun  []Record
	ended  []Record
	fail   error
	notify chan struct{} // closed and made anew at each change
}

func (r *records) Begin(record Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return r.fail
	}
	r.begun = append(r.begun, record)
	return nil
}

func (r *records) End(record Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, record)
	if r.notify != nil {
		close(r.notify)
		r.notify = nil
	}
}

// wait returns the records once there are n that ended.
func (r *records) wait(t *testing.T, n int) []Record {
	t.Helper()
	for {
		r.mu.Lock()
		if len(r.ended) >= n {
			defer r.mu.Unlock()
			return append([]Record(nil), r.ended...)
		}
		if r.notify == nil {
			r.notify = make(chan struct{})
		}
		changed := r.notify
		r.mu.Unlock()
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("the test ended before the record")
		}
	}
}

// last returns the record of the only connection.
func (r *records) last(t *testing.T) Record {
	t.Helper()
	all := r.wait(t, 1)
	return all[len(all)-1]
}

// names is a resolver, and counts what it is asked.
type names struct {
	mu    sync.Mutex
	table map[string][]netip.Addr
	asked []string
}

func newNames(table map[string]string) *names {
	n := &names{table: make(map[string][]netip.Addr)}
	for name, addrs := range table {
		for _, addr := range bytes.Fields([]byte(addrs)) {
			n.table[name] = append(n.table[name], netip.MustParseAddr(string(addr)))
		}
	}
	return n
}

func (n *names) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, name)
	addrs, ok := n.table[name]
	if !ok {
		return nil, errors.New("no such host")
	}
	return addrs, nil
}

func (n *names) questions() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.asked)
}

// noOwn keeps this machine's addresses out of a test.
func noOwn() ([]netip.Addr, error) { return nil, nil }

// serve runs a proxy on a loopback port until the test ends.
func serve(t testing.TB, config Config) (addr string, audit *records) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, audit = serveOn(t, l, config)
	return l.Addr().String(), audit
}

// serveOn runs a proxy until stop is called, which returns when nothing of it is
// left, or the test ends.
func serveOn(t testing.TB, l net.Listener, config Config) (stop func(), audit *records) {
	t.Helper()
	audit = new(records)
	if config.Audit == nil {
		config.Audit = audit
	}
	p, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop, audit
}

// patience is how long a test waits for bytes that must come, before it fails
// instead of hanging.
const patience = 30 * time.Second

// dial connects to the proxy.
func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn.(*net.TCPConn)
}

// say sends text, and returns all that comes back until the other side ends.
func say(t testing.TB, addr, text string) string {
	t.Helper()
	conn := dial(t, addr)
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && !isReset(err) {
		t.Fatalf("after %q: %v", answer, err)
	}
	return string(answer)
}

// isReset tells an end from a time that is over.
func isReset(err error) bool {
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}
