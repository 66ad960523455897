package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"vogt/internal/api"
)

// visit is one request of one browser.
type visit struct {
	*http.Request
	formatter
	w       http.ResponseWriter
	session Session // zero where nobody is signed in
	cookie  string
	theme   string // "light", "dark" or "" for the system's
	keysOff bool   // Ctrl+Enter and Esc do not answer
}

// page is what a handler wants shown.
type page struct {
	view    string
	status  int // zero is 200
	title   template.HTML
	section string // of the navigation
	body    string // classes
	back    string // address of the arrow on small screens
	data    any
}

// goTo is a page that is elsewhere.
type goTo string

func (goTo) Error() string { return "see other" }

type access bool

const (
	anyone   access = false
	signedIn access = true
)

// visit reads who comes and how they like to read.
func (s *server) visit(w http.ResponseWriter, r *http.Request) (*visit, error) {
	v := &visit{Request: r, w: w}
	tag := s.preference(w, r, "lang", languages)
	if tag == "" {
		tag = preferred(r.Header.Get("Accept-Language"))
	}
	v.formatter = formatter{language: s.languages[tag], now: s.cfg.Clock(), zone: s.cfg.Zone}
	if v.theme = s.preference(w, r, "theme", []string{"light", "dark", "system"}); v.theme == "system" {
		v.theme = ""
	}
	v.keysOff = s.preference(w, r, "keys", []string{"on", "off"}) == "off"
	c, err := r.Cookie(s.cookieName())
	if err != nil {
		return v, nil
	}
	session, err := s.backend.Sessions.Session(r.Context(), c.Value)
	if errors.Is(err, ErrNoSession) {
		return v, nil
	}
	v.session, v.cookie = session, c.Value
	return v, err
}

func (v *visit) signedIn() bool { return v.session.Person.Email != "" }

// preference reads a choice of display from the query, which a cookie then
// keeps, else from that cookie. Both are untrusted: only known values count.
func (s *server) preference(w http.ResponseWriter, r *http.Request, name string, allowed []string) string {
	find := func(value string) string {
		for _, a := range allowed {
			if value == a {
				return a
			}
		}
		return ""
	}
	if chosen := find(r.URL.Query().Get(name)); chosen != "" && r.Method == http.MethodGet {
		http.SetCookie(w, &http.Cookie{Name: "vogt_" + name, Value: chosen, Path: "/", MaxAge: 31536000,
			HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode})
		return chosen
	}
	if c, err := r.Cookie("vogt_" + name); err == nil {
		return find(c.Value)
	}
	return ""
}

// cookieName binds the cookie to host and TLS where the browser can do that.
func (s *server) cookieName() string {
	if s.secure {
		return "__Host-vogt_session"
	}
	return "vogt_session"
}

func (s *server) setSession(w http.ResponseWriter, in SignedIn) {
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: in.Cookie, Path: "/", Expires: in.Expires,
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode})
}

func (s *server) clearSession(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Path: "/", MaxAge: -1,
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode})
}

// show frames a page.
func (s *server) show(who access, handler func(*visit) (*page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := s.visit(w, r)
		var p *page
		switch {
		case err != nil:
		case who == signedIn && !v.signedIn():
			err = goTo("/login?next=" + url.QueryEscape(r.URL.RequestURI()))
		default:
			p, err = handler(v)
		}
		var elsewhere goTo
		if errors.As(err, &elsewhere) {
			http.Redirect(w, r, string(elsewhere), http.StatusSeeOther)
			return
		}
		if err != nil {
			p = s.errorPage(v, err)
		}
		if err := s.render(v, p); err != nil {
			if s.gone(r, err) {
				w.WriteHeader(statusGone)
				return
			}
			s.cfg.Logger.Error("pages: rendering", "page", p.view, "error", err)
			http.Error(w, "Internal error. The authority's log says more.", http.StatusInternalServerError)
		}
	}
}

// fault is how an error is told: by status, kind and a message of the catalog.
type fault struct {
	status int
	kind   string // last part of the problem's type
	key    string
}

// statusGone answers a browser that left before its answer was ready. Nobody
// reads it but a proxy's log, where 499 has long meant that.
const statusGone = 499

// gone reports whether err only says that the browser has left.
func (s *server) gone(r *http.Request, err error) bool {
	if !errors.Is(err, context.Canceled) || r.Context().Err() == nil {
		return false
	}
	s.cfg.Logger.Debug("pages: the browser left", "method", r.Method, "path", r.URL.Path)
	return true
}

func (s *server) fault(r *http.Request, err error) fault {
	if s.gone(r, err) {
		return fault{statusGone, "gone", "err.internal"}
	}
	for _, known := range []struct {
		err error
		fault
	}{
		{ErrNoSession, fault{401, "signed-out", "err.signedout"}},
		{errNoClick, fault{403, "no-click", "err.noclick"}},
		{errOrigin, fault{403, "origin", "err.origin"}},
		{ErrProof, fault{403, "proof", "err.proof"}},
		{ErrNoPasskey, fault{403, "no-passkey", "err.nopasskey"}},
		{ErrLastWay, fault{403, "last-way", "err.lastway"}},
		{ErrForbidden, fault{403, "forbidden", "err.forbidden"}},
		{ErrNotFound, fault{404, "not-found", "err.missing"}},
		{ErrChanged, fault{409, "changed", "err.changed"}},
		{ErrClosed, fault{409, "closed", "err.closed"}},
		{ErrTaken, fault{409, "taken", "err.taken"}},
		{ErrRefused, fault{409, "refused", "err.refused"}},
		{ErrBusy, fault{429, "busy", "err.busy"}},
		{ErrUsed, fault{410, "used", "err.expired"}},
		{ErrExpired, fault{410, "expired", "err.expired"}},
		{ErrWaits, fault{425, "too-early", "err.early"}},
		{errTooLarge, fault{413, "too-large", "err.toolarge"}},
		{errMediaType, fault{415, "media-type", "err.invalid"}},
		{errBadKey, fault{400, "key", "err.key"}},
		{ErrInvalid, fault{400, "invalid", "err.invalid"}},
		{ErrService, fault{400, "service", "err.service"}},
		{ErrRedirect, fault{400, "redirect", "err.redirect"}},
		{ErrAsked, fault{400, "asked", "err.asked"}},
		{ErrAway, fault{502, "away", "err.away"}},
	} {
		if errors.Is(err, known.err) {
			s.cfg.Logger.Info("pages: refused", "method", r.Method, "path", r.URL.Path, "error", err)
			return known.fault
		}
	}
	s.cfg.Logger.Error("pages: failed", "method", r.Method, "path", r.URL.Path, "error", err)
	return fault{500, "internal", "err.internal"}
}

var (
	errNoClick   = errors.New("the call carries no valid click")
	errOrigin    = errors.New("the call does not come from these pages")
	errTooLarge  = errors.New("the body is too large")
	errMediaType = errors.New("the body is not application/json")
	errBadKey    = errors.New("not a usable public key")
)

func (s *server) errorPage(v *visit, err error) *page {
	f := s.fault(v.Request, err)
	return &page{view: "error", status: f.status, title: v.must("err.title"), data: struct {
		Status int
		Key    string
	}{f.status, f.key}}
}

// must is text for keys without arguments, which a test looks up in every
// catalog.
func (f *formatter) must(key string) template.HTML {
	text, err := f.text(key)
	if err != nil {
		return template.HTML(template.HTMLEscapeString(key))
	}
	return text
}

func (s *server) missingPage(v *visit) (*page, error) { return nil, ErrNotFound }

// call is a POST that passed its frame.
type call struct {
	*visit
	body  []byte
	click Click // verified where the frame demands one
}

// maxBody holds a passkey's response or a note with room to spare.
const maxBody = 64 << 10

// post frames every POST: it must be JSON, come from this very origin, and be
// small. What the handler returns is the JSON answer; nil is {}.
func (s *server) post(who access, handler func(*call) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := s.visit(w, r)
		var answer any
		if err == nil {
			c := &call{visit: v}
			if err = s.admit(c, who); err == nil {
				answer, err = handler(c)
			}
		}
		if err != nil {
			s.problem(v, err)
			return
		}
		if answer == nil {
			answer = struct{}{}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			s.cfg.Logger.Info("pages: writing an answer", "path", r.URL.Path, "error", err)
		}
	}
}

func (s *server) admit(c *call, who access) error {
	site := c.Header.Get("Sec-Fetch-Site")
	if c.Header.Get("Origin") != s.cfg.PagesOrigin || site != "" && site != "same-origin" {
		return errOrigin
	}
	if kind, _, err := mime.ParseMediaType(c.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return errMediaType
	}
	if who == signedIn && !c.signedIn() {
		return ErrNoSession
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.Body, maxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return errTooLarge
	}
	c.body = body
	return err
}

// open frames calls that begin a session: they carry a passkey's response or
// ask for its options.
func (s *server) open(handler func(*call) (any, error)) http.HandlerFunc {
	return s.post(anyone, handler)
}

// leaving frames signing out, which works without the key, too.
func (s *server) leaving(handler func(*call) (any, error)) http.HandlerFunc {
	return s.post(signedIn, handler)
}

// deciding frames calls that change something. Each is signed, origin, path
// and body included, by the key that the page made at sign-in.
func (s *server) deciding(handler func(*call) (any, error)) http.HandlerFunc {
	return s.post(signedIn, func(c *call) (any, error) {
		issued, signature, err := parseClickHeader(c.Header.Get(ClickHeader))
		if err != nil {
			return nil, errors.Join(errNoClick, err)
		}
		c.click = Click{Origin: s.cfg.PagesOrigin, Path: c.URL.EscapedPath(), Body: c.body, Issued: issued, Signature: signature}
		if err := VerifyClick(c.session.ProofKey, c.click, c.now); err != nil {
			return nil, errors.Join(errNoClick, err)
		}
		return handler(c)
	})
}

// decode reads the body strictly: the script and these handlers are one
// program, so an unknown field is a mistake or an attempt.
func (c *call) decode(into any) error {
	d := json.NewDecoder(bytes.NewReader(c.body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return errors.Join(ErrInvalid, err)
	}
	// More would take a bracket that closes nothing for the end.
	if _, err := d.Token(); err != io.EOF {
		return ErrInvalid
	}
	return nil
}

// problemType prefixes the kinds that the script branches on.
const problemType = "urn:vogt:pages:"

func (s *server) problem(v *visit, err error) {
	f := s.fault(v.Request, err)
	h := v.w.Header()
	h.Set("Content-Type", "application/problem+json")
	v.w.WriteHeader(f.status)
	body := api.Problem{Type: problemType + f.kind, Title: http.StatusText(f.status), Status: f.status, Detail: plain(v.must(f.key))}
	if bad, ok := errors.AsType[*keyError](err); ok {
		body.Detail += " " + bad.reason()
	}
	if refused, ok := errors.AsType[*Refusal](err); ok {
		body.Detail += " " + refused.Reason
	}
	if err := json.NewEncoder(v.w).Encode(body); err != nil {
		s.cfg.Logger.Info("pages: writing a problem", "path", v.URL.Path, "error", err)
	}
}

// plain takes the tags and entities out of a catalog message, for JSON.
func plain(h template.HTML) string {
	return unescape.Replace(string(h))
}

var unescape = strings.NewReplacer("<b>", "", "</b>", "", "<code>", "", "</code>", "",
	"&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&amp;", "&")

// frameData is what every template gets.
type frameData struct {
	*visit
	Lang, Other  string // languages: of the page, and the one offered in the footer
	OtherAddress string
	Theme        string
	KeysOff      bool
	Title        template.HTML
	Page         string // name of the view
	Gate         bool   // a page without the sections: sign-in, set-up, errors
	Section      string
	BodyClass    string
	Back         string
	SignedIn     bool
	Session      Session
	Waiting      int
	Log          LogState
	Version      string
	Origin, Host string
	Issuer       string
	NowMillis    int64
	Heartbeat    int64 // milliseconds
	Data         any
}

func (s *server) render(v *visit, p *page) error {
	tag := v.language.tag
	other := languages[0]
	if tag == other {
		other = languages[1]
	}
	query := v.URL.Query()
	query.Set("lang", other)
	f := frameData{
		visit: v, Lang: tag, Other: other, OtherAddress: v.URL.EscapedPath() + "?" + query.Encode(), Theme: v.theme, KeysOff: v.keysOff,
		Page: p.view, Gate: p.section == "", Title: p.title, Section: p.section, BodyClass: p.body, Back: p.back,
		SignedIn: v.signedIn(), Session: v.session, Version: s.cfg.Version, Origin: s.cfg.PagesOrigin, Host: s.host, Issuer: s.cfg.Issuer,
		NowMillis: v.now.UnixMilli(), Heartbeat: s.cfg.Heartbeat.Milliseconds(), Data: p.data,
	}
	if f.SignedIn {
		inbox, err := s.backend.Cards.Inbox(v.Context(), v.session, 0)
		if err != nil {
			return err
		}
		f.Waiting = inbox.Total
		if f.Log, err = s.backend.Log.LogState(v.Context()); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	if err := s.templates[tag][p.view].execute(&out, &f); err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", tag)
	if p.status != 0 {
		v.w.WriteHeader(p.status)
	}
	_, err := out.WriteTo(v.w)
	if err != nil {
		s.cfg.Logger.Info("pages: writing a page", "page", p.view, "error", err)
	}
	return nil
}

// Clock, Moment and Span write times in templates.
func (f *frameData) Clock(t time.Time) template.HTML { return f.clockTime(t) }

// Moment is the time of day, with the date where it is not today.
func (f *frameData) Moment(t time.Time) (template.HTML, error) { return f.moment(t) }

// Since is the moment, or the word for never.
func (f *frameData) Since(t time.Time) (template.HTML, error) {
	if t.IsZero() {
		return f.text("never")
	}
	return f.moment(t)
}

// Me reports whether p is the person who reads.
func (f *frameData) Me(p Person) bool { return p.Email != "" && p.Email == f.session.Person.Email }

// Now is the moment of the visit.
func (f *frameData) Now() time.Time { return f.now }
