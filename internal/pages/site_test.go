package pages_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/pages"
	"vogt/internal/pages/pagestest"
	"vogt/internal/statement"
)

const (
	mara   = "mara@home.example"
	claude = "claude-1f3a9c2e+mara+home_example@vogt.home.example"
	ops    = "ops-77ab01cd+mara+home_example@vogt.home.example"
)

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func fixedClock() *clock {
	return &clock{at: time.Date(2026, time.November, 30, 14, 24, 12, 0, time.UTC)}
}

// site is the pages on a port of their own, with an authority in memory.
type site struct {
	t         testing.TB
	origin    string
	address   string
	authority *pagestest.Authority
	server    *httptest.Server
	client    *http.Client
	cookie    string
	sessionID string
	key       *ecdsa.PrivateKey
	now       func() time.Time
	down      atomic.Bool // connections break off
}

func newSite(t testing.TB, now func() time.Time, change ...func(*pages.Config)) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, now: now, address: listener.Addr().String()}
	s.origin = fmt.Sprintf("http://vogt.localhost:%d", listener.Addr().(*net.TCPAddr).Port)
	if s.authority, err = pagestest.New(s.origin, now); err != nil {
		t.Fatal(err)
	}
	cfg := pages.Config{PagesOrigin: s.origin, Issuer: "http://127.0.0.1:8648", Version: "0.1", Clock: now, Heartbeat: 200 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&cfg)
	}
	handler, err := pages.New(cfg, s.authority.Backend())
	if err != nil {
		t.Fatal(err)
	}
	s.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.down.Load() {
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	})}}
	s.server.Start()
	t.Cleanup(func() {
		s.authority.DropStreams()
		s.server.CloseClientConnections()
		s.server.Close()
	})
	s.client = &http.Client{
		Transport: &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.address)
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// populate adds Mara, her agents and a few requests.
func (s *site) populate() (ids map[string]string) {
	a := s.authority
	a.AddPerson(mara, "Mara Lindqvist") // stays as it is where set-up made her
	a.AddAgent(claude, "claude")
	a.AddAgent(ops, "ops")
	now := s.now()
	text := func(v string) *string { return &v }
	uid := uint64(1000)
	folder := &grant.Context{Cwd: &statement.File{Path: text("/home/mara/projects/shop")}, Executable: "/usr/bin/rm", UID: &uid}
	ask := func(name string, minutes int, risk detail.Risk, r grant.Request) string {
		r.Type, r.Audience = grant.Once, "shapes"
		id := a.Ask(r, risk)
		a.Wait(id, now.Add(-time.Duration(30-minutes)*time.Minute), now.Add(time.Duration(minutes)*time.Minute))
		return id
	}
	return map[string]string{
		"risky": ask("risky", 3, detail.High, grant.Request{Requester: claude, Host: "nuc", Command: []string{"rm", "-rf", "../dist", "../../shared-cache"}, Context: folder,
			Reason: "The build picks up stale files from the cache. I will clear dist and the cache, then build again."}),
		"read": ask("read", 19, detail.Low, grant.Request{Requester: claude, Host: "nuc", Command: []string{"rg", "-n", "listen", "/etc/nginx"}, Context: folder,
			Reason: "The dev server fails with “address in use”. I want to see which ports nginx listens on."}),
		"crossing": ask("crossing", 11, detail.Critical, grant.Request{Requester: ops, Host: "nuc", Command: []string{"systemctl", "restart", "nginx.service"}, RunAs: "root",
			Reason: "The renewed certificate is in place. nginx needs a restart to use it."}),
		"connect": ask("connect", 26, detail.Medium, grant.Request{Requester: claude, Host: "nuc", Command: []string{"curl", "-fsS", "https://api.openrouteservice.example/v2/status"}, Context: folder,
			Reason: "I need the list of profiles that the service offers."}),
	}
}

// signIn gives the client a session with a key.
func (s *site) signIn(email string) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		s.t.Fatal(err)
	}
	s.key = key
	s.cookie, s.sessionID = s.authority.SignIn(email, spki)
}

// answer is what came back.
type answer struct {
	*http.Response
	body string
}

func (s *site) do(r *http.Request) answer {
	s.t.Helper()
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{resp, string(body)}
}

func (s *site) get(path string, change ...func(*http.Request)) answer {
	s.t.Helper()
	r, err := http.NewRequest("GET", s.origin+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.dress(r, change)
	return s.do(r)
}

func (s *site) dress(r *http.Request, change []func(*http.Request)) {
	if s.cookie != "" {
		r.AddCookie(&http.Cookie{Name: "vogt_session", Value: s.cookie})
	}
	for _, f := range change {
		f(r)
	}
}

// post makes a call as the script does, click included.
func (s *site) post(path string, data any, change ...func(*http.Request)) answer {
	s.t.Helper()
	body, err := json.Marshal(data)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequest("POST", s.origin+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", s.origin)
	if s.key != nil {
		u, err := url.Parse(path)
		if err != nil {
			s.t.Fatal(err)
		}
		r.Header.Set(pages.ClickHeader, s.click(u.EscapedPath(), body, s.now()))
	}
	s.dress(r, change)
	return s.do(r)
}

func (s *site) click(path string, body []byte, at time.Time) string {
	c := pages.Click{Origin: s.origin, Path: path, Body: body, Issued: at.UnixMilli()}
	return fmt.Sprintf("%d.%s", c.Issued, base64.RawURLEncoding.EncodeToString(signClick(s.t, s.key, c)))
}

func signClick(t testing.TB, key *ecdsa.PrivateKey, c pages.Click) []byte {
	t.Helper()
	sum := sha256.Sum256(c.Signed())
	r, v, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 64)
	r.FillBytes(out[:32])
	v.FillBytes(out[32:])
	return out
}

func want(t *testing.T, a answer, status int, contains ...string) {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("status %d, want %d: %.400s", a.StatusCode, status, a.body)
	}
	for _, c := range contains {
		if !strings.Contains(a.body, c) {
			t.Errorf("answer does not contain %q", c)
		}
	}
}
