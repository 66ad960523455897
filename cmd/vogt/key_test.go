//go:build unix

package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/client"
	"vogt/internal/passkey/passkeytest"
	"vogt/internal/sshkey"
	"vogt/internal/store"
)

// newKeyOwner is a user who is logged in with the one key of the owner, as a
// headless set-up leaves it, at a real authority.
func newKeyOwner(t *testing.T) (s *authoritytest.Server, u *user, first sshkey.Public) {
	t.Helper()
	s, u = authoritytest.Start(t), newUser(t)
	s.Clock.Set(time.Now())
	path, first := u.key("first")
	if err := s.Authority.CreateOwner(t.Context(), ownerEmail, "Owner", first.String()); err != nil {
		t.Fatal(err)
	}
	u.must("login", ownerEmail, "--idp", s.URL, "--key", path)
	return s, u, first
}

// listed returns the person's keys by fingerprint.
func (u *user) listed() map[string]api.Key {
	u.t.Helper()
	var keys []api.Key
	if err := json.Unmarshal([]byte(u.must("key", "list", "--json").stdout), &keys); err != nil {
		u.t.Fatal(err)
	}
	out := map[string]api.Key{}
	for _, k := range keys {
		out[fingerprint(k)] = k
	}
	return out
}

// exits calls vogt, which must end with the code and say each of words.
func (u *user) exits(code int, words []string, args ...string) result {
	u.t.Helper()
	r := u.vogt(args...)
	if r.code != code {
		u.t.Errorf("vogt %q: exit code %d, want %d\n%s", args, r.code, code, r.stderr)
	}
	for _, w := range words {
		if !strings.Contains(r.stdout+r.stderr, w) {
			u.t.Errorf("vogt %q does not say %q:\n%s%s", args, w, r.stdout, r.stderr)
		}
	}
	return r
}

// A person lists, adds and removes keys; the last one that decides stays.
func TestKeys(t *testing.T) {
	s, u, first := newKeyOwner(t)
	table := u.must("key", "list").stdout
	if !regexp.MustCompile(`(?m)^ID +NAME +STATE +ADDED +FINGERPRINT$`).MatchString(table) ||
		!strings.Contains(table, string(first.ID())[:12]+"  first  decides") || !strings.Contains(table, first.Fingerprint()) {
		t.Errorf("the list is\n%s", table)
	}

	// What is signed is shown before.
	secondPath, second := u.key("second")
	r := u.must("key", "add", secondPath+".pub")
	for _, want := range []string{"this is what you sign:", `[0] "key.add"`, `[1] "public_key=` + second.String() + `"`, "Digest:"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("adding does not show %q:\n%s", want, r.stderr)
		}
	}
	if r.stdout != second.Fingerprint()+" decides for you from now on\n" {
		t.Errorf("adding answers %q", r.stdout)
	}
	// The new key decides: with it the third is added.
	thirdPath, third := u.key("third")
	u.must("key", "add", thirdPath+".pub", "--key", secondPath, "--json")
	if keys := u.listed(); len(keys) != 3 || keys[third.Fingerprint()].Source != "trust" {
		t.Errorf("the keys are %+v", keys)
	}
	u.exits(exitUsage, []string{third.Fingerprint() + " is registered already"}, "key", "add", thirdPath+".pub")
	u.exits(exitConfig, []string{"PRIVATE"}, "key", "add", thirdPath)
	u.exits(exitConfig, nil, "key", "add", thirdPath+".missing")
	u.exits(exitUsage, nil, "key", "add")
	stranger, _ := u.key("stranger")
	fourth, _ := u.key("fourth")
	u.exits(exitRefused, nil, "key", "add", fourth+".pub", "--key", stranger)

	// A key of management is dormant, and shown as what it is.
	_, managed := u.key("managed")
	s.Manager().Post("/api/admin/users/"+url.PathEscape(ownerEmail)+"/ssh-keys", map[string]string{"publicKey": managed.String()}).Want(200)
	if table := u.must("key", "list").stdout; !strings.Contains(table, "logs in only from ") {
		t.Errorf("a dormant key is listed as\n%s", table)
	}
	u.must("key", "remove", managed.Fingerprint())

	u.exits(exitUsage, []string{"you have no key nosuch"}, "key", "remove", "nosuch")
	u.exits(exitUsage, []string{"you have no key"}, "key", "remove", "")
	u.exits(exitUsage, []string{"several of your keys"}, "key", "remove", "SHA256:")
	if r := u.must("key", "remove", string(second.ID())[:12]); r.stdout != second.Fingerprint()+" is removed\n" || r.stderr != "" {
		t.Errorf("removing answers %+v", r)
	}
	if keys := u.listed(); len(keys) != 2 || keys[second.Fingerprint()].ID != "" {
		t.Errorf("after removing the keys are %+v", keys)
	}
	// The key of the login here takes the login with it.
	if r := u.must("key", "remove", string(first.ID())); !strings.Contains(r.stderr, "the key of the login here") {
		t.Errorf("removing the login's key says %q", r.stderr)
	}
	u.exits(exitConfig, []string{"not logged in"}, "key", "list")
	u.must("login", ownerEmail, "--key", thirdPath)
	u.exits(exitRefused, []string{"the last way into the account", "Add another passkey or key first"}, "key", "remove", third.Fingerprint())
	u.env = []string{"LC_ALL=de_DE.UTF-8"}
	u.exits(exitUsage, []string{"du hast keinen Schlüssel nosuch"}, "key", "remove", "nosuch")
}

// A headless owner makes the first passkey with a link that a signature brings.
func TestFirstPasskeyOfAHeadlessOwner(t *testing.T) {
	s, u, _ := newKeyOwner(t)
	r := u.must("key", "passkey")
	link, ok := strings.CutPrefix(strings.TrimSpace(r.stdout), s.Pages+"/register?token=")
	if !ok || strings.Count(r.stdout, "\n") != 1 || !strings.Contains(r.stderr, `[0] "passkey.add"`) || !strings.Contains(r.stderr, "works once, for ten minutes") {
		t.Fatalf("it prints %q and says\n%s", r.stdout, r.stderr)
	}
	options, ceremony, err := s.Authority.RegisterOptions(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	device := passkeytest.New(s.Pages, "vogt.localhost")
	response, err := device.Create(options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authority.RegisterVerify(t.Context(), ceremony, response, []byte("a page's public key"), "a browser"); err != nil {
		t.Fatal(err)
	}
	if options, _, err = s.Authority.PasskeyLoginOptions(); err != nil {
		t.Fatal(err)
	}
	if _, err := device.Get(options); err != nil {
		t.Errorf("the passkey does not sign in: %v", err)
	}

	var out struct{ Status, Link string }
	if err := json.Unmarshal([]byte(u.must("key", "passkey", "--json").stdout), &out); err != nil || out.Status != "confirmed" || !strings.HasPrefix(out.Link, s.Pages+"/register?token=") {
		t.Errorf("as JSON it is %+v, %v", out, err)
	}
}

// prepared waits until a change of trust of the operation waits, and returns
// its name.
func prepared(t *testing.T, s *authoritytest.Server, operation string) (id string) {
	t.Helper()
	limit := time.Now().Add(20 * time.Second)
	for id == "" && time.Now().Before(limit) {
		err := s.DB.View(context.Background(), func(tx store.Tx) error {
			waiting, err := store.PendingTrusts(tx, s.Clock.Now().UnixMilli())
			for _, w := range waiting {
				if w.Operation == operation {
					id = w.ID
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Millisecond)
	}
	if id == "" {
		t.Fatalf("no %s was prepared", operation)
	}
	return id
}

// Without a key the change is confirmed on the page: vogt prints its address
// and waits, and the link stays with the browser that confirmed.
func TestKeysWithoutAKey(t *testing.T) {
	s, u, _ := newKeyOwner(t)
	owner := &authoritytest.Principal{Client: authoritytest.Client{S: s}, Email: ownerEmail}
	private, err := sshkey.LoadPrivate(u.home+"/first", nil)
	if err != nil {
		t.Fatal(err)
	}
	owner.Key.Private = private
	owner.Login()
	file := client.Home{Folder: u.home + "/config"}.Default()
	l, err := file.Load()
	if err != nil {
		t.Fatal(err)
	}
	l.KeyPath = ""
	if err := file.Save(l); err != nil {
		t.Fatal(err)
	}
	path, public := u.key("second")
	for _, c := range []struct {
		operation string
		args      []string
		stdout    string
	}{
		{api.TrustKeyAdd, []string{"key", "add", path + ".pub"}, public.Fingerprint() + " decides for you from now on\n"},
		{api.TrustPasskeyAdd, []string{"key", "passkey"}, "confirmed; the browser goes on to make the passkey\n"},
	} {
		ended := make(chan result)
		go func() { ended <- u.vogt(c.args...) }()
		id := prepared(t, s, c.operation)
		owner.Post(api.PathTrust+"/"+id+"/confirm", owner.SignedChange(id)).Want(200)
		r := <-ended
		if r.code != 0 || r.stdout != c.stdout || !strings.Contains(r.stderr, "Confirm: "+s.Pages+"/trust/"+id) || strings.Contains(r.stdout+r.stderr, "register") {
			t.Errorf("%s: %+v", c.operation, r)
		}
	}
	ended := make(chan result)
	go func() { ended <- u.vogt("key", "passkey") }()
	owner.Post(api.PathTrust+"/"+prepared(t, s, api.TrustPasskeyAdd)+"/decline", nil).Want(200)
	if r := <-ended; r.code != exitRefused || r.stdout != "" {
		t.Errorf("declined: %+v", r)
	}
}

// An agent changes no keys: what it prepared would be about whoever confirms.
func TestAgentsChangeNoKeys(t *testing.T) {
	s, u, first := newKeyOwner(t)
	u.must("agent", "add", "bot")
	agent := newUser(t)
	if err := os.MkdirAll(agent.home+"/config", 0o700); err != nil {
		t.Fatal(err)
	}
	login, err := os.ReadFile(u.home + "/config/agents/bot/auth.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(agent.home+"/config/auth.json", login, 0o600); err != nil {
		t.Fatal(err)
	}
	path, _ := agent.key("evil")
	for _, args := range [][]string{{"key", "add", path + ".pub"}, {"key", "passkey"}, {"key", "remove", string(first.ID())}} {
		agent.exits(exitRefused, []string{"ask the person who owns you"}, args...)
	}
	err = s.DB.View(t.Context(), func(tx store.Tx) error {
		waiting, err := store.PendingTrusts(tx, s.Clock.Now().UnixMilli())
		if len(waiting) != 0 {
			t.Errorf("an agent prepared %+v", waiting)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if keys := u.listed(); len(keys) != 1 {
		t.Errorf("the keys are %+v", keys)
	}
}
