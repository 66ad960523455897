package httpapi

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"vogt/internal/authority"
)

// Click is what a signed-in page signs of a call: where it goes, with what body.
type Click struct {
	Header string // as it came in ClickHeader
	Origin string // of the pages
	Path   string // as requested; after the method and a space where that is not POST
	Body   []byte
}

// ClickHeader carries the proof of a click, as on the pages' own calls.
const ClickHeader = "Vogt-Click"

// servePagesAPI serves, on the pages' host, what a browser's session may call.
// A cookie alone reads. Whatever changes something comes from the pages' own
// origin; and except where somebody signs in by it, it carries a click, which
// the session's own key signed.
func (s *server) servePagesAPI(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	foreign := origin != "" && origin != s.pagesOrigin || site == "cross-site" || site == "same-site"
	if foreign || !reads && origin != s.pagesOrigin {
		writeProblem(w, &authority.Error{
			Status: 403, Kind: "forbidden", Title: "The call does not come from these pages",
			Detail: "On this host only pages of " + s.pagesOrigin + " call.", Hint: "Programs call " + s.issuerOrigin + ".",
		})
		return
	}
	s.pagesMux.ServeHTTP(w, r)
}

// onPages wires a handler that needs nobody to be signed in.
func (s *server) onPages(pattern string, fn handler, a ...about) {
	s.describePage(pattern, a)
	s.wirePage(pattern, fn)
}

func (s *server) wirePage(pattern string, fn handler) {
	s.pagesMux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c := &call{ResponseWriter: w, Request: r, s: s}
		defer func() {
			for _, end := range c.ends {
				end()
			}
		}()
		err := c.enterPage()
		if err == nil {
			err = fn(c)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}

// bySession wires a handler for signed-in pages, which proved the call with
// their key unless it only reads.
func (s *server) bySession(pattern string, fn handler, a ...about) {
	s.onPages(pattern, func(c *call) error {
		if err := c.needSession(); err != nil {
			return err
		}
		return fn(c)
	}, a...)
}

func (c *call) needSession() error {
	if !c.actor.Person() {
		return &authority.Error{
			Status: 401, Kind: "unauthorized", Title: "Not authenticated", Detail: "No person is signed in here.", Hint: "Sign in at " + c.s.pagesOrigin + "/login.",
		}
	}
	if c.Method != http.MethodGet && c.Method != http.MethodHead && !c.actor.Proven {
		return &authority.Error{
			Status: 403, Kind: "forbidden", Title: "A cookie alone changes nothing", Detail: "The call carries no valid click.",
			Hint: "Sign in again on this browser; its page signs what it calls.",
		}
	}
	return nil
}

// enterPage finds out who calls by the cookie, and whether the session's key
// signed the call.
func (c *call) enterPage() error {
	if _, ok := bearer(c.Request); ok {
		// No token counts on this host, even where a session would do.
		return &authority.Error{
			Status: 403, Kind: "forbidden", Title: "Invalid management token", Detail: "On this host a login token says nothing.", Hint: "Call " + c.s.issuerOrigin + " with it.",
		}
	}
	actor, err := c.s.sessionOf(c.Request)
	if err != nil || actor.Means == authority.Anonymous {
		return err
	}
	c.actor = actor
	markKnown(c.Request)
	if err := c.s.admitPrincipal(c); err != nil {
		return err
	}
	header := c.Request.Header.Get(ClickHeader)
	if header == "" || c.s.Click == nil {
		return nil
	}
	body, err := c.readBody()
	if err != nil {
		return err
	}
	c.raw, c.read = body, true
	path := c.URL.EscapedPath()
	if c.Method != http.MethodPost {
		path = c.Method + " " + path
	}
	if err := c.s.Click(actor.Session.ProofKey, Click{Header: header, Origin: c.s.pagesOrigin, Path: path, Body: body}, c.s.Authority.Now()); err != nil {
		return &authority.Error{
			Status: 403, Kind: "forbidden", Title: "The click does not fit", Detail: "It is too old, or was made for another call.", Hint: "Sign in again on this browser.",
		}
	}
	c.actor.Proven = true
	return nil
}

// sessionOf reads the session of a browser, if it has one that is still good.
func (s *server) sessionOf(r *http.Request) (authority.Actor, error) {
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return authority.Actor{}, nil
	}
	actor, err := s.Authority.AuthenticateSession(r.Context(), cookie.Value)
	var public *authority.Error
	if errors.As(err, &public) && public.Status == http.StatusUnauthorized {
		return authority.Actor{}, nil
	}
	return actor, err
}

// cookieName is that of the pages.
func (s *server) cookieName() string {
	if strings.HasPrefix(s.pagesOrigin, "https:") {
		return "__Host-vogt_session"
	}
	return "vogt_session"
}

// setSession signs the browser in.
func (c *call) setSession(value string) (authority.Actor, error) {
	a, err := c.s.Authority.AuthenticateSession(c.Context(), value)
	if err == nil {
		c.cookie(value, time.UnixMilli(a.Session.Expires))
	}
	return a, err
}

func (c *call) cookie(value string, ends time.Time) {
	cookie := &http.Cookie{
		Name: c.s.cookieName(), Value: value, Path: "/", Expires: ends, HttpOnly: true,
		Secure: strings.HasPrefix(c.s.pagesOrigin, "https:"), SameSite: http.SameSiteLaxMode,
	}
	if value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(c.ResponseWriter, cookie)
}
