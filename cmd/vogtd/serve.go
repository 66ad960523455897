package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"vogt/internal/authority"
	"vogt/internal/catalog/local"
	"vogt/internal/config"
	"vogt/internal/control"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/httpapi"
	"vogt/internal/notify"
	"vogt/internal/pages"
	"vogt/internal/pages/backend"
	"vogt/internal/push"
	"vogt/internal/reading"
	"vogt/internal/store"
	"vogt/internal/store/sqlite"
	"vogt/internal/supervise"
	"vogt/internal/version"
)

const (
	notifyCommand = "notify-run"
	// A worker that ends answers the calls that it has taken: for shortCalls
	// whatever comes, then what no wait or stream holds up, until shutdownLimit.
	shortCalls    = 300 * time.Millisecond
	shutdownLimit = 5 * time.Second
	bodyLimit     = 15 * time.Second
)

// checkpointPath is where the last signed head of the log is kept: outside the
// data directory, so that a restored copy is noticed, and for this one alone.
func checkpointPath(paths config.Paths, data string) string {
	sum := sha256.Sum256([]byte(data))
	return filepath.Join(paths.State, "checkpoint-"+hex.EncodeToString(sum[:8]))
}

// serve runs the authority until ctx ends.
func (s *settings) serve(ctx context.Context, cfg config.Daemon, paths config.Paths, log *slog.Logger) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if os.Getenv("GOGC") == "" {
		// The heap is about 10 MB: collecting it less often costs some 30 MB
		// and serves up to a quarter more calls.
		debug.SetGCPercent(400)
	}
	if err := harden(); err != nil {
		log.Warn("the memory of this process is open to others of this user", "err", err)
	}
	management, err := s.managementToken()
	if err != nil {
		return fail(exitConfig, err)
	}
	listener, err := listen(cfg.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	issuer, origin, err := addresses(cfg, listener.Addr())
	if err != nil {
		return fail(exitConfig, err)
	}
	authorityCfg := authorityConfig(cfg, issuer, origin)
	if err := authority.CheckClients(authorityCfg.Clients); err != nil {
		return fail(exitConfig, err)
	}
	db, err := sqlite.Open(ctx, sqlite.Options{Dir: s.data, Migrations: store.Migrations(), Log: log})
	switch {
	case errors.Is(err, store.ErrLocked):
		return fail(exitLocked, err)
	case err != nil:
		return fail(exitConfig, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	notifier, err := newNotifier(cfg, log)
	if err != nil {
		return fail(exitConfig, err)
	}
	mailer, err := newMailer(cfg, log)
	if err != nil {
		return fail(exitConfig, err)
	}
	checkpoint := checkpointPath(paths, s.data)
	known, left, err := local.Catalog()
	if err != nil {
		return fail(exitConfig, err)
	}
	for _, l := range left {
		log.Warn("a file is left out of the catalog; mend it until \"vogt catalog test\" passes, or remove it", "file", l.Path, "reason", l.Reason, "brought_by_vogt", l.Own)
	}
	services, err := newServices(cfg.DDISA, issuer)
	if err != nil {
		return fail(exitConfig, err)
	}
	var pushes *push.Sender // set below, before anybody can call
	a, err := authority.New(ctx, authorityCfg, authority.Deps{
		DB: db, Log: log, Reader: reading.New(known),
		Clients: services.clients(), Policies: services.policies(), Scopes: services.scopes(),
		Pending: func(g grant.Grant) {
			notifier.Send(cardOf(g, origin))
			pushes.Pending(g.ID)
		},
		Announce: func(email, text string) {
			pushes.Announce(email)
			notifier.Send(notify.Card{ApproveURL: origin + "/account", Owner: email, Summary: text})
		},
		Mail:         mailer.send(log),
		Checkpointed: func(text string) { keepCheckpoint(checkpoint, text, log) },
	})
	if errors.Is(err, store.ErrCorrupt) {
		return fail(exitConfig, err) // starting again would not help
	}
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(checkpoint); err == nil {
		if _, err := a.NoteCheckpoint(ctx, string(text)); err != nil {
			return err
		}
	}
	pushed := httpapi.Push{Hosts: cfg.Push.Hosts, Language: mailer.words.Language}
	if pushes, pushed.Public, err = newPushes(ctx, cfg, a, mailer.words, origin, log); err != nil {
		return err
	}
	web, err := pages.New(pages.Config{PagesOrigin: origin, Issuer: issuer, Version: version.String(), Clock: time.Now, Logger: log, PushKey: pushed.Public, Recovery: mailer.configured}, backend.New(a, cfg.BearerDecisions))
	if err != nil {
		return err
	}
	proxies, err := proxiesOf(cfg)
	if err != nil {
		return fail(exitConfig, err)
	}
	handler, err := httpapi.New(httpapi.Config{
		Authority: a, Pages: web, Management: management, Version: version.String(), Bearer: cfg.BearerDecisions, Log: log,
		Click: func(key []byte, c httpapi.Click, now time.Time) error {
			return pages.VerifyHeader(key, c.Header, c.Origin, c.Path, c.Body, now)
		},
		Proxies: proxies, Origins: cfg.AllowedOrigins, Rates: httpapi.Rates(cfg.Rates), Push: pushed,
	})
	if err != nil {
		return err
	}
	controls, err := control.Listen(s.data)
	if err != nil {
		return fail(exitUnavailable, err)
	}
	defer controls.Close()
	most := mostConnections(openFiles())
	info := control.Info{Listen: listener.Addr().String(), Version: version.String(), Stop: stop}
	ready := func() error {
		return supervise.Ready(map[string]any{"pid": os.Getpid(), "issuer": issuer, "pages": origin})
	}
	log.Info("serving", "issuer", issuer, "pages", origin, "data", s.data, "bearer_decisions", cfg.BearerDecisions)
	return together(ctx, ready,
		func(ctx context.Context) error { return serveHTTP(ctx, listener, handler, most, log) },
		func(ctx context.Context) error { return serveHTTP(ctx, controls, control.New(a, info), most, log) },
		a.Run,
		func(ctx context.Context) error { notifier.Run(ctx); return ctx.Err() },
		func(ctx context.Context) error { mailer.Run(ctx); return ctx.Err() },
		func(ctx context.Context) error { pushes.Run(ctx); return ctx.Err() },
	)
}

// together runs the parts until one fails or ctx ends, then ends the others
// and waits for them.
func together(ctx context.Context, ready func() error, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, len(parts))
	for _, part := range parts {
		go func() {
			err := part(ctx)
			cancel(err)
			done <- err
		}()
	}
	err := ready()
	if err != nil {
		cancel(err)
	}
	for range parts {
		if e := <-done; e != nil && !errors.Is(e, context.Canceled) && err == nil {
			err = e
		}
	}
	return err
}

// serveHTTP serves until ctx ends, then lets calls in progress finish.
//
// http.Server.Shutdown would close a connection whose request it reads after
// its begin, without an answer. Here the socket lives on for the next worker,
// so whoever has a connection to this one gets an answer from it. At most most
// connections are open at a time, see connections.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, most int, log *slog.Logger) error {
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	conns := newConnections(most)
	server := &http.Server{
		Handler: limitBodies(h), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: conns.open,
		ConnState:   conns.note,
		// "OPTIONS *" is for the handler, too, which knows the names.
		DisableGeneralOptionsHandler: true,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	l.Close()
	<-failed
	server.SetKeepAlivesEnabled(false) // closes those that are idle
	// Short calls get a moment; then streams and long waits are told to end.
	patience := time.AfterFunc(shortCalls, end)
	defer patience.Stop()
	conns.drain(shortCalls, shutdownLimit)
	server.Close()
	return ctx.Err()
}

// limitBodies gives the body of a call a time to arrive in. The server's own
// ReadTimeout would also end calls that wait for a person.
func limitBodies(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// Where no deadline can be set there is no connection to hold.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyLimit))
		}
		h.ServeHTTP(w, r)
	})
}

// listen takes the socket from the parent or systemd, else binds it itself.
func listen(address string) (net.Listener, error) {
	l, passed, err := supervise.Listener(supervise.DefaultName)
	if err != nil {
		return nil, fail(exitUnavailable, err)
	}
	if passed && l != nil {
		return l, nil
	}
	if l, err = net.Listen("tcp", address); err != nil {
		e := &supervise.BindError{Addr: address, Err: err}
		if a, err := netip.ParseAddrPort(address); err == nil {
			e.Holder = supervise.HolderOf(a)
		}
		return nil, e
	}
	return l, nil
}

// addresses are the issuer and the pages' origin for the bound port.
func addresses(cfg config.Daemon, bound net.Addr) (issuer, origin string, err error) {
	addr, err := netip.ParseAddrPort(bound.String())
	if err != nil {
		return "", "", fmt.Errorf("listening on %s: %w", bound, err)
	}
	issuer = cfg.Issuer
	if issuer == "" {
		issuer = "http://" + addr.String()
	}
	u, err := url.Parse(issuer)
	if err != nil {
		return "", "", err
	}
	host := cfg.PagesHost
	if port := u.Port(); port != "" {
		host = net.JoinHostPort(host, port)
	} else if u.Scheme == "http" && addr.Port() != 80 && cfg.Issuer == "" {
		host = net.JoinHostPort(host, strconv.Itoa(int(addr.Port())))
	}
	return strings.TrimRight(issuer, "/"), u.Scheme + "://" + host, nil
}

func authorityConfig(cfg config.Daemon, issuer, origin string) authority.Config {
	c := authority.DefaultConfig(issuer, origin)
	c.Bearer = riskOf(cfg.BearerDecisions)
	c.RequireSignature = riskOf(cfg.RequireSignature)
	if cfg.RequireSignature == "all" {
		c.RequireSignature = detail.Low
	}
	for _, admin := range cfg.Admins {
		c.Admins = append(c.Admins, strings.ToLower(admin))
	}
	c.SelfRegistration = cfg.Mail.Registration
	c.SecondApprover, c.SecondApproverAgents = riskOf(cfg.SecondApprover), cfg.SecondApproverAgents
	c.PendingTTL, c.OnceTTL = cfg.PendingTTL, cfg.ApprovedTTL
	c.Limits = authority.Limits{
		Pending: int64(cfg.Limits.PendingPerAgent), Bytes: int64(cfg.Limits.StoredPerAgent),
		Creations: float64(cfg.Limits.CreationsPerSecond), Waits: cfg.Limits.WaitsPerAgent,
		OwnerFactor: int64(cfg.Limits.OwnerFactor),
	}
	for _, allow := range cfg.DDISA.Allow {
		for _, client := range allow.Clients {
			c.Allowed = append(c.Allowed, authority.AllowedService{Domain: allow.Domain, Client: client})
		}
	}
	for _, client := range cfg.Clients {
		c.Clients = append(c.Clients, authority.ClientMetadata{ID: client.ID, Name: client.Name, RedirectURIs: client.RedirectURIs})
	}
	return c
}

// proxiesOf are whom the authority believes about who calls.
func proxiesOf(cfg config.Daemon) (httpapi.Proxies, error) {
	out := httpapi.Proxies{Forwarded: cfg.ProxyHeader == "forwarded"}
	for _, text := range cfg.TrustedProxies {
		prefix, err := config.Prefix(text)
		if err != nil {
			return out, err
		}
		out.Trusted = append(out.Trusted, prefix)
	}
	return out, nil
}

// riskOf reads a level that Validate has accepted; "none", "all" and "" are no
// level.
func riskOf(s string) detail.Risk {
	r, err := detail.ParseRisk(s)
	if err != nil {
		return detail.Unrated
	}
	return r
}

func newNotifier(cfg config.Daemon, log *slog.Logger) (*notify.Notifier, error) {
	self, err := notify.Self()
	if err != nil {
		return nil, err
	}
	return notify.New(notify.Config{
		Command: cfg.Notify.Command, ShowCommand: cfg.Notify.ShowCommand, Limit: cfg.Notify.Limit,
		Supervisor: self, Getenv: os.Getenv, Log: log,
	})
}

// cardOf is what a notification may say of a request.
func cardOf(g grant.Grant, origin string) notify.Card {
	c := notify.Card{
		GrantID: g.ID, ApproveURL: origin + "/grants/" + g.ID, Agent: g.Request.Requester, Owner: g.Owner,
		Risk: g.Risk.String(), Command: strings.Join(g.Request.Command, " "),
	}
	if reading.CheckArgv(g.Request.Command) == nil {
		c.Summary = g.Request.Requester + " asks to run " + reading.Base(g.Request.Command[0])
	}
	if to := g.Request.Connect; to != nil {
		c.Command = to.Network().Mode()
		c.Summary = g.Request.Requester + " asks to " + c.Command
	}
	return c
}

// keepCheckpoint remembers the log's head; that it could not is no reason to
// stop, since the log itself is safe.
func keepCheckpoint(path, text string, log *slog.Logger) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = config.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		log.Warn("the last checkpoint could not be kept; a restored database may go unnoticed here", "err", err)
	}
}

// managementToken comes from a file or the environment, never from argv.
func (s *settings) managementToken() (string, error) {
	const variable = "VOGT_MANAGEMENT_TOKEN"
	token, from := os.Getenv(variable), variable
	if s.managementFile != "" {
		b, err := config.ReadTrusted(s.managementFile)
		if err != nil {
			return "", err
		}
		token, from = strings.TrimSpace(string(b)), s.managementFile
	} else if token == "" {
		return "", nil // there is no management
	}
	if len(token) < 16 {
		return "", fmt.Errorf("%s: the management token has %d characters, want at least 16", from, len(token))
	}
	return token, nil
}
