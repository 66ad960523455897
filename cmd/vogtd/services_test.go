package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"vogt/internal/authority"
	"vogt/internal/config"
	"vogt/internal/ddisa"
	"vogt/internal/fetch/fetchtest"
)

// An authority that no domain can name asks nobody, unless it is told to. What the
// configuration says of a domain holds either way.
func TestServices(t *testing.T) {
	record := []config.DDISARecord{{Domain: "example.com", IDP: "http://127.0.0.1:8648", Mode: "deny"}}
	for _, tt := range []struct {
		lookup, issuer string
		asks           bool
	}{
		{"auto", "http://127.0.0.1:8648", false},
		{"auto", "https://id.example.com", true},
		{"on", "http://127.0.0.1:8648", true},
		{"off", "https://id.example.com", false},
		{"", "https://id.example.com", true}, // Validate refuses it
	} {
		s, err := newServices(config.DDISA{Lookup: tt.lookup, Records: record}, tt.issuer)
		if err != nil {
			t.Fatal(err)
		}
		if (s.clients() != nil) != tt.asks {
			t.Errorf("%s at %s: clients are %v", tt.lookup, tt.issuer, s.clients())
		}
		if mode, err := s.policies().Mode(t.Context(), "example.com"); mode != authority.ModeDeny || err != nil {
			t.Errorf("%s at %s: %q, %v", tt.lookup, tt.issuer, mode, err)
		}
		for _, none := range []string{"localhost", "127.0.0.1", "", "a b"} {
			if mode, err := s.policies().Mode(t.Context(), none); mode != "" || err != nil {
				t.Errorf("%s at %s: %q decided %q, %v", tt.lookup, tt.issuer, none, mode, err)
			}
		}
		if !tt.asks {
			if mode, err := s.policies().Mode(t.Context(), "other.example"); mode != "" || err != nil {
				t.Errorf("%s at %s: %q, %v", tt.lookup, tt.issuer, mode, err)
			}
		}
	}
	for _, bad := range []config.DDISA{
		{Lookup: "on", Providers: []string{"ftp://a.example"}},
		{Lookup: "on", Origins: []string{"a.example"}},
		{Lookup: "off", Records: []config.DDISARecord{{Domain: "localhost", IDP: "https://a.example"}}},
		{Lookup: "off", Records: []config.DDISARecord{{Domain: "a.example", IDP: "http://a.example"}}},
		{Lookup: "off", Records: []config.DDISARecord{{Domain: "a.example", IDP: "https://a.example", Mode: "opne"}}},
	} {
		if _, err := newServices(bad, "https://id.example.com"); err == nil || !strings.HasPrefix(err.Error(), "ddisa.") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	// The modes have the same names on both sides.
	for _, mode := range []string{string(authority.ModeOpen), string(authority.ModeAdmin), string(authority.ModePerson), string(authority.ModeDeny)} {
		if r, err := ddisa.NewRecord("https://a.example", mode); err != nil || string(r.Mode) != mode {
			t.Errorf("%q: %+v, %v", mode, r, err)
		}
	}
}

// What a service publishes reaches the authority whole, that it publishes nothing as
// that, and the three ways to fail stay apart.
func TestClientSource(t *testing.T) {
	n := fetchtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Host {
		case "full.example":
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"client_id":"full.example","client_name":"Full","redirect_uris":["https://full.example/cb"],"client_uri":"https://full.example/","policy_uri":"https://full.example/p","contacts":["a@full.example"]}`))
		case "down.example":
			w.WriteHeader(http.StatusBadGateway)
		default:
			http.NotFound(w, r)
		}
	}), "full.example", "silent.example", "down.example")
	known, err := ddisa.NewClients(ddisa.ClientsConfig{Fetch: n.Config()})
	if err != nil {
		t.Fatal(err)
	}
	source := services{known: known}.clients()
	c, err := source.Client(t.Context(), "full.example")
	if err != nil || c.Name != "Full" || c.RedirectURIs[0] != "https://full.example/cb" || c.URI == "" || c.PolicyURI == "" || len(c.Contacts) != 1 || c.Unpublished {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := source.Client(t.Context(), "silent.example"); err != nil || !c.Unpublished || c.ID != "silent.example" || c.Name != "" || c.RedirectURIs != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := source.Client(t.Context(), "nosuch.example"); !errors.Is(err, authority.ErrNoClient) {
		t.Error(err)
	}
	if _, err := source.Client(t.Context(), "down.example"); err == nil || errors.Is(err, authority.ErrNoClient) {
		t.Error(err)
	}
}
