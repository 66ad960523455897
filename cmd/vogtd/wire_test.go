//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/vogtdtest"
)

// rawAnswer is the answer to bytes as a test wrote them.
type rawAnswer struct {
	*http.Response
	body string
}

// raw sends text, in which HOST and PAGES stand for the authority's two names,
// on a connection of its own.
func raw(t *testing.T, d *vogtdtest.Daemon, text string) (rawAnswer, error) {
	t.Helper()
	s, _ := d.Status()
	conn, err := net.Dial("tcp", s.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	text = strings.NewReplacer(
		"PAGES", strings.TrimPrefix(d.API.Pages, "http://"), "HOST", strings.TrimPrefix(d.API.URL, "http://"), "\n", "\r\n",
	).Replace(text)
	if _, err := io.WriteString(conn, text); err != nil {
		return rawAnswer{}, err
	}
	method, _, _ := strings.Cut(text, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return rawAnswer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return rawAnswer{}, err
	}
	return rawAnswer{resp, string(body)}, nil
}

func mustRaw(t *testing.T, d *vogtdtest.Daemon, text string) rawAnswer {
	t.Helper()
	a, err := raw(t, d, text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return a
}

// TestForeignNames: names can be made to point at this machine, so the
// authority answers to two of them and to no other (DNS rebinding).
func TestForeignNames(t *testing.T) {
	d := vogtdtest.Start(t, vogtdtest.Options{})
	_, port, _ := strings.Cut(strings.TrimPrefix(d.API.URL, "http://"), ":")
	for _, host := range []string{
		"evil.example", "evil.example:" + port, "localhost:" + port, "localhost", "127.0.0.1", "127.0.0.1:1", "127.0.0.2:" + port,
		"[::1]:" + port, "[::ffff:127.0.0.1]:" + port, "0.0.0.0:" + port, "vogt.localhost", "vogt.localhost:1", "vogt.localhost.:" + port,
		"evil.vogt.localhost:" + port, "vogt.localhost:" + port + ".evil.example", "127.0.0.1.:" + port, "2130706433:" + port, "x",
	} {
		for _, call := range []string{
			"GET /api/health HTTP/1.1\nHost: %s\n\n",
			"GET / HTTP/1.1\nHost: %s\n\n",
			"POST /api/auth/challenge HTTP/1.1\nHost: %s\nContent-Type: application/json\nContent-Length: 12\n\n{\"id\":\"a@b\"}",
			"GET /.well-known/jwks.json HTTP/1.1\nHost: %s\n\n",
			"GET /p/events HTTP/1.1\nHost: %s\n\n",
		} {
			text := fmt.Sprintf(call, host)
			if a := mustRaw(t, d, text); a.StatusCode != http.StatusMisdirectedRequest {
				t.Errorf("%q: %d %s", text, a.StatusCode, a.body)
			}
		}
	}
	for text, want := range map[string]int{
		"GET /api/health HTTP/1.0\n\n":                                 421, // no name at all
		"GET /api/health HTTP/1.1\nHost: HOST\nHost: evil.example\n\n": 400,
		"GET /api/health HTTP/1.1\n\n":                                 400,
		"GET http://evil.example/api/health HTTP/1.1\nHost: HOST\n\n":  421,
		"GET /api/health HTTP/1.1\nHost: HOST\n\n":                     200,
		"GET /login HTTP/1.1\nHost: PAGES\n\n":                         200,
	} {
		if a := mustRaw(t, d, text); a.StatusCode != want {
			t.Errorf("%q: %d, want %d: %s", text, a.StatusCode, want, a.body)
		}
	}
}

// TestForeignOrigins: a page of any other origin that a browser lets call the
// API gets nothing, and is never told that it may.
func TestForeignOrigins(t *testing.T) {
	d := vogtdtest.Start(t, vogtdtest.Options{})
	owner := d.Owner()
	agent := d.API.Agent(owner, "helper")
	id := agent.Ask("uptime").ID
	yes := owner.Signed(id, grant.Once, 0)
	for _, origin := range []string{"null", "http://evil.example", "http://127.0.0.1:1", "http://localhost:8648", d.API.Pages, "file://", d.API.URL + ".evil.example"} {
		for _, a := range []authoritytest.Answer{
			owner.Do("GET", api.PathGrants, nil, "Origin", origin),
			owner.Do("POST", authoritytest.GrantPath(id, "approve"), yes, "Origin", origin),
			owner.Do("POST", api.PathPanic, nil, "Origin", origin),
			owner.Do("OPTIONS", api.PathGrants, nil, "Origin", origin, "Access-Control-Request-Method", "POST"),
		} {
			if a.Status != 403 {
				t.Errorf("%s from %s: %d %s", a.Call, origin, a.Status, a.Body)
			}
			for name := range a.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s from %s: %s", a.Call, origin, name)
				}
			}
		}
	}
	if g := owner.Grant(id); g.Status != grant.Pending {
		t.Errorf("the grant is %s", g.Status)
	}
	// What everybody may read is for everybody.
	if a := d.API.Stranger().Do("GET", api.PathJWKS, nil, "Origin", "http://evil.example"); a.Status != 200 || a.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("the published keys: %d %v", a.Status, a.Header)
	}
}

// TestTwoNamesTwoWorlds: the API is not to be had under the pages' name, nor the
// pages' calls under the API's, with whatever login.
func TestTwoNamesTwoWorlds(t *testing.T) {
	d := vogtdtest.Start(t, vogtdtest.Options{})
	b := setUp(t, d)
	agent := b.agent("helper")
	id := agent.Ask("uptime").ID
	for _, call := range []struct{ method, path string }{
		{"GET", api.PathGrants}, {"POST", api.PathGrants}, {"GET", api.PathWhoAmI}, {"POST", api.PathChallenge}, {"GET", api.PathHealth},
		{"POST", authoritytest.GrantPath(id, "approve")}, {"POST", authoritytest.GrantPath(id, "token")}, {"GET", api.PathAudit + "/export"},
		{"POST", api.PathPanic}, {"POST", api.PathTrust}, {"GET", "/api/admin/users"}, {"GET", api.PathJWKS}, {"GET", api.PathEvents},
	} {
		for _, bearer := range []string{agent.Bearer, authoritytest.ManagementToken} {
			a := (&authoritytest.Client{S: d.API, Bearer: bearer}).Do(call.method, call.path, nil, "Host", b.host(), "Cookie", b.cookie())
			// Some of these the pages' host has too, for a cookie with a click: a bearer
			// counts for nothing there.
			if !slices.Contains([]int{401, 403, 404, 405}, a.Status) {
				t.Errorf("%s under the pages' name: %d %s", a.Call, a.Status, a.Body)
			}
		}
	}
	for _, path := range []string{"/p/grants/" + id + "/decision", "/p/panic", "/p/setup/options", "/p/login/options", "/p/trust"} {
		c := b.honest(path, struct{}{})
		c.headers["Host"], c.headers["Origin"] = strings.TrimPrefix(d.API.URL, "http://"), d.API.URL
		if a := b.send(c); a.Status != 404 {
			t.Errorf("%s under the API's name: %d %s", path, a.Status, a.Body)
		}
	}
	// Addresses that people open lead over, and only there.
	for _, path := range []string{"/", "/grants/" + id, "/login?next=%2F%2Fevil.example", "/setup?token=x"} {
		a := d.API.Stranger().Get(path)
		if to := a.Header.Get("Location"); a.Status != 302 || to != d.API.Pages+path {
			t.Errorf("%s leads to %d %q", path, a.Status, to)
		}
	}
}

// TestPathTricks: no spelling of an address reaches what its plain one does
// not, and none sends a browser elsewhere.
func TestPathTricks(t *testing.T) {
	d := vogtdtest.Start(t, vogtdtest.Options{})
	b := setUp(t, d)
	agent := b.agent("helper")
	id := agent.Ask("uptime").ID
	for _, host := range []string{"HOST", "PAGES"} {
		for _, path := range []string{
			"//api/grants", "/./api/grants", "/api/./grants", "/api/../api/grants", "/api//grants", "/%61pi/grants", "/api%2fgrants", "/api/grants/",
			"//api/admin/users", "/api/./admin/users", "/api/grants/../admin/users", "/api/grants/%2e%2e/admin/users", "/api/grants/..%2fadmin%2fusers",
			"/%2e/api/audit/export", "//api/audit/export", "/api/audit/export/", "/api/audit/export%00", "/API/grants", "/api;x/grants", "/api\\grants",
			"//evil.example/", "//evil.example/..", "/\\evil.example", "/%5cevil.example", "///evil.example/login", "/login/../../evil.example",
			"//p/panic", "/p/./panic", "/p/%70anic", "/p/../p/panic", "/assets/../../vogt.db", "/assets/..%2f..%2fvogt.db", "/assets/%2e%2e/%2e%2e/data/vogt.db",
			"/.well-known/../api/grants", "/.well-known/%2e%2e/api/grants", "/.well-known/..%2fapi%2fgrants",
		} {
			for _, method := range []string{"GET", "POST"} {
				text := method + " " + path + " HTTP/1.1\nHost: " + host + "\nContent-Length: 0\nOrigin: http://evil.example\n\n"
				a := mustRaw(t, d, text)
				// Without a login nothing here is to be had; an address may be
				// answered with its plain spelling.
				to, err := a.Location()
				switch {
				case a.StatusCode/100 == 2:
					t.Errorf("%q: %d %.200s", text, a.StatusCode, a.body)
				case err == nil && to.Host != "" && "http://"+to.Host != d.API.Pages:
					t.Errorf("%q leads to %s", text, to)
				case strings.HasPrefix(a.Header.Get("Location"), "//"), strings.HasPrefix(a.Header.Get("Location"), "/\\"):
					t.Errorf("%q leads to %s", text, a.Header.Get("Location"))
				}
			}
		}
	}
	// With a login of an agent, no spelling makes an answer of its own request.
	for _, path := range []string{
		"/api/grants/ID/approve", "/api/grants//ID/approve", "/api/grants/ID//approve", "/api/grants/ID/./approve", "/api/grants/ID/approve/",
		"/api/grants/x%2f..%2fID/approve", "/api/grants/ID/approve%2f", "/api/grants/ID/%61pprove", "/api/grants/ID/token%2f..%2fapprove", "/api/grants/ID/consume/../approve",
		"/api/grants/ID/approve/consume", "/api/grants/ID%2fapprove%2fconsume/consume",
	} {
		text := "POST " + strings.ReplaceAll(path, "ID", id) + " HTTP/1.1\nHost: HOST\nContent-Length: 0\nAuthorization: Bearer " + agent.Bearer + "\n\n"
		if a := mustRaw(t, d, text); a.StatusCode/100 == 2 {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	if g := agent.Grant(id); g.Status != grant.Pending {
		t.Errorf("the grant is %s", g.Status)
	}
}

// TestOddMethods: what no address declares is refused, and nothing is echoed or
// upgraded.
func TestOddMethods(t *testing.T) {
	d := vogtdtest.Start(t, vogtdtest.Options{})
	owner := d.Owner()
	id := d.API.Agent(owner, "helper").Ask("uptime").ID
	login := "Authorization: Bearer " + owner.Bearer + "\nX-Secret: do-not-echo\n"
	for _, tt := range []struct {
		text string
		want []int
	}{
		{"TRACE / HTTP/1.1\nHost: HOST\n" + login, []int{404, 405}},
		{"TRACE / HTTP/1.1\nHost: PAGES\n" + login, []int{404, 405}},
		{"TRACE /api/grants HTTP/1.1\nHost: HOST\n" + login, []int{404, 405}},
		{"OPTIONS * HTTP/1.1\nHost: HOST\n", []int{400, 404, 405}},
		{"OPTIONS /api/grants HTTP/1.1\nHost: HOST\n" + login, []int{404, 405}},
		{"OPTIONS /p/panic HTTP/1.1\nHost: PAGES\n", []int{404, 405}},
		{"CONNECT evil.example:443 HTTP/1.1\nHost: evil.example:443\n", []int{421}},
		{"CONNECT HOST HTTP/1.1\nHost: HOST\n", []int{404, 405}},
		{"PUT /api/grants/" + id + "/approve HTTP/1.1\nHost: HOST\n" + login, []int{404, 405}},
		{"HEAD /api/grants/" + id + "/approve HTTP/1.1\nHost: HOST\n" + login, []int{404, 405}},
		{"GET /api/grants/" + id + "/approve HTTP/1.1\nHost: HOST\n" + login, []int{404, 405}},
		{"GET /api/panic HTTP/1.1\nHost: HOST\nX-HTTP-Method-Override: POST\n" + login, []int{404, 405}},
		{"GET /api/panic?_method=POST HTTP/1.1\nHost: HOST\n" + login, []int{404, 405}},
		{"HEAD /api/grants HTTP/1.1\nHost: HOST\n", []int{401}},
		{"HEAD /api/grants HTTP/1.1\nHost: HOST\n" + login, []int{200}},
		{"GET /api/health HTTP/1.1\nHost: HOST\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n", []int{200}},
		{"GET /api/events HTTP/1.1\nHost: HOST\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n", []int{401}},
		{"GET /p/events HTTP/1.1\nHost: PAGES\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n", []int{401}},
		{"GET /api/health HTTP/1.1\nHost: HOST\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\n", []int{200}},
		{"PRI * HTTP/2.0\n\nSM\n", []int{400, 404, 405, 421, 505}},
		{"POST /api/auth/challenge HTTP/1.1\nHost: HOST\nContent-Length: 12\nTransfer-Encoding: chunked\n\n0\n", []int{400}},
		{"POST /api/auth/challenge HTTP/1.1\nHost: HOST\nContent-Length: 1\nContent-Length: 2\n", []int{400}},
		{"POST /api/auth/challenge HTTP/1.1\nHost: HOST\nTransfer-Encoding: gzip, chunked\n", []int{400, 501}},
		{"GET /api/health HTTP/1.1\nHost: HOST\nX-Long: " + strings.Repeat("x", 100_000) + "\n", []int{431}},
		{"GET /" + strings.Repeat("x", 100_000) + " HTTP/1.1\nHost: HOST\n", []int{431}},
	} {
		a, err := raw(t, d, tt.text+"\n")
		if err != nil {
			t.Errorf("%.80q: %v", tt.text, err)
			continue
		}
		ok := false
		for _, want := range tt.want {
			ok = ok || a.StatusCode == want
		}
		if !ok {
			t.Errorf("%.80q: %d, want one of %v: %.200s", tt.text, a.StatusCode, tt.want, a.body)
		}
		if strings.Contains(a.body, "do-not-echo") || strings.Contains(a.body, owner.Bearer) {
			t.Errorf("%.80q echoes the request: %s", tt.text, a.body)
		}
	}
	if g := owner.Grant(id); g.Status != grant.Pending {
		t.Errorf("the grant is %s", g.Status)
	}
}

// TestManyConnections holds many connections that say nothing, little or
// everything but the end, and calls meanwhile. Then those that were slow are
// closed, and the work goes on.
func TestManyConnections(t *testing.T) {
	t.Parallel() // it waits for the authority's own limits
	const each = 100
	d := vogtdtest.Start(t, vogtdtest.Options{})
	owner := d.Owner()
	agent := d.API.Agent(owner, "helper")
	s, _ := d.Status()
	host := strings.TrimPrefix(d.API.URL, "http://")
	var slow []net.Conn
	for _, begin := range []string{
		"",
		"GET /api/health HTTP/1.1\r\nHost: " + host + "\r\nX-Slow: ",
		"POST /api/auth/challenge HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
	} {
		for range each {
			c, err := net.Dial("tcp", s.Listen)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, begin); err != nil {
				t.Fatal(err)
			}
			slow = append(slow, c)
		}
	}
	id := agent.Ask("uptime").ID
	owner.Approve(id, grant.Once, 0)
	var out api.Consumed
	d.API.Consume(id, agent.Token(id)).Into(&out)
	if out.Status != "consumed" {
		t.Errorf("beside %d slow connections: %+v", len(slow), out)
	}
	// A byte now and then does not keep one open.
	var all sync.WaitGroup
	for i, c := range slow {
		all.Go(func() {
			if err := c.SetReadDeadline(time.Now().Add(50 * time.Second)); err != nil {
				t.Error(err)
			}
			rest, err := io.ReadAll(c)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("connection %d is still open: %q", i, rest)
			}
		})
	}
	all.Wait()
}
