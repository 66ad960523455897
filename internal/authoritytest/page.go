package authoritytest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"vogt/internal/httpapi"
	"vogt/internal/passkey/passkeytest"
)

// Page is a browser on the pages' host that calls the interface there.
type Page struct {
	S       *Server
	Browser *passkeytest.Authenticator
	Cookie  string // of its session; "" for nobody
	Key     []byte // that its session signs with; nil for one that only reads
	// Unsigned leaves the click away.
	Unsigned bool
}

// NewPage is a browser in which nobody is signed in.
func (s *Server) NewPage() *Page {
	return &Page{S: s, Browser: passkeytest.New(s.Pages, "vogt.localhost"), Key: []byte("the key of a page")}
}

// NoPages stands in for the pages where a test only calls the interface.
func NoPages() http.Handler { return http.NotFoundHandler() }

// SignCall takes the place of a page's signature: whoever has the key can make it,
// for this one call.
func SignCall(key []byte, origin, path string, body []byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s", key, origin, path, body))
	return hex.EncodeToString(sum[:])
}

func verifyClick(key []byte, c httpapi.Click, _ time.Time) error {
	if len(key) == 0 || c.Header != SignCall(key, c.Origin, c.Path, c.Body) {
		return errors.New("the click does not fit")
	}
	return nil
}

// Do makes a call as the browser's script would, with what headers say changed.
func (p *Page) Do(method, path string, body any, headers ...string) Answer {
	p.S.T.Helper()
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			p.S.T.Fatal(err)
		}
	}
	all := []string{"Host", strings.TrimPrefix(p.S.Pages, "http://")}
	if p.Cookie != "" {
		all = append(all, "Cookie", "vogt_session="+p.Cookie)
	}
	if method != http.MethodGet {
		signed, _, _ := strings.Cut(path, "?")
		if method != http.MethodPost {
			signed = method + " " + signed
		}
		all = append(all, "Origin", p.S.Pages)
		if !p.Unsigned && p.Cookie != "" {
			all = append(all, httpapi.ClickHeader, SignCall(p.Key, p.S.Pages, signed, content))
		}
	}
	if content != nil {
		all = append(all, "Content-Type", "application/json")
	}
	a := (&Client{S: p.S}).Do(method, path, content, append(all, headers...)...)
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		if c.Name == "vogt_session" {
			p.Cookie = c.Value
		}
	}
	return a
}

// Ceremony is what a passkey call on the wire begins with.
type Ceremony struct {
	Options json.RawMessage `json:"options"`
	Token   string          `json:"challengeToken"`
}

// Create answers the options at path with a new passkey, and calls verify with
// the answer and extra fields.
func (p *Page) Create(options, verify string, body map[string]any) Answer {
	p.S.T.Helper()
	a := p.Do("POST", options, body)
	if a.Status != 200 {
		return a
	}
	var c Ceremony
	a.Into(&c)
	response, err := p.Browser.Create(c.Options)
	if err != nil {
		p.S.T.Fatal(err)
	}
	return p.finish(verify, c, response, body)
}

func (p *Page) finish(verify string, c Ceremony, response []byte, body map[string]any) Answer {
	p.S.T.Helper()
	in := map[string]any{"challengeToken": c.Token, "response": json.RawMessage(response), "proofKey": base64.StdEncoding.EncodeToString(p.Key)}
	for k, v := range body {
		in[k] = v
	}
	return p.Do("POST", verify, in)
}

// SignIn signs in with a passkey that the browser holds.
func (p *Page) SignIn() Answer {
	p.S.T.Helper()
	var c Ceremony
	p.Do("POST", "/api/webauthn/login/options", map[string]any{}).Into(&c)
	response, err := p.Browser.Get(c.Options)
	if err != nil {
		p.S.T.Fatal(err)
	}
	return p.finish("/api/webauthn/login/verify", c, response, nil)
}

// Register makes a person by a registration link, which signs the browser in.
func (s *Server) Register(email string) *Page {
	s.T.Helper()
	var link struct {
		Token string `json:"token"`
	}
	s.Manager().Post("/api/admin/registration-urls", map[string]any{"email": email, "name": email}).Into(&link)
	p := s.NewPage()
	p.Create("/api/webauthn/register/options", "/api/webauthn/register/verify", map[string]any{"token": link.Token}).Want(200)
	return p
}

// RawJSON is a member that is passed on as it came.
type RawJSON = json.RawMessage
