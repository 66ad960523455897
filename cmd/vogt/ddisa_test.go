package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vogt/internal/ddisa"
	"vogt/internal/fetch"
	"vogt/internal/fetch/fetchtest"
)

// inDomains runs vogt where the DNS holds records, and where an authority answers at
// id.example.com, in a private network at inside.example.com, and as another one at
// wrong.example.com. It returns the exit code and what was said.
func inDomains(t *testing.T, n *fetchtest.Network, records map[string]string, environ []string, args ...string) (code int, said string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	e := &env{
		stdin: os.Stdin, stdout: out, stderr: out, now: time.Now,
		environ: append([]string{"VOGT_HOME=" + t.TempDir(), "HOME=" + t.TempDir()}, environ...),
		outside: func(asking *ddisa.ResolverConfig, getting *fetch.Config) {
			asking.Providers = nil
			asking.Native = func(_ context.Context, name string) ([]string, error) {
				switch text, ok := records[name]; {
				case !ok:
					return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
				case text == "":
					return nil, errors.New("server misbehaving")
				default:
					return strings.Split(text, "\n"), nil
				}
			}
			origins, private := getting.Origins, getting.Private
			*getting = n.Config()
			getting.Origins, getting.Private = origins, private
		},
	}
	code = Run(t.Context(), args, e)
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, string(text)
}

func authorities(t *testing.T) *fetchtest.Network {
	t.Helper()
	n := fetchtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if host == "wrong.example.com" {
			host = "id.example.com"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"issuer":"https://` + host + `","ddisa_version":"1.0"}`))
	}), "id.example.com", "inside.example.com", "wrong.example.com", "meta.example.com")
	n.Point("inside.example.com", "10.1.2.3")
	n.Point("meta.example.com", "169.254.169.254")
	return n
}

func TestDNSCheck(t *testing.T) {
	n := authorities(t)
	records := map[string]string{
		"_ddisa.example.com":           "v=spf1 -all\nv=ddisa1 idp=https://id.example.com; mode=opne; priority=5\nv=ddisa1 idp=https://wrong.example.com",
		"_ddisa.inside.example":        "v=ddisa1 idp=https://inside.example.com",
		"_ddisa.wrong.example":         "v=ddisa1 idp=https://wrong.example.com",
		"_ddisa.meta.example":          "v=ddisa1 idp=https://meta.example.com",
		"_ddisa.here.example":          "v=ddisa1 idp=http://127.0.0.1:8648",
		"_ddisa.escape.example":        "v=ddisa1 idp=https://id.example.com; \x1b[31m=\u202e",
		"_ddisa.broken.example":        "",
		"_ddisa.xn--bcher-kva.example": "v=ddisa1 idp=https://id.example.com",
	}
	for _, tt := range []struct {
		arg  string
		code int
		said []string
	}{
		{"example.com", 0, []string{"Authority:   https://id.example.com\n", "Mode:        -\n", "Priority:    5\n", `Ignored:     the mode "opne"`,
			`Unused:      "v=ddisa1 idp=https://wrong.example.com": another one has precedence`, `Unused:      "v=spf1 -all": it does not begin with`, "Result:      ok\n"}},
		{"Me@EXAMPLE.com", 0, []string{"Domain:      example.com\n"}},
		{"me@b\u00fccher.example", 0, []string{"Record:      _ddisa.xn--bcher-kva.example\n"}},
		{"inside.example", 0, []string{"Result:      ok\n"}},
		{"wrong.example", 1, []string{"Problem:", "it calls itself by another address, \"https://id.example.com\""}},
		{"meta.example", 1, []string{"Problem:", "a metadata address"}},
		{"here.example", 1, []string{"Problem:     there is no record that counts at _ddisa.here.example", "Unused:", "does not begin with https://"}},
		{"nosuch.example", 1, []string{"there is no record that counts"}},
		{"broken.example", 69, []string{"server misbehaving", "--idp URL"}},
	} {
		code, said := inDomains(t, n, records, nil, "dns-check", tt.arg)
		if code != tt.code {
			t.Errorf("%s: exit code %d, want %d\n%s", tt.arg, code, tt.code, said)
		}
		for _, want := range tt.said {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q is missing in\n%s", tt.arg, want, said)
			}
		}
	}
	if _, said := inDomains(t, n, records, nil, "dns-check", "escape.example"); strings.ContainsAny(said, "\x1b\u202e") {
		t.Errorf("a record draws on the terminal: %q", said)
	}
	if code, said := inDomains(t, n, records, nil, "dns-check", "--json", "example.com"); code != 0 || !strings.Contains(said, `"idp":"https://id.example.com"`) || !strings.Contains(said, `"ok":true`) {
		t.Errorf("exit code %d, %s", code, said)
	}
}

// Where a login goes. An authority that is not here ends it with 69, when it was
// chosen; nothing is sent to one that is refused.
func TestLoginFollowsTheDomain(t *testing.T) {
	records := map[string]string{
		"_ddisa.example.com":    "v=ddisa1 idp=https://id.example.com",
		"_ddisa.wrong.example":  "v=ddisa1 idp=https://wrong.example.com",
		"_ddisa.broken.example": "",
	}
	mock := ddisa.MockVariable + `={"example.com":{"idp":"http://127.0.0.1:1"}}`
	const here = "http://127.0.0.1:1" // where nobody is
	for _, tt := range []struct {
		name    string
		environ []string
		args    []string
		code    int // -1: whatever answers there, if anything
		said    string
	}{
		{"no record", nil, []string{"me@nosuch.example"}, -1, "nosuch.example names no authority (no record that counts at _ddisa.nosuch.example); trying the one of this machine, http://127.0.0.1:8648"},
		{"no record is possible", nil, []string{"me@localhost"}, -1, "no domain could name an authority for me@localhost; trying the one of this machine, http://127.0.0.1:8648"},
		{"the address that the domain does not name", nil, []string{"me@example.com", "--idp", "https://evil.example.com"}, 77, "example.com names https://id.example.com as the authority of its people, and the login would go to https://evil.example.com. Nothing was sent"},
		{"nearly the address", nil, []string{"me@example.com", "--idp", "https://id.example.com/"}, 77, "Nothing was sent"},
		{"nearly the address", nil, []string{"me@example.com", "--idp", "https://ID.example.com"}, 77, "Nothing was sent"},
		{"who answers is another one", nil, []string{"me@wrong.example"}, 77, "who answers there is another one"},
		{"nobody can tell", nil, []string{"me@broken.example"}, 69, "cannot be found out (_ddisa.broken.example)"},
		{"the variable alone", []string{mock}, []string{"me@example.com", "--idp", "https://evil.example.com"}, 77, "is not heeded without --mock-records"},
		{"the variable and the switch", []string{mock}, []string{"me@example.com", "--idp", "https://evil.example.com", "--mock-records"}, 77, "names http://127.0.0.1:1 as"},
		{"an address of this machine", nil, []string{"me@example.com", "--idp", here}, 69, "cannot be reached: " + here},
		{"in German", []string{"LANG=de_DE.UTF-8"}, []string{"me@example.com", "--idp", "https://evil.example.com"}, 77, "Nichts wurde gesendet"},
	} {
		n := authorities(t)
		code, said := inDomains(t, n, records, tt.environ, append([]string{"login", "--key", "no such key"}, tt.args...)...)
		if code != tt.code && tt.code >= 0 || !strings.Contains(said, tt.said) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", tt.name, code, tt.code, tt.said, said)
		}
		for _, asked := range n.Asked() {
			if !strings.HasSuffix(asked, ddisa.PathDiscovery) {
				t.Errorf("%s: asked for %s", tt.name, asked)
			}
		}
	}
}
