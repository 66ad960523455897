// Package pages is the authority's web interface: set-up, registration, sign-in,
// inbox, cards, changes of trust, agents, patterns, account, activity and what is in
// force,
// as server-rendered HTML with one small script.
//
// It owns what a person sees and the proof that a person clicked: markup,
// wording in two languages, the content security policy, and the check that a
// deciding call was signed by the key of a signed-in page. It leaves out who
// may decide, passkey verification and storage, which a Backend does; the
// JSON interface for programs (api); and notifications.
//
// A cookie alone reads. Every call that decides or narrows must come from the
// pages' own origin and carry a Click. Cookies and WebAuthn RP IDs ignore
// ports, so the exact origin, port included, is compared everywhere.
package pages

import (
	"crypto/rand"
	"embed"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"
)

//go:embed assets templates messages
var files embed.FS

// Config is what the pages know about their surroundings. PagesOrigin, Issuer
// and Clock are required.
type Config struct {
	PagesOrigin string // scheme, host and port, exactly as a browser writes its Origin
	Issuer      string // the API's address, for display
	Version     string
	Clock       func() time.Time
	Zone        *time.Location // of the times written by the server; nil is UTC
	Random      io.Reader      // nil is crypto/rand
	Logger      *slog.Logger   // what people are not shown; nil discards
	// PushKey is what browsers subscribe to push messages with (RFC 8292, 3.2);
	// empty where there are none.
	PushKey string
	// Recovery says that people can recover an account by mail.
	Recovery bool
	// Heartbeat is how often an open event stream says that it is alive; the
	// script calls itself "not live" after two and a half of them. Zero is 15 s.
	Heartbeat time.Duration
}

type server struct {
	cfg         Config
	backend     Backend
	host        string // of PagesOrigin
	secure      bool   // PagesOrigin is https
	languages   map[string]*language
	templates   map[string]map[string]*view // language, then page
	assets      map[string]*asset           // by address
	missedRules []missedRule
}

// New returns the handler for everything under the pages' host. It refuses
// other hosts with 421; redirecting people from the issuer's address is the
// caller's business.
func New(cfg Config, backend Backend) (http.Handler, error) {
	origin, err := url.Parse(cfg.PagesOrigin)
	switch {
	case err != nil:
		return nil, fmt.Errorf("pages: origin: %w", err)
	case origin.Scheme != "http" && origin.Scheme != "https", origin.Scheme+"://"+origin.Host != cfg.PagesOrigin:
		return nil, fmt.Errorf("pages: origin %q: want scheme, host and port, as in http://vogt.localhost:8648", cfg.PagesOrigin)
	case cfg.Clock == nil:
		return nil, fmt.Errorf("pages: no clock")
	case !backend.complete():
		return nil, fmt.Errorf("pages: a part of the backend is missing")
	}
	if cfg.Zone == nil {
		cfg.Zone = time.UTC
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	s := &server{
		cfg: cfg, backend: backend, host: origin.Host, secure: origin.Scheme == "https",
		languages: map[string]*language{}, templates: map[string]map[string]*view{}, assets: map[string]*asset{},
	}
	for _, tag := range languages {
		l, err := loadLanguage(files, tag)
		if err != nil {
			return nil, fmt.Errorf("pages: %w", err)
		}
		s.languages[tag] = l
		names, err := s.addAssets(l)
		if err != nil {
			return nil, fmt.Errorf("pages: %w", err)
		}
		if s.templates[tag], err = parseTemplates(l, names); err != nil {
			return nil, fmt.Errorf("pages: %w", err)
		}
	}
	s.missedRules = missedRules(s.languages[languages[0]])
	return s.frame(s.routes()), nil
}

// routes is the whole surface. A GET is rendered by show, needs a session
// where it says so, and changes nothing; a POST goes through one of three
// frames, of which deciding demands a session and its click. The exception is
// GET /authorize, which by OAuth gives a code for what was agreed to before, and
// GET /authorize-cross-sp, which does so for what was signed.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", s.serveAsset)
	mux.HandleFunc("GET /sw.js", s.serveWorker)

	mux.HandleFunc("GET /setup", s.show(anyone, s.setUpPage))
	mux.HandleFunc("GET /register", s.show(anyone, s.registerPage))
	mux.HandleFunc("GET /recover", s.show(anyone, s.recoverPage))
	mux.HandleFunc("GET /login", s.show(anyone, s.loginPage))
	mux.HandleFunc("GET /{$}", s.show(signedIn, s.inboxPage))
	mux.HandleFunc("GET /grants/{id}", s.show(signedIn, s.cardPage))
	mux.HandleFunc("GET /grant-approval", s.show(anyone, s.grantApproval))
	mux.HandleFunc("GET /trust/{id}", s.show(signedIn, s.trustPage))
	mux.HandleFunc("GET /enroll", s.show(signedIn, s.enrollPage))
	mux.HandleFunc("GET /agents", s.show(signedIn, s.agentsPage))
	mux.HandleFunc("GET /agents/{email}", s.show(signedIn, s.agentPage))
	mux.HandleFunc("GET /patterns", s.show(signedIn, s.patternsPage))
	mux.HandleFunc("GET /patterns/new", s.show(signedIn, s.newPatternPage))
	mux.HandleFunc("GET /patterns/suggestions", s.show(signedIn, s.suggestionsPage))
	mux.HandleFunc("GET /patterns/safe", s.show(signedIn, s.safePage))
	mux.HandleFunc("GET /activity", s.show(signedIn, s.activityPage))
	mux.HandleFunc("GET /health", s.show(signedIn, s.healthPage))
	mux.HandleFunc("GET /account", s.show(signedIn, s.accountPage))
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("GET /authorize-cross-sp", s.authorizeBridge)
	mux.HandleFunc("GET /consent", s.show(signedIn, s.consentPage))
	mux.HandleFunc("GET /denied", s.show(signedIn, s.deniedPage))
	mux.HandleFunc("GET /api/authorize/consent", s.read(s.consentAsked))
	mux.HandleFunc("GET /api/authorize/denied", s.read(s.deniedAsked))
	mux.HandleFunc("GET /", s.show(anyone, s.missingPage))

	mux.HandleFunc("GET /p/events", s.events)
	mux.HandleFunc("GET /p/setup/state", s.setUpState)
	mux.HandleFunc("POST /p/setup/options", s.open(s.setUpOptions))
	mux.HandleFunc("POST /p/setup/verify", s.open(s.setUpVerify))
	mux.HandleFunc("POST /p/register/options", s.open(s.registerOptions))
	mux.HandleFunc("POST /p/register/verify", s.open(s.registerVerify))
	mux.HandleFunc("POST /p/login/options", s.open(s.loginOptions))
	mux.HandleFunc("POST /p/login/verify", s.open(s.loginVerify))
	mux.HandleFunc("POST /p/logout", s.leaving(s.logout))

	mux.HandleFunc("POST /p/grants/{id}/passkey", s.deciding(s.cardPasskey))
	mux.HandleFunc("POST /p/grants/{id}/decision", s.deciding(s.cardDecision))
	mux.HandleFunc("POST /p/grants/{id}/revoke", s.deciding(s.cardRevoke))
	mux.HandleFunc("POST /p/trust", s.deciding(s.trustPrepare))
	mux.HandleFunc("POST /p/trust/{id}/passkey", s.deciding(s.trustPasskey))
	mux.HandleFunc("POST /p/trust/{id}/confirm", s.deciding(s.trustConfirm))
	mux.HandleFunc("POST /p/trust/{id}/decline", s.deciding(s.trustDecline))
	mux.HandleFunc("POST /p/panic", s.deciding(s.panicNow))
	mux.HandleFunc("POST /p/agents/{email}/{act}", s.deciding(s.agentChange))
	mux.HandleFunc("POST /p/patterns/{id}/revoke", s.deciding(s.patternRevoke))
	mux.HandleFunc("POST /p/safe/off", s.deciding(s.safeOff))
	mux.HandleFunc("POST /p/groups/{name}/leave", s.deciding(s.groupLeave))
	mux.HandleFunc("POST /p/sessions/{id}/revoke", s.deciding(s.sessionRevoke))
	mux.HandleFunc("POST /p/services/{id}/end", s.deciding(removal(s.backend.Services.EndService)))
	mux.HandleFunc("POST /p/consents/{id}/withdraw", s.deciding(removal(s.backend.Services.WithdrawConsent)))
	mux.HandleFunc("POST /api/authorize/consent", s.deciding(s.consentAnswer))
	mux.HandleFunc("POST /api/authorize/denied", s.deciding(s.deniedAnswer))
	mux.HandleFunc("POST /p/keys", s.deciding(s.keyAdd))
	mux.HandleFunc("POST /p/keys/{id}/remove", s.deciding(removal(s.backend.Removals.RemoveKey)))
	mux.HandleFunc("POST /p/passkeys/{id}/remove", s.deciding(removal(s.backend.Removals.RemovePasskey)))
	return mux
}

// policy allows this origin's own files and nothing else. DOM sinks accept
// only what the script's one Trusted Types policy made.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; " +
	"require-trusted-types-for 'script'; trusted-types vogt"

// frame sets what every answer carries and refuses other hosts.
func (s *server) frame(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
		h.Set("Cache-Control", "no-store")
		if r.Host != s.host {
			http.Error(w, "These pages live at "+s.cfg.PagesOrigin+".", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
