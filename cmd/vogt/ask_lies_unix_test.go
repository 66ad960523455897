//go:build unix

package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vogt/internal/client"
	"vogt/internal/client/clienttest"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/token"
)

// Whatever an authority answers wrongly, a connection is not permitted.
func TestNothingIsReachedUnderALyingAuthority(t *testing.T) {
	lie := func(suffix string, change func(map[string]any)) func(*clienttest.Authority) {
		return func(a *clienttest.Authority) {
			a.Lie = func(path string, _ http.Header, answer map[string]any) {
				if strings.HasSuffix(path, suffix) {
					change(answer)
				}
			}
		}
	}
	request := func(g map[string]any) map[string]any { return g["request"].(map[string]any) }
	said := func(c map[string]any) map[string]any {
		return c["receipt"].(map[string]any)["statement"].(map[string]any)
	}
	for _, c := range []struct {
		name string
		lie  func(*clienttest.Authority)
		ran  bool
	}{
		{"nothing", func(*clienttest.Authority) {}, true},
		{"a token for another host", func(a *clienttest.Authority) {
			a.Forge = func(c *token.Grant) { c.Permissions = []string{"network.host[name=b.example,port=443]#connect"} }
		}, false},
		{"a token for more hosts", func(a *clienttest.Authority) {
			a.Forge = func(c *token.Grant) {
				c.Permissions = append(c.Permissions, "network.host[name=b.example,port=443]#connect")
			}
		}, false},
		{"a token for a command", func(a *clienttest.Authority) {
			a.Forge = func(c *token.Grant) { c.Command = []string{"true"} }
		}, false},
		{"a token for another box", func(a *clienttest.Authority) {
			other := "box 2"
			a.Forge = func(c *token.Grant) { c.Context.Confinement = &other }
		}, false},
		{"a token without a box", func(a *clienttest.Authority) { a.Forge = func(c *token.Grant) { c.Context = nil } }, false},
		{"a grant for another host", lie("/grants", func(g map[string]any) { request(g)["connect"].(map[string]any)["host"] = "b.example" }), false},
		{"a grant for a command", lie("/grants", func(g map[string]any) { delete(request(g), "connect"); request(g)["command"] = []any{"true"} }), false},
		{"a receipt for another host", lie("/consume", func(c map[string]any) { said(c)["network_mode"] = "connect b.example:443" }), false},
		{"a receipt without a host", lie("/consume", func(c map[string]any) { delete(said(c), "network_mode") }), false},
		{"a receipt for a command", lie("/consume", func(c map[string]any) { said(c)["purpose"] = "run" }), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, u := newOwner(t)
			file, err := client.Home{Folder: filepath.Join(u.home, "config")}.Agent("bot")
			if err != nil {
				t.Fatal(err)
			}
			bot, err := client.Open(file, client.Options{Memory: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer bot.Close()
			c.lie(a)
			done := make(chan flow.Result, 1)
			go func() {
				r, _ := flow.Connect(t.Context(), flow.Door{Authority: bot, Ledger: bot}, flow.Connection{
					To: grant.Connect{Host: "a.example", Port: 443}, Box: "box 1", Machine: "here", Wait: time.Minute,
				})
				done <- r
			}()
			a.Settle(a.AwaitGrants(1)[0].ID, grant.Approved, grant.Once)
			if r := <-done; (r.Ending == flow.Ran) != c.ran {
				t.Errorf("the ending is %d, with %+v", r.Ending, r.Grant)
			}
		})
	}
}
