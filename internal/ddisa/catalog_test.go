package ddisa

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"vogt/internal/fetch/fetchtest"
)

func TestParseScopes(t *testing.T) {
	entry := func(id, description string) string { return `{"id":"` + id + `","description":"` + description + `"}` }
	for body, want := range map[string]string{
		`{"name":"x","scopes":[` + entry("mail:read", "Read your mail") + `,` + entry("mail:send-all", "Send \u00e4ll") + `]}`: "mail:read mail:send-all",
		`{"scopes":[` + entry("mail:read", strings.Repeat("\u00e4", 280)) + `]}`:                                               "mail:read",
		`{"scopes":[` + entry("mail:read", strings.Repeat("\u00e4", 281)) + `]}`:                                               "!",
		`{"scopes":[` + entry("mail:read", "") + `]}`:                                                                          "!",
		`{"scopes":[` + entry("mail:read", `a\u202eb`) + `]}`:                                                                  "!",
		`{"scopes":[` + entry("mail:read", `a\nb`) + `]}`:                                                                      "!",
		`{"scopes":[` + entry("mail", "x") + `]}`:                                                                              "!",
		`{"scopes":[` + entry("Mail:read", "x") + `]}`:                                                                         "!",
		`{"scopes":[` + entry("mail:read:all", "x") + `]}`:                                                                     "!",
		`{"scopes":[` + entry("mail:*", "x") + `]}`:                                                                            "!",
		`{"scopes":[` + entry("mail:read write:all", "x") + `]}`:                                                               "!",
		`{"scopes":[` + entry("mail:read", "x") + `,` + entry("mail:read", "y") + `]}`:                                         "!",
		`{"scopes":[{"id":"mail:read"}]}`:                                                                                      "!",
		`{"scopes":[{"ID":"mail:read","description":"x"}]}`:                                                                    "!",
		`{"scopes":[]}`:      "!",
		`{"scopes":{}}`:      "!",
		`{"scopes":["a:b"]}`: "!",
		`{}`:                 "!",
		`[]`:                 "!",
		``:                   "!",
		`{"scopes":[` + strings.TrimSuffix(strings.Repeat(entry("a:b", "x")+",", 300), ",") + `]}`: "!",
	} {
		scopes, err := ParseScopes([]byte(body))
		var ids []string
		for _, s := range scopes {
			ids = append(ids, s.ID)
		}
		if got := strings.Join(ids, " "); (want == "!") != (err != nil) || want != "!" && got != want {
			t.Errorf("%.200s: %q, %v; want %q", body, got, err, want)
		}
	}
}

// Catalogs are fetched under the same guard as metadata, and remembered.
func TestScopes(t *testing.T) {
	status := http.StatusOK
	n := fetchtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status != http.StatusOK || r.URL.Path != PathCatalog {
			w.WriteHeader(status)
			return
		}
		serving(w, "application/json", `{"scopes":[{"id":"mail:read","description":"Read"}]}`)
	}), sp, "inside.example")
	n.Point("inside.example", "10.0.0.1")
	clients, err := NewClients(ClientsConfig{Fetch: n.Config()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if scopes, err := clients.Scopes(t.Context(), sp); err != nil || len(scopes) != 1 || scopes[0] != (Scope{"mail:read", "Read"}) {
			t.Errorf("%+v, %v", scopes, err)
		}
	}
	if len(n.Asked()) != 1 {
		t.Errorf("asked for %q", n.Asked())
	}
	for _, id := range []string{"inside.example", "127.0.0.1", "localhost", "nosuch.example", "sp.example.com/x", "SP.example.com", ""} {
		if scopes, err := clients.Scopes(t.Context(), id); !errors.Is(err, ErrNoClient) || scopes != nil {
			t.Errorf("%q: %+v, %v", id, scopes, err)
		}
	}
	if len(n.Asked()) != 1 {
		t.Errorf("asked for %q", n.Asked())
	}
	for code, none := range map[int]bool{404: true, 403: true, 503: false} {
		status = code
		fresh, err := NewClients(ClientsConfig{Fetch: n.Config()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fresh.Scopes(t.Context(), sp); err == nil || errors.Is(err, ErrNoClient) != none {
			t.Errorf("status %d: %v", code, err)
		}
	}
}
