package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"vogt/internal/authoritytest"
	"vogt/internal/client"
)

// browsed is a machine with a browser, in front of a real authority.
type browsed struct {
	t     *testing.T
	s     *authoritytest.Server
	owner *authoritytest.Principal
	file  client.File
	opts  client.Options
	http  *http.Client
}

func (b *browsed) contact() *client.Client {
	b.t.Helper()
	c, err := client.Contact(b.s.URL, b.file, b.opts)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

func (b *browsed) open() *client.Client {
	b.t.Helper()
	c, err := client.Open(b.file, b.opts)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

// visit opens an address of this machine, whichever loopback address answers.
func (b *browsed) visit(method, address string, change ...func(*http.Request)) int {
	b.t.Helper()
	r, err := http.NewRequest(method, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range change {
		f(r)
	}
	resp, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// answer is where the authority sends somebody who is logged in as who.
func (b *browsed) answer(who *authoritytest.Principal, address string) string {
	b.t.Helper()
	path, ok := strings.CutPrefix(address, b.s.URL)
	if !ok {
		b.t.Fatalf("the browser is sent to %s", address)
	}
	return who.Get(path).Want(302).Header.Get("Location")
}

func kindOf(err error) (client.Kind, bool) {
	var e *client.Error
	ok := errors.As(err, &e)
	if !ok {
		return 0, false
	}
	return e.Kind, true
}

// TestLogInByBrowser is one test, since there is one port.
func TestLogInByBrowser(t *testing.T) {
	s := authoritytest.Start(t)
	b := &browsed{t: t, s: s, owner: s.Owner(), file: client.Home{Folder: t.TempDir()}.Default(), http: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	b.opts = client.Options{Memory: t.TempDir(), Now: s.Clock.Now}
	other := s.Person("other@example.com")

	var callback string
	c := b.contact()
	err := c.LogInByBrowser(t.Context(), b.owner.Email, func(address string) error {
		callback = b.answer(b.owner, address)
		u, err := url.Parse(callback)
		if err != nil {
			return err
		}
		with := func(name, value string) string {
			q := u.Query()
			q.Set(name, value)
			return "http://localhost:9876/callback?" + q.Encode()
		}
		// Any page can send a browser here: none of this ends the wait.
		for name, bad := range map[string]string{
			"another state": with("state", "x"), "no state": with("state", ""), "another issuer": with("iss", "https://other.example"), "no issuer": with("iss", ""),
			"an error of others": "http://localhost:9876/callback?error=access_denied&state=x", "another path": "http://localhost:9876/?" + u.RawQuery, "no code": with("code", ""),
		} {
			if status := b.visit("GET", bad); status != 400 {
				t.Errorf("%s: %d", name, status)
			}
		}
		if status := b.visit("POST", callback); status != 400 {
			t.Errorf("POST: %d", status)
		}
		if status := b.visit("GET", callback, func(r *http.Request) { r.Host = "evil.example:9876" }); status != 400 {
			t.Errorf("another host: %d", status)
		}
		if status := b.visit("GET", callback); status != 200 {
			t.Errorf("the answer: %d", status)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if l := c.Login(); l.Email != b.owner.Email || l.Act != "human" || l.KeyPath != "" || l.Refresh == "" || !l.Renews() {
		t.Errorf("logged in: %+v", l)
	}
	if me, err := c.Me(t.Context()); err != nil || me.Email != b.owner.Email {
		t.Errorf("me: %+v, %v", me, err)
	}

	// It renews itself; a second process takes what the first one got.
	first, second := b.open(), b.open()
	s.Clock.Advance(5 * time.Minute)
	for _, c := range []*client.Client{first, second, first} {
		if _, err := c.Me(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if first.Login().Token != second.Login().Token || first.Login().Refresh == c.Login().Refresh {
		t.Error("the processes do not share what was renewed")
	}
	// Many at once do not take one another for thieves.
	s.Clock.Advance(5 * time.Minute)
	failed := make(chan error, 8)
	for range cap(failed) {
		c := b.open()
		go func() { _, err := c.Me(context.WithoutCancel(t.Context())); failed <- err }()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(b.file.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}

	// A stolen refresh token ends the login, for the thief, too.
	stolen := b.open().Login().Refresh
	s.Stranger().Post("/token", map[string]string{"grant_type": "refresh_token", "refresh_token": stolen}).Want(200)
	s.Clock.Advance(5 * time.Minute)
	_, err = b.open().Me(t.Context())
	if kind, _ := kindOf(err); kind != client.NotLoggedIn {
		t.Errorf("after a theft: %v", err)
	}

	// Logging out ends what renews the login, also when its token is over.
	logIn := func(who *authoritytest.Principal, email string) (*client.Client, error) {
		c := b.contact()
		return c, c.LogInByBrowser(t.Context(), email, func(address string) error {
			to := b.answer(who, address)
			if !strings.Contains(to, "code=") {
				// The browser is somebody else's; the hint kept the authority from answering.
				address = strings.Replace(address, url.QueryEscape(email), url.QueryEscape(who.Email), 1)
				to = b.answer(who, address)
			}
			b.visit("GET", to)
			return nil
		})
	}
	if c, err = logIn(b.owner, b.owner.Email); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(5 * time.Minute)
	if err := c.LogOut(t.Context()); err != nil {
		t.Error(err)
	}
	s.Stranger().Post("/token", map[string]string{"grant_type": "refresh_token", "refresh_token": c.Login().Refresh}).Want(400)

	// Somebody else's login is not taken.
	_, err = logIn(other, b.owner.Email)
	if kind, _ := kindOf(err); kind != client.Refused {
		t.Errorf("another person: %v", err)
	}
	// Nor is a code of another login, which an attacker put in its place.
	err = b.contact().LogInByBrowser(t.Context(), b.owner.Email, func(address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		q := u.Query()
		q.Set("code_challenge", strings.Repeat("c", 43))
		b.visit("GET", b.answer(b.owner, s.URL+"/authorize?"+q.Encode()))
		return nil
	})
	if kind, ok := kindOf(err); !ok || kind == client.NotConfirmed {
		t.Errorf("a code for another verifier: %v", err)
	}
	// A no is told, and so are an end by the person and a port that is taken.
	err = b.contact().LogInByBrowser(t.Context(), b.owner.Email, func(address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		b.visit("GET", "http://localhost:9876/callback?"+url.Values{"error": {"access_denied"}, "state": {u.Query().Get("state")}, "iss": {s.URL}}.Encode())
		return nil
	})
	if kind, _ := kindOf(err); kind != client.NotConfirmed {
		t.Errorf("a no: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	err = b.contact().LogInByBrowser(ended, b.owner.Email, func(string) error { end(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	for _, ip := range []string{"127.0.0.1", "::1"} {
		if l, err := net.Listen("tcp", net.JoinHostPort(ip, "9876")); err == nil {
			defer l.Close()
		}
	}
	err = b.contact().LogInByBrowser(t.Context(), b.owner.Email, func(string) error { t.Error("it went on"); return nil })
	if kind, _ := kindOf(err); kind != client.Invalid {
		t.Errorf("the port is taken: %v", err)
	}
}
