package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := DefaultDaemon().Validate(); err != nil {
		t.Error(err)
	}
	if err := DefaultClient().Validate(); err != nil {
		t.Error(err)
	}
}

// A configuration that nobody filled in must not be usable.
func TestZeroSettingsAreRefused(t *testing.T) {
	for name, err := range map[string]error{"Daemon": Daemon{}.Validate(), "Client": Client{}.Validate()} {
		if err == nil {
			t.Errorf("the zero %s is valid", name)
		}
	}
}

func TestDaemonValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Daemon)
		want   string // the keys that are wrong, in order
	}{
		{"IPv6", func(d *Daemon) { d.Listen = "[::1]:0" }, ""},
		{"behind a proxy", func(d *Daemon) { d.Issuer = "https://vogt.example"; d.PagesHost = "vogt.example" }, ""},
		{"issuer on another loopback address", func(d *Daemon) { d.Issuer = "http://[::1]:9" }, ""},
		{"open to the network", func(d *Daemon) { d.Listen = "0.0.0.0:8648" }, "issuer"},
		{"open to the network behind a proxy", func(d *Daemon) { d.Listen = "192.0.2.1:8648"; d.Issuer = "https://vogt.example" }, ""},
		{"name to listen on", func(d *Daemon) { d.Listen = "localhost:8648" }, "listen"},
		{"no port", func(d *Daemon) { d.Listen = "127.0.0.1" }, "listen"},
		{"address for pages", func(d *Daemon) { d.PagesHost = "127.0.0.1" }, "pages_host"},
		{"port for pages", func(d *Daemon) { d.PagesHost = "vogt.localhost:8648" }, "pages_host"},
		{"capital in pages", func(d *Daemon) { d.PagesHost = "Vogt.localhost" }, "pages_host"},
		{"empty label", func(d *Daemon) { d.PagesHost = "vogt..localhost" }, "pages_host"},
		{"label begins with a hyphen", func(d *Daemon) { d.PagesHost = "-vogt.localhost" }, "pages_host"},
		{"issuer without encryption", func(d *Daemon) { d.Issuer = "http://vogt.example" }, "issuer"},
		{"issuer that only looks local", func(d *Daemon) { d.Issuer = "http://localhost.example" }, "issuer"},
		{"issuer with a password", func(d *Daemon) { d.Issuer = "https://a:b@vogt.example" }, "issuer"},
		{"issuer with a path", func(d *Daemon) { d.Issuer = "https://vogt.example/a" }, "issuer"},
		{"issuer with another scheme", func(d *Daemon) { d.Issuer = "file:///x" }, "issuer"},
		{"wrong in two ways", func(d *Daemon) { d.Issuer = "http://vogt.example/?a" }, "issuer issuer"},
		{"tokens approve everything", func(d *Daemon) { d.BearerDecisions = "critical" }, "bearer_decisions"},
		{"unknown signature rule", func(d *Daemon) { d.RequireSignature = "low" }, "require_signature"},
		{"times", func(d *Daemon) { d.PendingTTL = 0; d.ApprovedTTL = 48 * time.Hour }, "pending_ttl approved_ttl"},
		{"limits", func(d *Daemon) { d.Limits = Limits{} },
			"limits.pending_per_agent limits.stored_per_agent limits.creations_per_second limits.waits_per_agent limits.owner_factor"},
		{"domains", func(d *Daemon) {
			d.DDISA = DDISA{Lookup: "on", Clients: "strict", Providers: []string{"https://dns.example:5053/resolve?x=y", "http://127.0.0.1:8053/"}, Origins: []string{"https://sp.example:8443", "http://localhost:3000"},
				Records: []DDISARecord{{Domain: "a.example", IDP: "https://id.example"}, {Domain: "b.example", IDP: "http://127.0.0.1:8648", Mode: "deny"}}, Allow: []DDISAAllow{{Domain: "a.example", Clients: []string{"sp.example"}}}}
		}, ""},
		{"no resolvers by HTTPS", func(d *Daemon) { d.DDISA.Providers = nil }, ""},
		{"domains, all wrong", func(d *Daemon) {
			d.DDISA = DDISA{Lookup: "yes", Clients: "lax", Providers: []string{"http://dns.example/", "dns.example"}, Origins: []string{"http://sp.example", "https://sp.example/x"},
				Records: []DDISARecord{{Domain: "A.example", IDP: "http://id.example", Mode: "opne"}, {Domain: "A.example", IDP: "https://u@id.example"}}, Allow: []DDISAAllow{{Domain: "a@b"}}}
		}, "ddisa.lookup ddisa.clients ddisa.providers ddisa.providers ddisa.origins ddisa.origins ddisa.records[0].domain ddisa.records[0].idp ddisa.records[0].mode ddisa.records[1].domain ddisa.records[1].idp ddisa.records[1].domain ddisa.allow[0].domain ddisa.allow[0].clients"},
		{"program by name", func(d *Daemon) { d.Notify.Command = []string{"notify-send", "a b", ""} }, ""},
		{"program by relative path", func(d *Daemon) { d.Notify.Command = []string{"./notify"} }, "notify.command"},
		{"no program", func(d *Daemon) { d.Notify.Command = []string{""} }, "notify.command"},
		{"zero byte", func(d *Daemon) { d.Notify.Command = []string{"notify-send", "a\x00"} }, "notify.command"},
		{"endless", func(d *Daemon) { d.Notify.Limit = time.Hour }, "notify.limit"},
		{"log", func(d *Daemon) { d.Log = Log{Level: "loud", Format: ""} }, "log.level log.format"},
		{"from all corners at once", func(d *Daemon) { d.Listen = ""; d.Log.Level = ""; d.PendingTTL = -1 }, "listen pending_ttl log.level"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := DefaultDaemon()
			tt.change(&d)
			wantKeys(t, d.Validate(), tt.want)
		})
	}
}

func TestClientValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Client)
		want   string
	}{
		{"filled in", func(c *Client) { c.AuthorityKey = "vogt+1234+AAAA="; c.Agent = "builder" }, ""},
		{"no authority", func(c *Client) { c.Authority = "" }, "authority"},
		{"address alone", func(c *Client) { c.Authority = "127.0.0.1:8648" }, "authority"},
		{"far and open", func(c *Client) { c.Authority = "http://192.0.2.1" }, "authority"},
		{"mapped loopback", func(c *Client) { c.Authority = "http://[::ffff:127.0.0.1]:1" }, ""},
		{"words", func(c *Client) { c.AuthorityKey = "a b"; c.Agent = "a\u202eb" }, "authority_key agent"},
		{"waits", func(c *Client) { c.Wait = Wait{} }, "wait.limit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultClient()
			tt.change(&c)
			wantKeys(t, c.Validate(), tt.want)
		})
	}
}

// wantKeys compares the keys that an error of Validate names, a line each.
func wantKeys(t *testing.T, err error, want string) {
	t.Helper()
	var keys []string
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			rest, _ := strings.CutPrefix(line, "config: ")
			key, _, _ := strings.Cut(rest, ": ")
			keys = append(keys, key)
		}
	}
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("wrong keys %q, want %q; error: %v", got, want, err)
	}
}

// Every setting can be written in a file under the key that Validate names.
func TestSettingsFromFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a test's temporary folder has no owner that is believed on Windows")
	}
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const text = `
listen = "127.0.0.1:0"
pages_host = "cards.localhost"
issuer = "http://127.0.0.1:1"
bearer_decisions = "medium"
require_signature = "all"
pending_ttl = "1h"
approved_ttl = "5m"
[limits]
pending_per_agent = 1
stored_per_agent = 65536
creations_per_second = 2
waits_per_agent = 3
owner_factor = 4
[notify]
command = ["notify-send", "Vogt"]
show_command = true
limit = "2s"
[log]
level = "debug"
format = "json"
`
	path := filepath.Join(dir, "vogtd.toml")
	if err := WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := LoadLayers(DefaultDaemon(), Paths{System: filepath.Join(dir, "none"), Config: dir}, "vogtd", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Value.Validate(); err != nil {
		t.Fatal(err)
	}
	d := got.Value
	if d.Listen != "127.0.0.1:0" || d.PagesHost != "cards.localhost" || d.Issuer != "http://127.0.0.1:1" ||
		d.BearerDecisions != "medium" || d.RequireSignature != "all" || d.PendingTTL != time.Hour || d.ApprovedTTL != 5*time.Minute ||
		d.Limits != (Limits{1, 65536, 2, 3, 4}) || strings.Join(d.Notify.Command, " ") != "notify-send Vogt" || !d.Notify.ShowCommand ||
		d.Notify.Limit != 2*time.Second || d.Log != (Log{"debug", "json"}) {
		t.Errorf("got %+v", d)
	}
}
