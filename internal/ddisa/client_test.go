package ddisa

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"vogt/internal/fetch"
	"vogt/internal/fetch/fetchtest"
)

const sp = "sp.example.com"

func TestParseClient(t *testing.T) {
	base := func(more string) string {
		return `{"client_id":"sp.example.com","redirect_uris":["https://sp.example.com/cb"]` + more + `}`
	}
	named := func(more string) string { return base(`,"client_name":"A service"` + more) }
	long := strings.Repeat("\u00e4", 300)
	for _, tt := range []struct {
		name, body string
		permissive string // name and redirect addresses, or "!" and what the error says
		strict     string
		want       func(Client) bool // of the permissive one; nil for any
	}{
		{"complete", named(`,"client_uri":"https://sp.example.com","logo_uri":"https://sp.example.com/l","policy_uri":"https://sp.example.com/p","tos_uri":"https://sp.example.com/t","jwks_uri":"https://sp.example.com/j","contacts":["a@b"],"ddisa_domain":"Example.com"`),
			"A service https://sp.example.com/cb", "A service https://sp.example.com/cb", func(c Client) bool {
				return c.ID == sp && c.URI == "https://sp.example.com" && c.LogoURI == "https://sp.example.com/l" && c.PolicyURI == "https://sp.example.com/p" &&
					c.TermsURI == "https://sp.example.com/t" && c.JWKSURI == "https://sp.example.com/j" && slices.Equal(c.Contacts, []string{"a@b"}) && c.Domain == "example.com"
			}},
		{"least", base(""), " https://sp.example.com/cb", "!client_name", nil},
		{"old names", base(`,"name":"A service","contact":"a@b"`), "A service https://sp.example.com/cb", "!client_name",
			func(c Client) bool { return slices.Equal(c.Contacts, []string{"a@b"}) }},
		{"members of others", named(`,"grant_types":["x"],"extra":{"a":[1]}`), "A service https://sp.example.com/cb", "A service https://sp.example.com/cb", nil},
		{"nulls", named(`,"logo_uri":null`), "A service https://sp.example.com/cb", "A service https://sp.example.com/cb", nil},

		{"another's", `{"client_id":"other.example.com","client_name":"x","redirect_uris":["https://sp.example.com/cb"]}`, "!metadata of", "!metadata of", nil},
		{"another's, nearly", `{"client_id":"SP.example.com","client_name":"x","redirect_uris":["https://sp.example.com/cb"]}`, "!metadata of", "!metadata of", nil},
		{"nobody's", `{"client_name":"x","redirect_uris":["https://sp.example.com/cb"]}`, "!metadata of", "!metadata of", nil},
		{"another's letter case of names", `{"CLIENT_ID":"sp.example.com","client_name":"x","redirect_uris":["https://sp.example.com/cb"]}`, "!metadata of", "!metadata of", nil},
		{"an ID that is a list", `{"client_id":["sp.example.com"],"client_name":"x","redirect_uris":["https://sp.example.com/cb"]}`, "!metadata of", "!metadata of", nil},
		{"no address", `{"client_id":"sp.example.com","client_name":"x"}`, "!redirect_uris", "!redirect_uris", nil},
		{"an empty list", `{"client_id":"sp.example.com","client_name":"x","redirect_uris":[]}`, "!redirect_uris", "!redirect_uris", nil},
		{"one text", `{"client_id":"sp.example.com","client_name":"x","redirect_uris":"https://sp.example.com/cb"}`, "!redirect_uris", "!redirect_uris", nil},
		{"numbers", `{"client_id":"sp.example.com","client_name":"x","redirect_uris":[1]}`, "!redirect_uris", "!redirect_uris", nil},

		{"addresses that nobody may be sent to", `{"client_id":"sp.example.com","client_name":"x","redirect_uris":["http://sp.example.com/cb","javascript:alert(1)","data:text/html,x","https://a@b/","https://a/#f","//sp.example.com/","https://sp.example.com\\@evil","com.example.app:/cb","*","http://127.0.0.1.evil.example/","https://ok.example/cb","http://localhost:9876/callback","https://ok.example/cb"]}`,
			"x https://ok.example/cb http://localhost:9876/callback", "!redirect_uris", nil},
		{"a picture that is none", named(`,"logo_uri":"javascript:alert(1)"`), "A service https://sp.example.com/cb", "!logo_uri", func(c Client) bool { return c.LogoURI == "" }},
		{"an address that is long", named(`,"tos_uri":"https://a/` + strings.Repeat("a", 2000) + `"`), "A service https://sp.example.com/cb", "!tos_uri", func(c Client) bool { return c.TermsURI == "" }},
		{"a long name", base(`,"client_name":"` + long + `"`), strings.Repeat("\u00e4", 200) + " https://sp.example.com/cb", "!client_name", nil},
		{"a name that turns the line", base(`,"client_name":"abc\u202etxt"`), " https://sp.example.com/cb", "!client_name", nil},
		{"a name of two lines", base(`,"client_name":"a\nb"`), " https://sp.example.com/cb", "!client_name", nil},
		{"a name that is a number", base(`,"client_name":1`), " https://sp.example.com/cb", "!client_name", nil},
		{"contacts of a kind", named(`,"contacts":{"a":1}`), "A service https://sp.example.com/cb", "!contacts", nil},
		{"a domain that is none", named(`,"ddisa_domain":"localhost"`), "A service https://sp.example.com/cb", "!ddisa_domain", func(c Client) bool { return c.Domain == "" }},
		{"more addresses than anybody needs", `{"client_id":"sp.example.com","client_name":"x","redirect_uris":["https://a/cb"` + strings.Repeat(`,"https://a/cb"`, 100) + `]}`, "x https://a/cb", "!redirect_uris", nil},

		{"no JSON", `<html>`, "!JSON", "!JSON", nil},
		{"a list", `[]`, "!JSON", "!JSON", nil},
		{"null", `null`, "!JSON", "!JSON", nil},
		{"nothing", ``, "!JSON", "!JSON", nil},
		{"two", named("") + `{}`, "!follows", "!follows", nil},
		{"no UTF-8", base(`,"client_name":"` + "\xff" + `"`), "!JSON", "!JSON", nil},
	} {
		for strict, want := range map[bool]string{false: tt.permissive, true: tt.strict} {
			c, err := ParseClient([]byte(tt.body), sp, strict)
			if message, bad := strings.CutPrefix(want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), message) || c.ID != "" {
					t.Errorf("%s, strict %v: %+v, %v; want an error about %q", tt.name, strict, c, err, message)
				}
				continue
			}
			if got := c.Name + " " + strings.Join(c.RedirectURIs, " "); err != nil || got != want {
				t.Errorf("%s, strict %v: %q, %v; want %q", tt.name, strict, got, err, want)
			}
			if tt.want != nil && !tt.want(c) {
				t.Errorf("%s, strict %v: %+v", tt.name, strict, c)
			}
		}
	}
}

func serving(w http.ResponseWriter, mediaType, body string) {
	w.Header().Set("Content-Type", mediaType)
	_, _ = io.WriteString(w, body)
}

const spBody = `{"client_id":"sp.example.com","client_name":"A service","redirect_uris":["https://sp.example.com/cb"]}`

// Where metadata may lie, and what it means that it does not.
func TestClients(t *testing.T) {
	for _, tt := range []struct {
		name               string
		metadata, manifest string // "": 404; a number: that status; "html": a page; else the document
		permissive, strict string // "published", "silent", "none" or "nobody can tell"
	}{
		{"standard", spBody, "", "published", "published"},
		{"legacy", "", spBody, "published", "none"},
		{"legacy behind a page for everything", "html", spBody, "published", "none"},
		{"both", spBody, `{"client_id":"evil"}`, "published", "published"},
		{"neither", "", "", "silent", "none"},
		{"a page for everything", "html", "html", "silent", "none"},
		{"wrong", `{"client_id":"evil.example"}`, spBody, "none", "none"}, // no way round by the older one
		{"broken", `{`, spBody, "none", "none"},
		{"forbidden", "403", spBody, "none", "none"},
		{"at work", "503", spBody, "nobody can tell", "nobody can tell"},
		{"too busy", "429", spBody, "nobody can tell", "nobody can tell"},
	} {
		for strict, want := range map[bool]string{false: tt.permissive, true: tt.strict} {
			n := fetchtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := map[string]string{PathMetadata: tt.metadata, PathManifest: tt.manifest}[r.URL.Path]
				var status int
				if _, err := fmt.Sscan(body, &status); err == nil {
					w.WriteHeader(status)
					return
				}
				switch body {
				case "":
					http.NotFound(w, r)
				case "html":
					serving(w, "text/html", "<html>")
				default:
					serving(w, "application/json", body)
				}
			}), sp)
			clients, err := NewClients(ClientsConfig{Strict: strict, Fetch: n.Config()})
			if err != nil {
				t.Fatal(err)
			}
			c, err := clients.Client(t.Context(), sp)
			got := "published"
			switch {
			case errors.Is(err, ErrNoClient):
				got = "none"
			case err != nil:
				got = "nobody can tell"
			case !c.Published():
				got = "silent"
			}
			if got != want || (got == "silent" && (c.ID != sp || c.Name != "" || c.RedirectURIs != nil)) || (err != nil && c.ID != "") {
				t.Errorf("%s, strict %v: %s (%+v, %v), want %s", tt.name, strict, got, c, err, want)
			}
		}
	}
}

// An ID is a domain in its one form; no other leads to a question at all.
func TestClientIDs(t *testing.T) {
	n := fetchtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving(w, "application/json", fmt.Sprintf(`{"client_id":%q,"redirect_uris":["https://a.example/cb"]}`, r.Host))
	}), sp, "xn--bcher-kva.example", "localhost", "app.localhost", "dev.example")
	n.Point("localhost", "127.0.0.1")
	n.Point("app.localhost", "127.0.0.1")
	n.Point("inside.example", "10.0.0.1")
	n.Point("meta.example", "169.254.169.254")
	n.Point("mixed.example", fetchtest.Public+" 127.0.0.1")
	config := n.Config()
	config.Origins = []string{"http://app.localhost:3000", "https://dev.example:8443"}
	clients, err := NewClients(ClientsConfig{Fetch: config})
	if err != nil {
		t.Fatal(err)
	}
	for id, ok := range map[string]bool{
		sp: true, "xn--bcher-kva.example": true, "app.localhost:3000": true, "dev.example:8443": true,
		"SP.example.com": false, "sp.example.com.": false, "b\u00fccher.example": false, "sp.example.com:443": false,
		"apes-cli": false, "localhost": false, "localhost:3000": false, "": false, ".": false, "sp..example.com": false,
		"127.0.0.1": false, "1.2.3.4": false, "[::1]": false, "127.1": false, "2130706433": false, "0x7f.0.0.1": false,
		"sp.example.com/x": false, "sp.example.com?x": false, "sp.example.com#x": false, "sp.example.com/../x": false, "a@sp.example.com": false,
		"sp.example.com\\@evil": false, "sp.example.com%2fx": false, "sp.example.com%00": false, "https://sp.example.com": false,
		"sp.example.com:8443": false, "app.localhost:3001": false, "dev.example:8444": false,
		"inside.example": false, "meta.example": false, "mixed.example": false, "nosuch.example": false,
		strings.Repeat("a.", 200) + "example": false,
	} {
		before := len(n.Asked())
		c, err := clients.Client(t.Context(), id)
		if ok != (err == nil) || !ok && !errors.Is(err, ErrNoClient) || ok && c.ID != id {
			t.Errorf("%q: %+v, %v", id, c, err)
		}
		if !ok && len(n.Asked()) != before {
			t.Errorf("%q: asked for %q", id, n.Asked()[before:])
		}
	}
	for _, addr := range n.Dialed() {
		if a := addr.Addr().String(); a != fetchtest.Public && addr.String() != "127.0.0.1:3000" {
			t.Errorf("dialled %s", addr)
		}
	}
}

// A redirect to another host would let that one speak for the client.
func TestClientElsewhere(t *testing.T) {
	n := fetchtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == sp {
			http.Redirect(w, r, "https://evil.example"+r.URL.Path, http.StatusFound)
			return
		}
		serving(w, "application/json", spBody)
	}), sp, "evil.example")
	clients, err := NewClients(ClientsConfig{Fetch: n.Config()})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := clients.Client(t.Context(), sp); !errors.Is(err, ErrNoClient) {
		t.Errorf("%+v, %v", c, err)
	}
	if asked := n.Asked(); !slices.Equal(asked, []string{sp + PathMetadata}) {
		t.Errorf("asked for %q", asked)
	}
}

// Metadata is remembered for 300 s, that there is none for 60 s, a failure not at
// all; what a caller does with it changes nothing.
func TestClientsRemembered(t *testing.T) {
	var c clock
	status := http.StatusServiceUnavailable
	n := fetchtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
		serving(w, "application/json", spBody)
	}), sp)
	clients, err := NewClients(ClientsConfig{Strict: true, Fetch: n.Config(), Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	look := func(wantAsked int, wantErr, wantNone bool) {
		t.Helper()
		client, err := clients.Client(t.Context(), sp)
		if (err != nil) != wantErr || errors.Is(err, ErrNoClient) != wantNone || len(n.Asked()) != wantAsked {
			t.Errorf("%v after %d requests, want %d", err, len(n.Asked()), wantAsked)
		}
		if err == nil {
			if client.RedirectURIs[0] != "https://sp.example.com/cb" {
				t.Errorf("%q", client.RedirectURIs)
			}
			client.RedirectURIs[0] = "https://evil.example/"
		}
	}
	look(1, true, false)
	look(2, true, false)
	status = http.StatusNotFound
	look(3, true, true)
	c.advance(absent - 1)
	look(3, true, true)
	c.advance(1)
	status = http.StatusOK
	look(4, false, false)
	c.advance(found - 1)
	look(4, false, false)
	c.advance(1)
	look(5, false, false)
}

func TestNoSuchOrigin(t *testing.T) {
	if _, err := NewClients(ClientsConfig{Fetch: fetch.Config{Origins: []string{"sp.example.com"}}}); err == nil {
		t.Error("an origin without a scheme is accepted")
	}
}

// The authority calls itself as the record calls it, to the letter.
func TestDiscover(t *testing.T) {
	issuer := ""
	n := fetchtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		serving(w, "application/json", fmt.Sprintf(`{"issuer":%q,"ddisa_version":"1.0","ddisa_auth_methods_supported":["ssh-key"]}`, issuer))
	}), "id.example.com", "inside.example.com")
	client, err := fetch.New(n.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ idp, issuer, err string }{
		{"https://id.example.com", "https://id.example.com", ""},
		{"https://id.example.com/", "https://id.example.com/", ""},
		{"https://id.example.com", "https://id.example.com/", "another address"},
		{"https://id.example.com/", "https://id.example.com", "another address"},
		{"https://id.example.com", "https://evil.example.com", "another address"},
		{"https://id.example.com", "https://ID.example.com", "another address"},
		{"https://id.example.com", "", "another address"},
		{"https://nosuch.example.com", "https://nosuch.example.com", "resolved"},
		{"http://id.example.com", "http://id.example.com", "https"},
	} {
		issuer = tt.issuer
		d, err := Discover(t.Context(), client, tt.idp)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || err == nil && (d.Issuer != tt.idp || d.Version != "1.0") {
			t.Errorf("%s, which calls itself %q: %+v, %v", tt.idp, tt.issuer, d, err)
		}
	}
	if asked := n.Asked(); asked[1] != "id.example.com/.well-known/openid-configuration" {
		t.Errorf("asked for %q", asked)
	}
}

func FuzzClient(f *testing.F) {
	f.Add([]byte(spBody))
	f.Add([]byte(`{"client_id":"sp.example.com","name":"a","redirect_uris":["http://localhost/","https://a/"],"contact":"x","logo_uri":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		strict, strictErr := ParseClient(body, sp, true)
		c, err := ParseClient(body, sp, false)
		if strictErr == nil && (err != nil || c.Name != strict.Name || !slices.Equal(c.RedirectURIs, strict.RedirectURIs)) {
			t.Errorf("%q: strict %+v, permissive %+v, %v", body, strict, c, err)
		}
		if err != nil {
			return
		}
		if c.ID != sp || len(c.RedirectURIs) == 0 || len([]rune(c.Name)) > maxName {
			t.Errorf("%q: %+v", body, c)
		}
		for _, uri := range c.RedirectURIs {
			if !strings.HasPrefix(strings.ToLower(uri), "https://") && !strings.HasPrefix(strings.ToLower(uri), "http://") || strings.ContainsAny(uri, "@#\\ \n") && !strings.Contains(uri, "/") {
				t.Errorf("%q: %q", body, uri)
			}
		}
	})
}
