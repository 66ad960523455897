// Package authoritytest runs a real authority for tests: the SQLite engine in
// a temporary folder, the service and its HTTP interface on a loopback port,
// with a clock that the test sets.
//
// It owns the start, the restart, the restore and the end of that authority,
// and the people, agents and raw HTTP calls that tests need. At the end of
// every test it verifies the whole audit log against the database and against
// every checkpoint that a client was shown, so that each test that uses it
// proves the log as well. It leaves out what the answers mean, and the pages.
package authoritytest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"vogt/internal/audit"
	"vogt/internal/authority"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/httpapi"
	"vogt/internal/store"
	"vogt/internal/store/sqlite"
)

// ManagementToken is the management token of every authority started here.
const ManagementToken = "management-token-of-a-test"

// OwnerEmail is the address of the person that [Server.Owner] makes.
const OwnerEmail = "owner@example.com"

// Clock is a clock that stands still until it is moved.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now returns the time that was set.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set sets the clock.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

type options struct {
	config []func(*authority.Config)
	pages  func(*authority.Authority) http.Handler
	ask    func(grant.Grant)
	deps   []func(*authority.Deps)
	api    []func(*httpapi.Config)
	run    bool

	clients  authority.ClientSource
	policies authority.PolicySource
	scopes   authority.ScopeSource
}

// Option changes how [Start] starts.
type Option func(*options)

// WithConfig changes the authority's configuration before it starts. The
// default is the documented one, except that requests may be created as fast
// as they come, because the clock stands still.
func WithConfig(change func(*authority.Config)) Option {
	return func(o *options) { o.config = append(o.config, change) }
}

// WithBearer sets the bearer_decisions switch.
func WithBearer(highest detail.Risk) Option {
	return WithConfig(func(c *authority.Config) { c.Bearer = highest })
}

// WithPages serves what pages returns on the pages' host.
func WithPages(pages func(*authority.Authority) http.Handler) Option {
	return func(o *options) { o.pages = pages }
}

// WithDeps changes the authority's surroundings before it starts.
func WithDeps(change func(*authority.Deps)) Option {
	return func(o *options) { o.deps = append(o.deps, change) }
}

// WithServices sets where OAuth clients and the policies of mail domains come
// from; nil knows none.
func WithServices(clients authority.ClientSource, policies authority.PolicySource) Option {
	return func(o *options) { o.clients, o.policies = clients, policies }
}

// WithScopes sets where the scopes of services come from; nil knows none.
func WithScopes(scopes authority.ScopeSource) Option {
	return func(o *options) { o.scopes = scopes }
}

// WithAPI changes the configuration of the interface before it starts. The
// default is the documented one, except that calls are not counted, because the
// clock stands still, and that [Click] takes the place of a page's signature.
func WithAPI(change func(*httpapi.Config)) Option {
	return func(o *options) { o.api = append(o.api, change) }
}

// WithPending is told of every request that waits for a person.
func WithPending(ask func(grant.Grant)) Option {
	return func(o *options) { o.ask = ask }
}

// WithHousekeeping keeps [authority.Authority.Run] running, as vogtd does.
// Without it nothing happens but what the test asks for.
func WithHousekeeping() Option { return func(o *options) { o.run = true } }

// Server is a running authority. Authority and DB change with [Server.Restart]
// and [Server.Restore]; the address does not.
type Server struct {
	T         testing.TB
	URL       string // the issuer, and where it is reached
	Pages     string // origin of the pages
	Clock     *Clock
	Authority *authority.Authority
	DB        *sqlite.DB
	Dir       string // the data directory

	opts    options
	handler atomic.Pointer[http.Handler]
	says    described
	http    *http.Client
	stop    func() // ends housekeeping and waits for it

	mu   sync.Mutex
	seen map[string]bool // checkpoints that clients were shown and that must still hold
}

// Start starts an authority that ends with the test.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &Server{
		T: t, Dir: t.TempDir(), seen: map[string]bool{}, stop: func() {},
		Clock: &Clock{now: time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)},
	}
	for _, o := range opts {
		o(&s.opts)
	}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*s.handler.Load()).ServeHTTP(w, r)
	}))
	// Broken requests are sent on purpose; the server need not print them.
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s.URL, s.Pages = "http://127.0.0.1:"+port, "http://vogt.localhost:"+port
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	s.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.open()
	web.Start()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		web.Close()
		s.verify()
		s.close()
	})
	return s
}

// open opens the database in Dir and puts an authority on it.
func (s *Server) open() {
	s.T.Helper()
	ctx := context.Background()
	db, err := sqlite.Open(ctx, sqlite.Options{Dir: s.Dir, Migrations: store.Migrations(), Ballast: -1, Now: s.Clock.Now})
	if err != nil {
		s.T.Fatal(err)
	}
	cfg := authority.DefaultConfig(s.URL, s.Pages)
	cfg.Limits.Creations = 1e6
	for _, change := range s.opts.config {
		change(&cfg)
	}
	deps := authority.Deps{DB: db, Clock: s.Clock.Now, Pending: s.opts.ask, Clients: s.opts.clients, Policies: s.opts.policies, Scopes: s.opts.scopes}
	for _, change := range s.opts.deps {
		change(&deps)
	}
	a, err := authority.New(ctx, cfg, deps)
	if err != nil {
		s.T.Fatal(errors.Join(err, db.Close()))
	}
	bearer := "none"
	if cfg.Bearer != detail.Unrated {
		bearer = cfg.Bearer.String()
	}
	c := httpapi.Config{Authority: a, Management: ManagementToken, Version: "test", Bearer: bearer, Log: slog.New(slog.DiscardHandler)}
	const many = 1e9
	c.Rates = httpapi.Rates{Strict: many, Strangers: many, Logins: many, Management: many, Principal: many, Local: 1}
	c.Click = verifyClick
	if s.opts.pages != nil {
		c.Pages = s.opts.pages(a)
	}
	for _, change := range s.opts.api {
		change(&c)
	}
	h, err := httpapi.New(c)
	if err != nil {
		s.T.Fatal(errors.Join(err, db.Close()))
	}
	s.DB, s.Authority = db, a
	s.handler.Store(&h)
	if !s.opts.run {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.Run(ctx) // it ends with ctx only
	}()
	s.stop = func() { cancel(); <-ended }
}

func (s *Server) close() {
	s.T.Helper()
	s.stop()
	if err := s.DB.Close(); err != nil {
		s.T.Errorf("closing the database: %v", err)
	}
}

// Restart ends the authority and starts it again on the same data.
func (s *Server) Restart() {
	s.T.Helper()
	s.close()
	s.open()
}

// Backup copies the database and returns the copy's path.
func (s *Server) Backup() string {
	s.T.Helper()
	path := filepath.Join(s.T.TempDir(), sqlite.FileName)
	if err := s.DB.Backup(context.Background(), path); err != nil {
		s.T.Fatal(err)
	}
	return path
}

// Restore starts the authority again on a copy made by Backup, as an operator
// does after losing the disk. What clients were shown since is not part of the
// data any more, so it is no longer compared at the end.
func (s *Server) Restore(backup string) {
	s.T.Helper()
	s.verify()
	s.close()
	b, err := os.ReadFile(backup)
	if err != nil {
		s.T.Fatal(err)
	}
	s.Dir = s.T.TempDir()
	if err := os.Chmod(s.Dir, 0o700); err != nil {
		s.T.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, sqlite.FileName), b, 0o600); err != nil {
		s.T.Fatal(err)
	}
	s.Forget()
	s.open()
}

// see remembers a checkpoint that a client was shown.
func (s *Server) see(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[text] = true
}

// Seen returns the checkpoints that clients were shown, which the log's key
// must have signed.
func (s *Server) Seen(logKey string) []audit.Checkpoint {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []audit.Checkpoint
	for text := range s.seen {
		c, err := audit.OpenCheckpoint(text, logKey)
		if err != nil {
			s.T.Errorf("a client was shown a checkpoint that does not verify: %v\n%s", err, text)
			continue
		}
		all = append(all, c)
	}
	return all
}

// Forget forgets the checkpoints that clients were shown, since data that were
// restored from an older copy need not reach them.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.seen)
}

// verify recomputes the whole log.
func (s *Server) verify() {
	s.T.Helper()
	text, err := s.Authority.LatestCheckpoint(context.Background())
	if err != nil {
		s.T.Errorf("the log's checkpoint: %v", err)
		return
	}
	if _, err := audit.Verify(logSource{s.DB}, text, s.Authority.LogKey(), s.Seen(s.Authority.LogKey())); err != nil {
		s.T.Errorf("the audit log does not verify: %v", err)
	}
}

// logSource reads the stored log for [audit.Verify].
type logSource struct{ db store.DB }

func (l logSource) Records(yield func(audit.Record) error) error {
	return l.db.View(context.Background(), func(tx store.Tx) error {
		for after := int64(-1); ; {
			rows, err := store.LogRecords(tx, store.LogFilter{After: after, Limit: 1000})
			if err != nil || len(rows) == 0 {
				return err
			}
			for _, r := range rows {
				rec := audit.Record{Index: r.Index, Type: r.Type, Time: r.Time, Salt: r.Salt, Body: r.Body}
				copy(rec.Leaf[:], r.Leaf)
				if err := yield(rec); err != nil {
					return err
				}
			}
			after = rows[len(rows)-1].Index
		}
	})
}

func (l logSource) ReadHashes(indexes []int64) (out []tlog.Hash, err error) {
	err = l.db.View(context.Background(), func(tx store.Tx) error {
		for _, i := range indexes {
			b, err := store.LogHash(tx, i)
			if err != nil {
				return err
			}
			var h tlog.Hash
			copy(h[:], b)
			out = append(out, h)
		}
		return nil
	})
	return out, err
}

// Records returns the whole log, oldest first.
func (s *Server) Records() []audit.Record {
	s.T.Helper()
	var out []audit.Record
	if err := (logSource{s.DB}).Records(func(r audit.Record) error { out = append(out, r); return nil }); err != nil {
		s.T.Fatal(err)
	}
	return out
}

// Recorded returns the bodies of the log's records of one type, oldest first.
func (s *Server) Recorded(kind string) []string {
	s.T.Helper()
	var out []string
	for _, r := range s.Records() {
		if r.Type == kind {
			out = append(out, string(r.Body))
		}
	}
	return out
}

// HasRecord reports whether the log holds a record of the type whose body
// contains every one of the words.
func (s *Server) HasRecord(kind string, words ...string) bool {
	s.T.Helper()
	return slices.ContainsFunc(s.Recorded(kind), func(body string) bool {
		for _, w := range words {
			if !strings.Contains(body, w) {
				return false
			}
		}
		return true
	})
}

// Handler is the interface without the server around it, for tests that bring
// a server of their own.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.handler.Load()).ServeHTTP(w, r) })
}
