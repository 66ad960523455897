package quickstart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vogt/internal/api"
	"vogt/internal/peer"
)

// ErrNotRunning tells that nothing listens on the control socket.
var ErrNotRunning = errors.New("no authority runs on this data folder")

// SocketName is the control socket's name in the data folder.
const SocketName = "control.sock"

// longestAnswer bounds what is read from the authority.
const longestAnswer = 1 << 20

// Status answers GET /status of the control socket.
type Status struct {
	PID     int    `json:"pid"`
	Issuer  string `json:"issuer"`
	Pages   string `json:"pages"`
	Version string `json:"version"`
	SetUp   bool   `json:"set_up"`
	Listen  string `json:"listen"`
	Epoch   uint64 `json:"epoch"`
	LogKey  string `json:"log_key"`
}

// Link answers POST /setup.
type Link struct {
	URL       string `json:"url"`
	ExpiresAt int64  `json:"expires_at"` // unix seconds
}

// SetupState answers GET /setup and POST /setup/digits.
type SetupState struct {
	State string `json:"state"` // none, offered, opened, confirmed, done or expired
	Email string `json:"email"`
}

// Control speaks to the control socket of one data folder. It only speaks to a
// server of this user or of root.
type Control struct {
	path string
	http *http.Client
}

// NewControl returns a client for the authority on the data folder.
func NewControl(data string) *Control {
	c := &Control{path: filepath.Join(data, SocketName)}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
		// A kept connection would hold up the authority's end.
		DisableKeepAlives: true,
	}}
	return c
}

func (c *Control) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.path)
	if err != nil {
		if errors.Is(err, syscall.EINVAL) {
			return nil, fmt.Errorf("%s is too long for a socket's name; set VOGT_HOME to a shorter path", c.path)
		}
		return nil, err
	}
	if err := peer.Check(conn.(*net.UnixConn)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", c.path, err)
	}
	return conn, nil
}

// Status asks whether and as what the authority runs.
func (c *Control) Status(ctx context.Context) (Status, error) {
	var s Status
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return s, c.call(ctx, http.MethodGet, "/status", nil, &s)
}

// leftBehind reports whether the folder holds a socket on which nothing listens,
// as a killed authority leaves it.
func (c *Control) leftBehind() bool {
	info, err := os.Lstat(c.path)
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

// await asks until the authority answers, but no longer than limit.
func (c *Control) await(ctx context.Context, limit time.Duration) (Status, bool) {
	late := time.NewTimer(limit)
	defer late.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if status, err := c.Status(ctx); err == nil {
			return status, true
		}
		select {
		case <-tick.C:
		case <-late.C:
			return Status{}, false
		case <-ctx.Done():
			return Status{}, false
		}
	}
}

// MakeOwner makes the first owner. It succeeds when that very owner exists.
func (c *Control) MakeOwner(ctx context.Context, o Owner) error {
	return c.call(ctx, http.MethodPost, "/owner", o, nil)
}

// NewLink makes the link of the set-up; it voids an earlier one.
func (c *Control) NewLink(ctx context.Context) (Link, error) {
	var l Link
	return l, c.call(ctx, http.MethodPost, "/setup", nil, &l)
}

// Setup returns the state of the set-up: at once, or with wait at the next
// change from now on, or when wait is over.
func (c *Control) Setup(ctx context.Context, wait time.Duration) (SetupState, error) {
	var s SetupState
	path := "/setup?wait=" + strconv.Itoa(int(wait/time.Second))
	return s, c.call(ctx, http.MethodGet, path, nil, &s)
}

// Digits confirms the page that shows these digits.
func (c *Control) Digits(ctx context.Context, digits string) (SetupState, error) {
	var s SetupState
	return s, c.call(ctx, http.MethodPost, "/setup/digits", map[string]string{"digits": digits}, &s)
}

// Shutdown asks the authority to end.
func (c *Control) Shutdown(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/shutdown", nil, nil)
}

// refused is a problem document.
type refused struct{ api.Problem }

// Error is the problem in whole sentences but for the last full stop, so that it
// can end a sentence or stand within one.
func (e *refused) Error() string {
	// The detail repeats the hint, and the title where there is nothing to add,
	// for clients that print the detail alone.
	detail := strings.TrimSpace(strings.TrimSuffix(e.Detail, e.Hint))
	detail = strings.TrimPrefix(detail, e.Title)
	if text := sentences(e.Title, detail, e.Hint); text != "" {
		return text
	}
	return http.StatusText(e.Status)
}

// sentences joins texts to sentences: one full stop and one blank between two,
// and none at the end. Texts without a word are left out.
func sentences(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		text = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text), "."))
		text = strings.TrimSpace(strings.TrimLeft(text, "."))
		if text == "" {
			continue
		}
		if b.Len() > 0 {
			if !strings.ContainsAny(b.String()[b.Len()-1:], "!?") {
				b.WriteByte('.')
			}
			b.WriteByte(' ')
		}
		b.WriteString(text)
	}
	return b.String()
}

// call makes one request. A missing socket or one without a listener gives
// ErrNotRunning.
func (c *Control) call(ctx context.Context, method, path string, body, result any) error {
	var send io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		send = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, send)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNotRunning
	}
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	defer resp.Body.Close()
	return decode(resp, result)
}

// decode reads an answer, or the problem in place of one.
func decode(resp *http.Response, result any) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		e := &refused{}
		if json.Unmarshal(text, &e.Problem) != nil || e.Status == 0 {
			e.Problem = api.Problem{Title: http.StatusText(resp.StatusCode)}
		}
		e.Status = resp.StatusCode
		return e
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(text, result); err != nil {
		return fmt.Errorf("the authority's answer is not understood: %w", err)
	}
	return nil
}

// askHealth asks the authority that listens on listen, under the name in its
// issuer's address, how it is. Proxies of the environment are not used.
func askHealth(ctx context.Context, issuer, listen string) (api.Health, error) {
	var h api.Health
	u, err := url.Parse(issuer)
	if err != nil {
		return h, fmt.Errorf("the authority's address %q: %w", issuer, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+u.Host+api.PathHealth, nil)
	if err != nil {
		return h, err
	}
	client := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", dialAddr(listen))
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return h, fmt.Errorf("the authority on %s does not answer: %w", listen, err)
	}
	defer resp.Body.Close()
	if err := decode(resp, &h); err != nil {
		return h, fmt.Errorf("the authority on %s: %w", listen, err)
	}
	return h, nil
}

// dialAddr turns an address to listen on into one to connect to.
func dialAddr(listen string) string {
	a, err := netip.ParseAddrPort(listen)
	if err != nil || !a.Addr().IsUnspecified() {
		return listen
	}
	ip := netip.IPv6Loopback()
	if a.Addr().Is4() {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrPortFrom(ip, a.Port()).String()
}
