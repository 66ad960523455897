// Package httpapi is the authority's HTTP interface for programs: the grants
// API as unmodified OpenApe clients speak it, and what Vogt adds.
//
// It owns addresses, hosts and origins, the reading of bodies, and the writing
// of answers and problem documents (RFC 9457). It leaves out every decision,
// which is the authority's, and everything that a person sees, which is the
// business of package pages.
package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/openapi"
)

// Config is the interface's surroundings.
type Config struct {
	Authority  *authority.Authority
	Pages      http.Handler // serves the pages' host
	Management string       // management token, "" for none
	Version    string
	Bearer     string // the bearer_decisions switch, as written
	Log        *slog.Logger
	// Click verifies the proof of a click, see pages.VerifyCall. Without it no
	// page changes anything here.
	Click func(key []byte, call Click, now time.Time) error
	// Proxies are the addresses that are believed when they name the client.
	Proxies Proxies
	// Rates bound the calls by address and by principal; the zero value is
	// DefaultRates.
	Rates Rates
	// Origins are those of foreign pages that may call the interface with a bearer.
	Origins []string
	Push    Push
}

type server struct {
	Config
	issuerHost, pagesHost     string
	issuerOrigin, pagesOrigin string
	discovery                 []byte
	calls                     *calls
	bodies                    *bodies
	shapes                    func() []api.Shape // read once, when somebody asks
	rates                     *rates
	mux                       *http.ServeMux
	pagesMux                  *http.ServeMux      // what signed-in pages may call
	operations                []openapi.Operation // as they are wired
	describing                func() ([]byte, error)
}

// New returns the handler of the authority's one listening socket. It answers
// to exactly two names: the issuer's and the pages'.
func New(c Config) (http.Handler, error) {
	cfg := c.Authority.Config()
	issuer, err := url.Parse(cfg.Issuer)
	if err != nil || issuer.Host == "" {
		return nil, fmt.Errorf("issuer %q is not an address", cfg.Issuer)
	}
	pages, err := url.Parse(cfg.PagesOrigin)
	if err != nil || pages.Host == "" {
		return nil, fmt.Errorf("pages origin %q is not an address", cfg.PagesOrigin)
	}
	s := &server{
		Config: c, issuerHost: issuer.Host, pagesHost: pages.Host,
		issuerOrigin: cfg.Issuer, pagesOrigin: cfg.PagesOrigin, mux: http.NewServeMux(), pagesMux: http.NewServeMux(),
		calls: newCalls(), bodies: newBodies(), rates: newRates(c.Rates),
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.discovery, err = json.Marshal(discovery(cfg.Issuer)); err != nil {
		return nil, err
	}
	s.shapes = sync.OnceValue(s.Authority.Shapes)
	s.routes()
	s.describing = s.document()
	return s, nil
}

// ServeHTTP chooses by host. Cookies and passkeys ignore ports and DNS can be
// made to point anywhere, so a name that is not ours is refused outright.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.recover(w, r)
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if strings.HasPrefix(s.issuerOrigin, "https:") {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	switch {
	case strings.EqualFold(r.Host, s.pagesHost) && s.Pages != nil:
		if !s.admit(w, r) {
			return
		}
		// The pages have addresses below /api/ of their own.
		if _, ours := s.pagesMux.Handler(r); ours != "" {
			s.servePagesAPI(w, r)
			return
		}
		s.markPages(r)
		s.Pages.ServeHTTP(w, r)
	case strings.EqualFold(r.Host, s.issuerHost):
		s.serveAPI(w, r)
	default:
		writeProblem(w, &authority.Error{
			Status: http.StatusMisdirectedRequest, Title: "This authority does not go by that name",
			Detail: "It is reached at " + s.issuerOrigin + ", its pages at " + s.pagesOrigin + ".",
		})
	}
}

func (s *server) serveAPI(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	if !s.crossOrigin(w, r) || !s.admit(w, r) {
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *server) recover(w http.ResponseWriter, r *http.Request) {
	p := recover()
	switch p {
	case nil:
		return
	case http.ErrAbortHandler:
		panic(p) // the connection is to end without an answer's end
	}
	s.Log.Error("a handler failed", "panic", p, "method", r.Method, "path", routeOf(r), "stack", string(debug.Stack()))
	writeProblem(w, &authority.Error{Status: 500, Title: "The authority failed", Detail: "The authority's log file has the cause."})
}

// call is one request with what every handler needs.
type call struct {
	http.ResponseWriter
	*http.Request
	s     *server
	actor authority.Actor
	ends  []func() // run when the call ends
	raw   []byte   // the body, where it was read already
	read  bool
}

type handler func(c *call) error

// handle wires a handler: who calls is found out here, for all of them. What it
// does is described beside it (see describe.go).
func (s *server) handle(pattern string, fn handler, a ...about) {
	s.describe(pattern, false, a)
	s.wire(pattern, fn)
}

func (s *server) wire(pattern string, fn handler) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c := &call{ResponseWriter: w, Request: r, s: s}
		defer func() {
			for _, end := range c.ends {
				end()
			}
		}()
		err := c.authenticate()
		if err == nil {
			err = fn(c)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// signedIn wires a handler that answers nobody without a login.
func (s *server) signedIn(pattern string, fn handler, a ...about) {
	s.describe(pattern, true, a)
	s.wire(pattern, func(c *call) error {
		if c.actor.Means == authority.Anonymous {
			return &authority.Error{
				Status: 401, Kind: "unauthorized", Title: "Not logged in", Detail: "The call carries no login.", Hint: "Log in: vogt login.",
			}
		}
		return fn(c)
	})
}

// authenticate reads the bearer, if there is one. A bearer that is not valid
// is an error even where none is needed: a caller who believes to be logged
// in must not be treated as a stranger silently.
func (c *call) authenticate() error {
	raw, ok := bearer(c.Request)
	if !ok || strings.HasSuffix(c.URL.Path, "/consume") {
		return nil
	}
	if actor, ok := authority.AuthenticateManagement(raw, c.s.Management); ok {
		c.actor = actor
		markKnown(c.Request)
		return c.s.admitPrincipal(c)
	}
	if strings.HasPrefix(c.URL.Path, "/api/admin/") {
		return c.s.failedBearer(c.Request, &authority.Error{Status: 403, Kind: "forbidden", Title: "Invalid management token"})
	}
	if err := c.noteCheckpoint(); err != nil {
		return err
	}
	actor, err := c.s.Authority.Authenticate(c.Context(), raw)
	if err != nil {
		return c.s.failedBearer(c.Request, err)
	}
	c.actor = actor
	markKnown(c.Request)
	if err := c.s.admitPrincipal(c); err != nil {
		return err
	}
	if actor.Agent() {
		leave, err := c.s.calls.enter(actor.Principal.Email)
		if err != nil {
			return err
		}
		c.ends = append(c.ends, leave)
	}
	text, err := c.s.Authority.Checkpoint(c.Context(), 0)
	if err != nil {
		return err
	}
	c.Header().Set(api.CheckpointHeader, base64.StdEncoding.EncodeToString([]byte(text)))
	return nil
}

// Header is the response's; the request's is c.Request.Header.
func (c *call) Header() http.Header { return c.ResponseWriter.Header() }

func (c *call) noteCheckpoint() error {
	h := c.Request.Header.Get(api.CheckpointHeader)
	if h == "" || len(h) > 4096 {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(h)
	if err != nil {
		return nil // nothing follows from a header that is not ours
	}
	_, err = c.s.Authority.NoteCheckpoint(c.Context(), string(text))
	return err
}

func bearer(r *http.Request) (string, bool) {
	scheme, rest, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(rest), true
}

// body reads JSON into v. No body is the same as {}: clients send a content
// type without one. Unknown fields are ignored, as the wire demands.
func (c *call) body(v any) error {
	b, err := c.readBody()
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return nil
	}
	// A content type other than JSON is what a foreign form could send.
	if t := c.Request.Header.Get("Content-Type"); t != "" {
		if mt, _, err := mime.ParseMediaType(t); err != nil || mt != "application/json" {
			return &authority.Error{Status: 415, Title: "The body must be JSON", Detail: "Send Content-Type: application/json."}
		}
	}
	// The decoder would replace what is not UTF-8, and something else would be
	// shown and decided than was sent.
	if !utf8.Valid(b) {
		return &authority.Error{Status: 400, Title: "The body is not valid UTF-8", Detail: "Arguments that are not UTF-8 cannot be shown as they would run."}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return &authority.Error{Status: 400, Title: "The body is not the JSON that is expected here", Detail: describeJSON(err)}
	}
	return nil
}

func describeJSON(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("At byte %d: %v.", syntax.Offset, syntax)
	case errors.As(err, &kind):
		return fmt.Sprintf("Field %q: want %v, got %s.", kind.Field, kind.Type, kind.Value)
	}
	return err.Error() + "."
}

func (c *call) ok(status int, v any) error { return writeJSON(c.ResponseWriter, status, v) }

func writeJSON(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // the caller may be gone; there is nobody to tell
	return nil
}

// errorBase is the URI under which the wire's error types are named.
const errorBase = "https://openape.org/errors/"

func problemOf(e *authority.Error) api.Problem {
	p := api.Problem{Type: "about:blank", Title: e.Title, Status: e.Status, Detail: e.Detail, Hint: e.Hint}
	if e.Kind != "" {
		p.Type = errorBase + e.Kind
	}
	// Clients print the detail alone, so it must be able to stand alone.
	if p.Detail == "" {
		p.Detail = p.Title + "."
	}
	if p.Hint != "" {
		p.Detail = sentence(p.Detail) + " " + p.Hint
	}
	return p
}

// sentence ends s with a full stop, if it has no end of its own.
func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
}

func writeProblem(w http.ResponseWriter, e *authority.Error) {
	h := w.Header()
	b, err := json.Marshal(problemOf(e))
	if err != nil {
		b = []byte(`{"type":"about:blank","title":"Internal error","status":500}`)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	if e.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(e.Retry))
	}
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(e.Status)
	_, _ = w.Write(b)
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		// The caller left, and nobody reads this, or the authority is ending:
		// without an answer the server would send an empty success.
		err = &authority.Error{
			Status: http.StatusServiceUnavailable, Title: "The authority is stopping",
			Detail: "The call was ended without an answer.", Hint: "Try again in a moment.", Retry: 1,
		}
	}
	var e *authority.Error
	if !errors.As(err, &e) {
		s.Log.Error("a call failed", "err", err, "method", r.Method, "path", routeOf(r))
		e = &authority.Error{Status: 500, Title: "The authority failed", Detail: "The authority's log file has the cause."}
	}
	writeProblem(w, e)
}

// routeOf is the address of a call for the log, without the values in it: some are
// secrets.
func routeOf(r *http.Request) string {
	if r.Pattern != "" {
		return r.Pattern
	}
	return "unknown"
}
