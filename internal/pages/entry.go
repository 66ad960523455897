package pages

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	setUpCookie = "vogt_setup"
	setUpLives  = 10 * time.Minute
)

// browser reads the cookie that binds a set-up link to one browser.
func (v *visit) browser() string {
	c, err := v.Cookie(setUpCookie)
	if err != nil {
		return ""
	}
	return c.Value
}

// setUpPage opens the link: the first view draws the digits. Programs that
// look at addresses before people do often send HEAD; that opens nothing.
func (s *server) setUpPage(v *visit) (*page, error) {
	token := v.URL.Query().Get("token")
	browser := v.browser()
	if v.Method == http.MethodHead {
		token = ""
	}
	if browser == "" {
		raw := make([]byte, 32)
		if _, err := io.ReadFull(s.cfg.Random, raw); err != nil {
			return nil, err
		}
		browser = base64.RawURLEncoding.EncodeToString(raw)
		http.SetCookie(v.w, &http.Cookie{Name: setUpCookie, Value: browser, Path: "/", MaxAge: int(setUpLives.Seconds()),
			HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteStrictMode})
	}
	view := SetUpView{State: SetUpExpired}
	if token != "" {
		var err error
		if view, err = s.backend.SetUp.OpenSetUp(v.Context(), token, browser); err != nil {
			return nil, err
		}
	}
	protection, err := s.backend.Accounts.Protection(v.Context())
	if err != nil {
		return nil, err
	}
	switch view.State {
	case SetUpOpened, SetUpConfirmed, SetUpDone, SetUpElsewhere:
	default:
		view.State = SetUpExpired
	}
	return &page{view: "setup", title: v.must("setup.title"), data: struct {
		SetUpView
		Token      string
		Digit      []string
		Protection Protection
	}{view, token, strings.Split(view.Digits, ""), protection}}, nil
}

// setUpState is polled by the page that shows the digits.
func (s *server) setUpState(w http.ResponseWriter, r *http.Request) {
	v := &visit{Request: r, w: w}
	token, browser := r.URL.Query().Get("token"), v.browser()
	view := SetUpView{State: SetUpExpired}
	if token != "" && browser != "" {
		var err error
		if view, err = s.backend.SetUp.OpenSetUp(r.Context(), token, browser); err != nil {
			if s.gone(r, err) {
				w.WriteHeader(statusGone)
				return
			}
			s.cfg.Logger.Error("pages: set-up state", "error", err)
			http.Error(w, "{}", http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(map[string]SetUpState{"state": view.State}); err != nil {
		s.cfg.Logger.Info("pages: writing an answer", "path", r.URL.Path, "error", err)
	}
}

func (s *server) setUpOptions(c *call) (any, error) {
	var body struct {
		Token string `json:"token"`
		Name  string `json:"name"`
		Email string `json:"email"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	owner := NewOwner{Token: body.Token, Browser: c.browser(), Name: strings.TrimSpace(body.Name), Email: strings.TrimSpace(body.Email)}
	if owner.Browser == "" {
		return nil, ErrExpired
	}
	if !validName(owner.Name) || !validEmail(owner.Email) {
		return nil, ErrInvalid
	}
	return s.backend.SetUp.BeginSetUp(c.Context(), owner)
}

// validName accepts what can be shown in one line.
func validName(name string) bool {
	return name != "" && len(name) <= 200 && utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r)
	}) < 0
}

// validEmail accepts a local part, "@" and a domain of printable ASCII.
func validEmail(email string) bool {
	local, domain, ok := strings.Cut(email, "@")
	return ok && local != "" && domain != "" && len(email) <= 254 && !strings.Contains(domain, "@") &&
		plainPrefix(email) == len(email) && !strings.ContainsAny(email, " \"\\<>()[],;:")
}

type passkeyBody struct {
	Token    string          `json:"token,omitempty"`
	Ceremony string          `json:"ceremony"`
	Response json.RawMessage `json:"response"`
	ProofKey string          `json:"proof_key"` // standard base64 of SPKI
}

func (c *call) newPasskey() (NewPasskey, error) {
	var body passkeyBody
	if err := c.decode(&body); err != nil {
		return NewPasskey{}, err
	}
	key, err := base64.StdEncoding.DecodeString(body.ProofKey)
	if err != nil {
		return NewPasskey{}, errors.Join(ErrInvalid, err)
	}
	if _, err := ParseProofKey(key); err != nil {
		return NewPasskey{}, errors.Join(ErrInvalid, err)
	}
	if body.Ceremony == "" || len(body.Response) == 0 {
		return NewPasskey{}, ErrInvalid
	}
	return NewPasskey{Token: body.Token, Browser: c.browser(), Ceremony: body.Ceremony, Response: body.Response,
		ProofKey: key, Agent: c.UserAgent(), Address: c.RemoteAddr}, nil
}

// sessionAnswer names the session, so that the script can keep its key by it.
type sessionAnswer struct {
	Session string `json:"session"`
}

func (s *server) setUpVerify(c *call) (any, error) {
	p, err := c.newPasskey()
	if err != nil {
		return nil, err
	}
	if p.Browser == "" {
		return nil, ErrExpired
	}
	in, err := s.backend.SetUp.FinishSetUp(c.Context(), p)
	if err != nil {
		return nil, err
	}
	s.setSession(c.w, in)
	return sessionAnswer{in.Session.ID}, nil
}

func (s *server) loginPage(v *visit) (*page, error) {
	query := v.URL.Query()
	next := query.Get("next")
	if next == "" {
		next = query.Get("returnTo") // as DDISA calls it
	}
	next = localPath(next)
	hint := query.Get("login_hint")
	if !validEmail(hint) {
		hint = ""
	}
	return &page{view: "login", title: v.must("login.title"), data: struct {
		Next          string
		Card, Service bool
		Hint          string
		Recovery      bool
	}{next, strings.HasPrefix(next, "/grants/"), strings.HasPrefix(next, "/authorize?"), hint, s.cfg.Recovery}}, nil
}

// localPath accepts a path of these pages to return to after signing in, and
// answers "/" for anything else.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r < ' ' || r == 0x7f }) {
		return "/"
	}
	for _, prefix := range []string{"/login", "/setup", "/register", "/recover", "/p/", "/assets/"} {
		if strings.HasPrefix(u.Path, prefix) {
			return "/"
		}
	}
	return next
}

func (s *server) loginOptions(c *call) (any, error) {
	return s.backend.Sessions.BeginLogin(c.Context())
}

func (s *server) loginVerify(c *call) (any, error) {
	p, err := c.newPasskey()
	if err != nil {
		return nil, err
	}
	in, err := s.backend.Sessions.FinishLogin(c.Context(), p)
	if err != nil {
		return nil, err
	}
	s.setSession(c.w, in)
	return sessionAnswer{in.Session.ID}, nil
}

func (s *server) logout(c *call) (any, error) {
	if err := s.backend.Sessions.EndSession(c.Context(), c.session, c.session.ID); err != nil {
		return nil, err
	}
	s.clearSession(c.w)
	return then{Location: "/login"}, nil
}

// then tells the script what to do after a call.
type then struct {
	Location string `json:"location,omitempty"`
	Say      string `json:"say,omitempty"`
}
