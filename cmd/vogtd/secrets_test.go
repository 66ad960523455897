//go:build unix

package main

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/pages"
	"vogt/internal/store/sqlite"
	"vogt/internal/vogtdtest"
)

// secrets are what must not be found anywhere, by name.
type secrets map[string]string

func (s secrets) add(t *testing.T, name, value string) string {
	t.Helper()
	if len(value) < 4 {
		t.Fatalf("%s is %q, which is no secret", name, value)
	}
	s[name] = value
	return value
}

// in lists the secrets that the text contains. Four digits alone would be found
// in every log; they count where they stand as a word of their own.
func (s secrets) in(text string) (found []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		value := s[name]
		if name == "set-up digits" {
			words := strings.FieldsFunc(text, func(r rune) bool {
				return !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || r == '.' || r == ':' || r == '-')
			})
			if slices.Contains(words, value) {
				found = append(found, name)
			}
		} else if strings.Contains(text, value) {
			found = append(found, name)
		}
	}
	return found
}

// signatureOf is the part of an armoured signature that no other contains.
func signatureOf(armoured string) string {
	lines := strings.Split(strings.TrimSpace(armoured), "\n")
	return lines[len(lines)-2]
}

// TestSecretsStayInside lives a whole life with everything logged that can be,
// successes and failures, and then looks for what must not be found: in the
// log, in the command lines and environments of all processes, and in what the
// notification program is given.
func TestSecretsStayInside(t *testing.T) {
	home := vogtdtest.NewHome(t)
	told, script := filepath.Join(home, "told"), filepath.Join(home, "notify.sh")
	text := fmt.Sprintf("#!/bin/sh\n{ env; echo \"$0 $@\"; cat; } >> '%s'\n", told)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	d := vogtdtest.Start(t, vogtdtest.Options{
		Home:   home,
		Config: "[log]\nlevel = \"debug\"\n[notify]\ncommand = [\"" + script + "\"]\n",
	})
	s := secrets{}
	s.add(t, "management token", authoritytest.ManagementToken)

	// A person by page, with clicks and passkey.
	b := setUp(t, d)
	s.add(t, "set-up link", strings.TrimPrefix(b.link, d.API.Pages+"/setup?token="))
	s.add(t, "set-up digits", b.digits)
	s.add(t, "set-up cookie", b.cookies["vogt_setup"])
	s.add(t, "session cookie", b.cookies["vogt_session"])
	agent := b.agent("helper")
	s.add(t, "agent's login", agent.Bearer)
	ask := func(p *authoritytest.Principal, n string) string {
		return p.Ask("deploy", "--password="+s.add(t, "argument "+n, "hunter2-of-"+n), "--verbose").ID
	}
	id := ask(agent, "click")
	var offer api.Offer
	agent.Get(authoritytest.GrantPath(id, "statement")).Into(&offer)
	click := b.honest("/p/grants/"+id+"/decision", map[string]any{
		"grant_type": "once", "digest": offer.Digest, "answer": "allow", "note": s.add(t, "note", "only-for-the-two-of-us"),
	})
	b.send(click).Want(200)
	s.add(t, "click", strings.SplitN(click.headers[pages.ClickHeader], ".", 2)[1])
	jwt := s.add(t, "grant token", agent.Token(id))
	d.API.Consume(id, jwt).Want(200)
	b.trust(s, api.TrustDevice, map[string]string{"name": "laptop"})
	b.trust(s, api.TrustPasskeyAdd, nil)

	// A person by key, with signatures.
	bob := d.API.Person("bob@example.com")
	s.add(t, "person's login", bob.Bearer)
	second := d.API.Agent(bob, "second")
	id = ask(second, "signature")
	yes := bob.Signed(id, grant.Once, 0)
	s.add(t, "signature", signatureOf(yes.Signature))
	bob.Post(authoritytest.GrantPath(id, "approve"), yes).Want(200)
	s.add(t, "second grant token", second.Token(id))

	// What goes wrong, with secrets in it.
	forged := s.add(t, "forged login", bob.Bearer[:len(bob.Bearer)-6]+"AAAAAA")
	(&authoritytest.Client{S: d.API, Bearer: forged}).Get(api.PathWhoAmI).Want(401)
	d.API.Consume(id, forged).Want(401)
	d.API.Consume(id, jwt).Want(400)
	tried := s.add(t, "management token that was tried", "no-management-token-at-all")
	(&authoritytest.Client{S: d.API, Bearer: tried}).Get("/api/admin/users").Want(403)
	bob.Post(api.PathGrants, `{"command": ["mysql", "`+s.add(t, "argument of a broken body", "hunter2-of-broken")+`"`).Want(400)
	bob.Post(api.PathGrants, map[string]any{"command": s.add(t, "argument of the wrong kind", "hunter2-of-kind")}).Want(400)
	stale := b.honest("/p/panic", struct{}{})
	stale.click.Issued = 1
	b.send(stale).Want(403)
	s.add(t, "click that was refused", strings.SplitN(stale.headers[pages.ClickHeader], ".", 2)[1])
	b.get("/setup?token=" + s.add(t, "set-up link that was tried", strings.Repeat("5e", 32)))
	b.post("/p/login/verify", map[string]any{"ceremony": s.add(t, "ceremony", strings.Repeat("c0", 32)), "response": map[string]string{"id": "x"}, "proof_key": "AA=="})
	var challenge api.Challenge
	d.API.Stranger().Post(api.PathChallenge, api.ChallengeRequest{ID: bob.Email}).Into(&challenge)
	s.add(t, "challenge", challenge.Challenge)
	d.API.Stranger().Post(api.PathAuthenticate, api.Authenticate{
		ID: bob.Email, Challenge: challenge.Challenge, Signature: s.add(t, "login signature", strings.Repeat("QUJD", 20)),
	}).Want(401)

	vogtdtest.Await(t, "the notification program was told of both requests", func() bool {
		heard, err := os.ReadFile(told)
		return err == nil && strings.Count(string(heard), "VOGT_GRANT_ID=") >= 2
	})
	s.nowhere(t, d)
	heard, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	if found := s.in(string(heard)); len(found) > 0 {
		t.Errorf("the notification program was given %q:\n%s", found, heard)
	}
}

// nowhere stops vogtd and looks for the secrets in its processes before and in
// its log and files afterwards.
func (s secrets) nowhere(t *testing.T, d *vogtdtest.Daemon) {
	t.Helper()
	worker, _ := d.Status()
	looked := s.inProcesses(t, d.PID(), worker.PID)
	d.Stop()
	if log := d.Log(); !strings.Contains(log, "level=") {
		t.Errorf("nothing was logged, so nothing is proven:\n%s", log)
	} else if found := s.in(log); len(found) > 0 {
		t.Errorf("the log contains %q:\n%s", found, log)
	}
	if runtime.GOOS == "linux" && looked < 2 {
		t.Errorf("only %d processes could be looked at", looked)
	}
	// Nor does any file beside the data hold them.
	err := filepath.WalkDir(d.Home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == d.Data() || e.IsDir() {
			if path == d.Data() {
				return fs.SkipDir
			}
			return err
		}
		content, err := os.ReadFile(path)
		if found := s.in(string(content)); len(found) > 0 {
			t.Errorf("%s contains %q", path, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// The database is closed to others, whatever it holds.
	for _, name := range []string{d.Data(), filepath.Join(d.Data(), "vogt.db"), d.LogFile()} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

// TestSecretsOfServicesStayInside does the same with what services, mailboxes and
// browsers are given: codes, tokens and assertions, links, and where and with
// which key browsers are told.
func TestSecretsOfServicesStayInside(t *testing.T) {
	// The mail program is given links, and does with them what it does.
	box := t.TempDir()
	letters, script := filepath.Join(box, "letters"), filepath.Join(box, "mail.sh")
	if err := os.WriteFile(script, []byte(fmt.Sprintf("#!/bin/sh\n{ env; cat; } >> '%s'\n", letters)), 0o700); err != nil {
		t.Fatal(err)
	}
	const service = "plans.example.com"
	d := vogtdtest.Start(t, vogtdtest.Options{Config: "[log]\nlevel = \"debug\"\n[mail]\ncommand = [\"" + script + "\"]\nregistration = true\n" +
		"[push]\nhosts = [\"push.invalid\"]\n"})
	s := secrets{}
	b := setUp(t, d)
	bob := d.API.Person("bob@example.com")
	agent := b.agent("helper")
	form := func(path string, pairs ...string) authoritytest.Answer {
		t.Helper()
		a, err := tryForm(d.API, path, pairs...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}

	// A session of the built-in client: taken, renewed, stolen, revoked.
	code := s.add(t, "code", loginCode(bob))
	exchange := []string{"grant_type", "authorization_code", "code", code, "code_verifier", s.add(t, "code verifier", codeVerifier), "redirect_uri", cliCallback, "client_id", "apes-cli"}
	var first, second api.OAuthToken
	form(api.PathToken, exchange...).Into(&first)
	s.add(t, "access token", first.AccessToken)
	s.add(t, "refresh token", first.RefreshToken)
	form(api.PathToken, "grant_type", "refresh_token", "refresh_token", first.RefreshToken).Into(&second)
	s.add(t, "second access token", second.AccessToken)
	s.add(t, "second refresh token", second.RefreshToken)
	(&authoritytest.Client{S: d.API, Bearer: second.AccessToken}).Get(api.PathUserInfo).Want(200)
	form(api.PathToken, exchange...).Want(400)
	form(api.PathToken, "grant_type", "refresh_token", "refresh_token", first.RefreshToken).Want(400)
	form(api.PathToken, "grant_type", "refresh_token", "refresh_token", s.add(t, "refresh token that was tried", strings.Repeat("Qz", 32))).Want(400)
	form(api.PathToken, "grant_type", "authorization_code", "code", s.add(t, "code that was tried", strings.Repeat("Zq", 24)), "code_verifier", codeVerifier,
		"redirect_uri", cliCallback, "client_id", "apes-cli").Want(400)
	last := session(bob)
	s.add(t, "revoked refresh token", last.RefreshToken)
	form(api.PathRevoke, "token", last.RefreshToken).Want(200)
	form(api.PathRevoke, "token", s.add(t, "token that was revoked in vain", "no-token-at-all-but-secret")).Want(200)
	bob.Get(api.PathAuthorize + "?response_type=token&client_id=apes-cli&state=" + s.add(t, "state", "the-state-of-a-client"))

	// An assertion, and a delegation used with another.
	key := signKey(t, agent)
	proof := func(name string) string {
		t.Helper()
		text, err := assertion(key, agent.Email, d.API.URL)
		if err != nil {
			t.Fatal(err)
		}
		return s.add(t, name, text)
	}
	kind := []string{"grant_type", "client_credentials", "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion"}
	good := proof("assertion")
	var login, acted api.OAuthToken
	form(api.PathToken, append(kind, good)...).Into(&login)
	s.add(t, "login by assertion", login.AccessToken)
	form(api.PathToken, append(kind, good)...).Want(401)
	other := d.API.Agent(bob, "second")
	delegation := bob.Change(api.TrustDelegationAdd, map[string]string{"delegate": other.Email, "audience": service}).Delegation.ID
	text, err := assertion(signKey(t, other), other.Email, d.API.URL)
	if err != nil {
		t.Fatal(err)
	}
	a, err := actFor(d.API, s.add(t, "second assertion", text), delegation, service)
	if err != nil {
		t.Fatal(err)
	}
	a.Into(&acted)
	s.add(t, "delegated token", acted.AccessToken)

	// Links: made by an administrator, mailed, tried and taken back.
	var link struct{ ID, Token string }
	d.API.Manager().Post("/api/admin/registration-urls", map[string]string{"email": "eve@example.com", "name": "Eve"}).Into(&link)
	b.get("/register?token=" + s.add(t, "registration link", link.Token))
	b.post("/p/register/options", map[string]string{"token": s.add(t, "registration link that was tried", strings.Repeat("7d", 32))})
	b.get("/register?token=" + strings.Repeat("7d", 32))
	d.API.Manager().Do("DELETE", "/api/admin/registration-urls/"+link.Token, nil).Want(200)
	d.API.Manager().Do("DELETE", "/api/admin/registration-urls/"+link.Token, nil).Want(404)
	mailed := func(prefix string) (token string) {
		t.Helper()
		vogtdtest.Await(t, "a letter with "+prefix, func() bool {
			text, err := os.ReadFile(letters)
			found := regexp.MustCompile(prefix + `\?token=([0-9a-zA-Z_-]{20,})`).FindSubmatch(text)
			if err != nil || found == nil {
				return false
			}
			token = string(found[1])
			return true
		})
		return token
	}
	b.post("/api/recovery/request", map[string]string{"email": mara}).Want(200)
	recovery := s.add(t, "recovery link", mailed("/recover"))
	b.get("/recover?token=" + recovery)
	b.post("/api/recovery/options", map[string]string{"token": recovery})
	b.post("/api/recovery/options", map[string]string{"token": s.add(t, "recovery link that was tried", strings.Repeat("3c", 32))})
	b.post("/api/recovery/cancel", map[string]string{"token": recovery}).Want(200)
	b.post("/api/register", map[string]string{"email": "ivy@example.com"})

	// A browser is told, in vain.
	endpoint := "https://push.invalid/" + s.add(t, "push endpoint", "fcm-send-c2VjcmV0LWVuZHBvaW50")
	subscribed := map[string]any{"endpoint": endpoint, "keys": map[string]string{
		"p256dh": s.add(t, "browser's key", "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"),
		"auth":   s.add(t, "browser's secret", "AAECAwQFBgcICQoLDA0ODw"),
	}}
	b.send(b.honest("/api/push/subscribe", subscribed)).Want(201)
	b.send(b.honest("/api/push/subscribe", map[string]any{"endpoint": "https://elsewhere.invalid/" + s.add(t, "refused endpoint", "another-secret-endpoint"), "keys": subscribed["keys"]})).Want(400)
	agent.Ask("uptime")
	vogtdtest.Await(t, "the browser was to be told", func() bool { return strings.Contains(d.Log(), "push: a message was not delivered") })

	s.nowhere(t, d)
	s.add(t, "key of push messages", scalar(t, d.Home, base64.RawURLEncoding.EncodeToString))
	s.add(t, "key of push messages, in hex", scalar(t, d.Home, hex.EncodeToString))
	if found := s.in(d.Log()); len(found) > 0 {
		t.Errorf("the log contains %q", found)
	}
	// What is good by being shown is kept as a hash alone.
	raw, err := os.ReadFile(filepath.Join(d.Data(), "vogt.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"code", "refresh token", "second refresh token", "revoked refresh token", "registration link", "recovery link", "access token", "delegated token", "assertion"} {
		if strings.Contains(string(raw), s[name]) {
			t.Errorf("the database contains the %s", name)
		}
	}
}

// scalar reads the key of push messages of a vogtd that does not run.
func scalar(t *testing.T, home string, encode func([]byte) string) string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(home, "data", sqlite.FileName)+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var key []byte
	if err := db.QueryRowContext(t.Context(), `SELECT private FROM push_keys`).Scan(&key); err != nil {
		t.Fatal(err)
	}
	return encode(key)
}

// inProcesses looks for secrets where every user can (command lines) and where
// those of this user can (environments), and returns how many processes it saw.
// The management token stands in the environment because it was given there.
func (s secrets) inProcesses(t *testing.T, pids ...int) (seen int) {
	t.Helper()
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d/", pid)
		line, err := os.ReadFile(dir + "cmdline")
		if err != nil {
			continue
		}
		seen++
		if found := s.in(string(line)); len(found) > 0 {
			t.Errorf("the command line of process %d contains %q: %q", pid, found, line)
		}
		env, err := os.ReadFile(dir + "environ")
		if err != nil {
			continue
		}
		for _, name := range s.in(string(env)) {
			if name != "management token" {
				t.Errorf("the environment of process %d contains the %s", pid, name)
			}
		}
	}
	return seen
}

// trust makes a change of trust whose result is a secret, confirmed on the page
// with a passkey and fetched by whoever asked.
func (b *browser) trust(s secrets, operation string, params map[string]string) {
	b.t.Helper()
	tr, secret := b.d.API.Stranger().Prepare(operation, params)
	s.add(b.t, "secret of "+operation, secret)
	digest := trustDigest(b.t, b, tr.ID)
	assertion := b.assert("/p/trust/"+tr.ID+"/passkey", map[string]any{"digest": digest})
	var signed struct {
		Response struct{ Signature string }
	}
	if err := json.Unmarshal(assertion, &signed); err != nil {
		b.t.Fatal(err)
	}
	s.add(b.t, "assertion of "+operation, signed.Response.Signature)
	confirmed := b.decide("/p/trust/"+tr.ID+"/confirm", map[string]any{"digest": digest, "response": assertion}).Want(200)
	asked := b.d.API.Stranger().Do("GET", api.PathTrust+"/"+tr.ID, nil, api.TrustSecretHeader, secret)
	var out api.Trust
	asked.Into(&out)
	// A login is the asker's; a link is for whoever confirmed.
	link := linkToken.FindSubmatch(append(confirmed.Body, asked.Body...))
	switch {
	case out.Login != nil:
		s.add(b.t, "login of "+operation, out.Login.Token)
	case link != nil:
		s.add(b.t, "link of "+operation, string(link[1]))
	default:
		b.t.Fatalf("%s gave no secret: %s, %s", operation, confirmed.Body, asked.Body)
	}
}

var linkToken = regexp.MustCompile(`token=([0-9a-zA-Z_-]{20,})`)

// TestStolenSetUpLink: whoever finds the link of the set-up comes too late once
// a browser has opened it, and gets nowhere without the digits typed at the
// terminal.
func TestStolenSetUpLink(t *testing.T) {
	d := vogtdtest.Start(t, vogtdtest.Options{})
	link, err := d.Control().NewLink(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(link.URL, d.API.Pages)
	token := strings.TrimPrefix(path, "/setup?token=")
	newBrowser := func() *browser { return &browser{t: t, d: d, cookies: map[string]string{}, key: newKey(t)} }
	mine, thief := newBrowser(), newBrowser()
	shown := digitsShown.FindSubmatch(mine.get(path).Want(200).Body)
	if shown == nil {
		t.Fatal("the first browser sees no digits")
	}
	digits := strings.ReplaceAll(string(shown[1]), " ", "")
	if body := thief.get(path).Body; digitsShown.Match(body) {
		t.Error("a second browser sees the digits")
	}
	owner := map[string]string{"token": token, "name": "Eve", "email": "eve@example.com"}
	if a := mine.post("/p/setup/options", owner); a.Status/100 == 2 {
		t.Errorf("without the digits typed a passkey can be made: %s", a.Body)
	}
	if _, err := d.Control().Digits(context.Background(), digits); err != nil {
		t.Fatal(err)
	}
	if a := thief.post("/p/setup/options", owner); a.Status/100 == 2 {
		t.Errorf("a second browser can make the passkey: %s", a.Body)
	}
	mine.post("/p/setup/options", owner).Want(200)

	// A wrong guess at the terminal, three times, ends the link.
	if link, err = d.Control().NewLink(context.Background()); err != nil {
		t.Fatal(err)
	}
	path = strings.TrimPrefix(link.URL, d.API.Pages)
	shown = digitsShown.FindSubmatch(newBrowser().get(path).Want(200).Body)
	if shown == nil {
		t.Fatal("a new link shows no digits")
	}
	wrong := "0000"
	if strings.ReplaceAll(string(shown[1]), " ", "") == wrong {
		wrong = "0001"
	}
	for range 3 {
		if _, err := d.Control().Digits(context.Background(), wrong); err == nil {
			t.Fatal("wrong digits were taken")
		}
	}
	if _, err := d.Control().Digits(context.Background(), strings.ReplaceAll(string(shown[1]), " ", "")); err == nil {
		t.Error("after three wrong tries the right digits are still taken")
	}
	if a := mine.post("/p/setup/options", owner); a.Status/100 == 2 {
		t.Errorf("the link that a newer one replaced is still good: %s", a.Body)
	}
}
