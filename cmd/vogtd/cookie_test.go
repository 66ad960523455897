//go:build unix

package main

import (
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/pages"
	"vogt/internal/vogtdtest"
)

// target is an address that changes something, with a call that it would take.
type target struct {
	pattern string // as the pages declare it
	path    string
	body    any
	// again is how the very same call, sent a second time, is answered: 200
	// where it changes nothing more.
	again int
	// honest is the answer to the first honest call; 0 for 200. What there is
	// nothing of here is not found, but only after the proof has been looked at.
	honest int
}

var declared = regexp.MustCompile(`HandleFunc\("(POST [^"]+)", s\.deciding\(`)

// TestStolenCookie: a server on another port of this machine is sent the
// session's cookie by the browser, since cookies ignore ports. It must not be
// able to decide or to take anything away, whatever it puts beside it.
func TestStolenCookie(t *testing.T) {
	t.Parallel()
	d := vogtdtest.Start(t, vogtdtest.Options{})
	b := setUp(t, d)
	agent := b.agent("helper")
	b.agent("other")
	digest := func(id string) string {
		var offer api.Offer
		agent.Get(authoritytest.GrantPath(id, "statement")).Into(&offer)
		return offer.Digest.String()
	}
	asked, lasting := agent.Ask("uptime").ID, agent.Ask("uptime", "-s").ID
	yes := map[string]any{"grant_type": "once", "digest": digest(asked), "answer": "allow"}
	b.decide("/p/grants/"+lasting+"/decision", map[string]any{"grant_type": "once", "digest": digest(lasting), "answer": "allow"}).Want(200)
	change, _ := d.API.Stranger().Prepare(api.TrustAgentAdd, map[string]string{"name": "third", "public_key": d.API.NewKey("third").Line})
	unwanted, _ := d.API.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "laptop"})
	code := trustDigest(t, b, change.ID)
	assertion := b.assert("/p/trust/"+change.ID+"/passkey", map[string]any{"digest": code})
	var used struct{ ID string } // the passkey
	if err := json.Unmarshal(assertion, &used); err != nil {
		t.Fatal(err)
	}
	key := b.addKey()
	b.addKey() // another, so that the account keeps one

	second := b.secondPasskey()
	managed := d.API.NewKey("managed")
	var added api.Key
	d.API.Manager().Post("/api/admin/users/"+url.PathEscape(mara)+"/ssh-keys", map[string]string{"publicKey": managed.Line}).Into(&added)

	tr, _ := d.API.Stranger().Prepare(api.TrustSafeOn, map[string]string{"email": agent.Email, "safe": "[]"})
	seed := trustDigest(t, b, tr.ID)
	b.decide("/p/trust/"+tr.ID+"/confirm", map[string]any{"digest": seed, "response": b.assert("/p/trust/"+tr.ID+"/passkey", map[string]any{"digest": seed})}).Want(200)
	var safe []api.Standing // the safe commands of the agent
	agent.Get(api.PathStanding).Into(&safe)

	// In an order in which each can succeed.
	targets := []target{
		{"POST /p/grants/{id}/passkey", "/p/grants/" + asked + "/passkey", map[string]any{"grant_type": "once", "digest": digest(asked)}, 200, 0},
		{"POST /p/grants/{id}/decision", "/p/grants/" + asked + "/decision", yes, 409, 0},
		{"POST /p/grants/{id}/revoke", "/p/grants/" + lasting + "/revoke", struct{}{}, 409, 0},
		{"POST /p/trust", "/p/trust", map[string]any{"operation": api.TrustDevice, "params": map[string]string{"name": "phone"}}, 200, 0},
		{"POST /p/trust/{id}/passkey", "/p/trust/" + change.ID + "/passkey", map[string]any{"digest": code}, 200, 0},
		{"POST /p/trust/{id}/confirm", "/p/trust/" + change.ID + "/confirm", map[string]any{"digest": code, "response": assertion}, 409, 0},
		{"POST /p/trust/{id}/decline", "/p/trust/" + unwanted.ID + "/decline", struct{}{}, 409, 0},
		{"POST /p/keys", "/p/keys", map[string]string{"public_key": d.API.NewKey("new").Line}, 200, 0},
		{"POST /p/keys/{id}/remove", "/p/keys/" + key + "/remove", struct{}{}, 404, 0},
		{"POST /p/passkeys/{id}/remove", "/p/passkeys/" + used.ID + "/remove", struct{}{}, 404, 0},
		{"POST /p/agents/{email}/{act}", "/p/agents/" + url.PathEscape(agent.Email) + "/pause", struct{}{}, 200, 0},
		{"POST /p/patterns/{id}/revoke", "/p/patterns/" + safe[0].ID + "/revoke", struct{}{}, 200, 0},
		{"POST /p/safe/off", "/p/safe/off", map[string]string{"email": agent.Email}, 200, 0},
		{"POST /p/groups/{name}/leave", "/p/groups/none/leave", map[string]string{"email": agent.Email}, 404, 404},
		{"POST /p/services/{id}/end", "/p/services/none/end", struct{}{}, 404, 404},
		{"POST /p/consents/{id}/withdraw", "/p/consents/none/withdraw", struct{}{}, 404, 404},
		{"POST /api/authorize/consent", "/api/authorize/consent", map[string]string{"csrfToken": "none", "action": "approve"}, 410, 410},
		{"POST /api/authorize/denied", "/api/authorize/denied", map[string]string{"csrfToken": "none"}, 410, 410},
		{"POST /p/panic", "/p/panic", struct{}{}, 200, 0},
		{"POST /p/keys", "/p/keys", map[string]any{"public_key": d.API.NewKey("fourth").Line}, 200, 0},
		{"POST /p/keys/{id}/remove", "/p/keys/" + added.ID + "/remove", struct{}{}, 404, 0},
		{"POST /p/passkeys/{id}/remove", "/p/passkeys/" + second + "/remove", struct{}{}, 404, 0},
		{"POST /p/sessions/{id}/revoke", "/p/sessions/" + b.session + "/revoke", struct{}{}, 401, 0},
	}
	wantEvery(t, targets)

	state := func() string {
		log := readLedger(t, d.Records())
		out, err := json.Marshal([]any{len(d.Records()), log.grants[asked].status, log.grants[lasting].status, log.trusts, log.panics})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	before := state()
	other := newKey(t)
	attacks := []struct {
		name   string
		want   int
		change func(c *deciding)
	}{
		{"cookie alone", 403, func(c *deciding) { c.key = nil }},
		{"no cookie", 401, func(c *deciding) { c.headers["Cookie"] = "" }},
		{"another cookie", 401, func(c *deciding) { c.headers["Cookie"] = "vogt_session=" + strings.Repeat("0", 64) }},
		{"no origin", 403, func(c *deciding) { c.headers["Origin"] = "" }},
		{"origin null", 403, func(c *deciding) { c.headers["Origin"] = "null" }},
		{"origin of another port", 403, func(c *deciding) { c.headers["Origin"] = "http://vogt.localhost:1" }},
		{"origin without port", 403, func(c *deciding) { c.headers["Origin"] = "http://vogt.localhost" }},
		{"origin with TLS", 403, func(c *deciding) { c.headers["Origin"] = strings.Replace(d.API.Pages, "http:", "https:", 1) }},
		{"the API's origin", 403, func(c *deciding) { c.headers["Origin"] = d.API.URL }},
		{"same site", 403, func(c *deciding) { c.headers["Sec-Fetch-Site"] = "same-site" }},
		{"cross site", 403, func(c *deciding) { c.headers["Sec-Fetch-Site"] = "cross-site" }},
		{"a form", 415, func(c *deciding) { c.headers["Content-Type"] = "application/x-www-form-urlencoded" }},
		{"plain text", 415, func(c *deciding) { c.headers["Content-Type"] = "text/plain" }},
		{"click of another key", 403, func(c *deciding) { c.key = other }},
		{"click for another origin", 403, func(c *deciding) { c.click.Origin = "http://vogt.localhost:1" }},
		{"click for another address", 403, func(c *deciding) { c.click.Path += "x" }},
		{"click for another body", 403, func(c *deciding) { c.click.Body = []byte(`{}` + " ") }},
		{"old click", 403, func(c *deciding) { c.click.Issued -= (121 * time.Second).Milliseconds() }},
		{"click from the future", 403, func(c *deciding) { c.click.Issued += time.Minute.Milliseconds() }},
		{"click with another time", 403, func(c *deciding) {
			header := signClick(t, c.key, c.click)
			_, signature, _ := strings.Cut(header, ".")
			c.key, c.headers[pages.ClickHeader] = nil, "1."+signature
		}},
		{"a bearer's click", 403, func(c *deciding) {
			c.key, c.headers[pages.ClickHeader], c.headers["Authorization"] = nil, agent.Bearer, "Bearer "+agent.Bearer
		}},
	}
	for _, attack := range attacks {
		for _, to := range targets {
			c := b.honest(to.path, to.body)
			attack.change(c)
			if a := b.send(c); a.Status != attack.want {
				t.Errorf("%s at %s: %d, want %d: %s", attack.name, to.path, a.Status, attack.want, a.Body)
			}
		}
	}
	// The cookie is no login for programs, under either name.
	for _, host := range []string{b.host(), strings.TrimPrefix(d.API.URL, "http://")} {
		for _, verb := range []string{"approve", "deny", "revoke"} {
			a := d.API.Stranger().Post(authoritytest.GrantPath(asked, verb), api.Decide{GrantType: grant.Once}, "Cookie", b.cookie(), "Host", host)
			if a.Status/100 == 2 {
				t.Errorf("%s at %s with a cookie: %d %s", verb, host, a.Status, a.Body)
			}
		}
	}
	if after := state(); after != before {
		t.Errorf("the attacks changed something:\n%s\n%s", before, after)
	}

	// Each of these calls, made honestly, is taken; caught and sent again, it
	// does nothing more.
	for _, to := range targets {
		c := b.honest(to.path, to.body)
		b.send(c).Want(cmp.Or(to.honest, 200))
		done := state()
		c.key = nil // the header stays, byte for byte
		if a := b.send(c); a.Status != to.again {
			t.Errorf("%s, sent again: %d, want %d: %s", to.path, a.Status, to.again, a.Body)
		}
		if to.again != 200 && state() != done {
			t.Errorf("%s, sent again, changed something", to.path)
		}
	}
}

// wantEvery holds the targets against the pages' own list of addresses.
func wantEvery(t *testing.T, targets []target) {
	t.Helper()
	source, err := os.ReadFile("../../internal/pages/pages.go")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, to := range targets {
		missing[to.pattern] = true
	}
	for _, found := range declared.FindAllSubmatch(source, -1) {
		pattern := string(found[1])
		if !missing[pattern] {
			t.Errorf("%s decides and is not attacked here", pattern)
		}
		delete(missing, pattern)
	}
	for pattern := range missing {
		t.Errorf("the pages do not declare %s any more", pattern)
	}
}

// addKey adds an SSH key to the person's account, confirmed with the passkey,
// and returns its id.
func (b *browser) addKey() string {
	b.t.Helper()
	key := b.d.API.NewKey(mara)
	tr, _ := b.d.API.Stranger().Prepare(api.TrustKeyAdd, map[string]string{"public_key": key.Line})
	digest := trustDigest(b.t, b, tr.ID)
	assertion := b.assert("/p/trust/"+tr.ID+"/passkey", map[string]any{"digest": digest})
	b.decide("/p/trust/"+tr.ID+"/confirm", map[string]any{"digest": digest, "response": assertion}).Want(200)
	return string(key.Private.Public().ID())
}

var shownDigest = regexp.MustCompile(`data-digest="([0-9a-f]{64})"`)

// trustDigest reads the digest of a prepared change off its page.
func trustDigest(t *testing.T, b *browser, id string) string {
	t.Helper()
	digest := shownDigest.FindSubmatch(b.get("/trust/" + id).Want(200).Body)
	if digest == nil {
		t.Fatal("the page of a change shows no digest")
	}
	return string(digest[1])
}

// assert answers a passkey dialogue that a deciding call opens.
func (b *browser) assert(path string, body any) json.RawMessage {
	b.t.Helper()
	var c struct{ Options json.RawMessage }
	b.decide(path, body).Into(&c)
	response, err := b.passkeys.Get(c.Options)
	if err != nil {
		b.t.Fatal(err)
	}
	return response
}
