//go:build unix

package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/statement"
	"vogt/internal/token"
	"vogt/internal/vogtdtest"
)

const codeVerifier = "the-verifier-of-a-test-has-at-least-43-characters"

// askFor asks for a command that works in /p.
func askFor(argv ...string) grant.Request {
	r, where := authoritytest.Request(argv...), "/p"
	r.Context = &grant.Context{Cwd: &statement.File{Path: &where}}
	return r
}

// tryForm posts a form without a login.
func tryForm(s *authoritytest.Server, path string, pairs ...string) (authoritytest.Answer, error) {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return s.Stranger().Try("POST", path, v.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// loginCode is a code for the built-in client, which the person's login suffices for.
func loginCode(p *authoritytest.Principal) string {
	p.S.T.Helper()
	sum := sha256.Sum256([]byte(codeVerifier))
	a := p.Get(api.PathAuthorize + "?" + url.Values{
		"response_type": {"code"}, "client_id": {"apes-cli"}, "redirect_uri": {cliCallback}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "scope": {"openid offline_access"},
	}.Encode()).Want(302)
	u, err := url.Parse(a.Header.Get("Location"))
	if err != nil || u.Query().Get("code") == "" {
		p.S.T.Fatalf("sent to %q (%v)", a.Header.Get("Location"), err)
	}
	return u.Query().Get("code")
}

const cliCallback = "http://localhost:9876/callback"

// session is what the built-in client is given for such a code.
func session(p *authoritytest.Principal) (out api.OAuthToken) {
	p.S.T.Helper()
	a, err := tryForm(p.S, api.PathToken, "grant_type", "authorization_code", "code", loginCode(p), "code_verifier", codeVerifier,
		"redirect_uri", cliCallback, "client_id", "apes-cli")
	if err != nil {
		p.S.T.Fatal(err)
	}
	a.Into(&out)
	return out
}

// signKey is the principal's key as an assertion is signed with it.
func signKey(t *testing.T, p *authoritytest.Principal) ed25519.PrivateKey {
	t.Helper()
	pem, err := os.ReadFile(p.Key.Path)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParseRawPrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	return *key.(*ed25519.PrivateKey)
}

// assertion is one good client assertion of whoever holds the key.
func assertion(key ed25519.PrivateKey, email, issuer string) (string, error) {
	now := time.Now().Unix()
	return token.Sign(token.Key{ID: "k", Private: key}, map[string]any{
		"iss": email, "sub": email, "aud": issuer + api.PathToken, "iat": now, "exp": now + 120, "jti": rand.Text(),
	})
}

// actFor asks for a token under a delegation.
func actFor(s *authoritytest.Server, assertion, delegation, audience string) (authoritytest.Answer, error) {
	return tryForm(s, api.PathToken, "grant_type", "client_credentials", "client_assertion", assertion,
		"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "delegation_grant", delegation, "audience", audience)
}

// TestKilledWithoutCards kills the worker again and again while agents are
// answered without a card: by standing grants, one of which is good for a number
// of uses and one of which is taken back meanwhile, and by a policy; while
// sessions are renewed; and while delegations for one use are used by two at
// once. What a client was told is there in the end, what was to be used once or
// so many times was not used more often, and what was taken back stays so.
func TestKilledWithoutCards(t *testing.T) {
	t.Parallel()
	const (
		agents  = 4
		clients = 6 // of each kind
		rounds  = 5
		between = 30
		uses    = 60
		service = "plans.example.com"
	)
	d := vogtdtest.Start(t, vogtdtest.Options{Config: roomy})
	h := &heard{
		owner:   d.Owner(),
		created: map[string]bool{}, approved: map[string]bool{}, consumed: map[string]int{}, ended: map[string]bool{}, mayEnd: map[string]bool{},
	}
	var askers []*authoritytest.Principal
	for i := range agents {
		askers = append(askers, d.API.Agent(h.owner, fmt.Sprintf("helper-%d", i)))
	}
	pattern := func(program, limits string) string {
		return h.owner.Change(api.TrustStandingAdd, map[string]string{
			"pattern": `{"agent":"*","programs":["` + program + `"],"does":["read"],"read":["/p/**"],"max_risk":"medium","limits":{"per_minute":10000,"deletes_per_hour":1` + limits + `}}`,
		}).Standing.ID
	}
	counted, revoked := pattern("cat", fmt.Sprintf(`,"max_uses":%d`, uses)), pattern("ls", "")
	for _, a := range askers {
		h.owner.Change(api.TrustPolicySet, map[string]string{
			"policy": `{"agent":"` + a.Email + `","audience":"*","mode":"allow-list","allow":["echo *"],"limits":{"per_minute":10000,"deletes_per_hour":1}}`,
		})
	}
	// Before each kill there are new sessions and delegations, so that some are in
	// use at each.
	delegations, sessions := make(chan string, (rounds+1)*clients*2), make(chan string, (rounds+1)*clients)
	more := func() {
		for range clients {
			sessions <- session(h.owner).RefreshToken
		}
		for range clients * 2 {
			delegations <- h.owner.Change(api.TrustDelegationAdd, map[string]string{"delegate": askers[0].Email, "audience": service}).Delegation.ID
		}
	}
	key := signKey(t, askers[0])

	var (
		all     sync.WaitGroup
		over    atomic.Bool  // the taking back was answered
		covered atomic.Int64 // answers by the pattern that counts
		renewed atomic.Int64
		acted   sync.Map // delegation to how often a token was given
	)
	trouble := func(format string, args ...any) {
		h.note(func() { h.trouble = append(h.trouble, fmt.Sprintf(format, args...)) })
	}
	silent := func(a *authoritytest.Principal, argv ...string) {
		was := over.Load()
		var g api.Grant
		if !h.call(&a.Client, "POST", api.PathGrants, askFor(argv...), &g) {
			return
		}
		h.note(func() { h.created[g.ID] = true })
		switch {
		case g.Status != grant.Approved:
			return // covered no longer
		case was && g.Standing == revoked:
			trouble("%s: covered by what was taken back", g.ID)
		case g.Standing == revoked:
			h.note(func() { h.mayEnd[g.ID] = true })
		case g.Standing == counted:
			covered.Add(1)
		}
		h.note(func() { h.approved[g.ID] = true })
		h.spend(a, g.ID)
	}
	// Who got no answer does not know whether its token is spent. It shows it
	// again, and has lost the session only if it is.
	renew := func(text string) {
		for n := range 4 {
			a, err := tryForm(d.API, api.PathToken, "grant_type", "refresh_token", "refresh_token", text)
			lost := err != nil
			for err != nil && !h.stop.Load() {
				h.broken.Add(1)
				a, err = tryForm(d.API, api.PathToken, "grant_type", "refresh_token", "refresh_token", text)
			}
			if err != nil || lost && a.Status == 400 {
				return
			}
			var next api.OAuthToken
			if a.Status != 200 || json.Unmarshal(a.Body, &next) != nil || next.RefreshToken == text {
				trouble("renewal %d: a refresh token that was answered is not good: %d %s", n, a.Status, a.Body)
				return
			}
			renewed.Add(1)
			if n == 3 {
				// What was spent, shown again, is good for nothing and ends the rest.
				thief, err := tryForm(d.API, api.PathToken, "grant_type", "refresh_token", "refresh_token", text)
				if err == nil && thief.Status == 200 {
					trouble("a refresh token was good twice")
				}
				a, errLast := tryForm(d.API, api.PathToken, "grant_type", "refresh_token", "refresh_token", next.RefreshToken)
				if err == nil && errLast == nil && a.Status == 200 {
					trouble("a session goes on after a theft")
				}
			}
			text = next.RefreshToken
		}
	}
	// Two act under each delegation until they are told that they may or may not.
	act := func(id string) {
		for !h.stop.Load() {
			proof, err := assertion(key, askers[0].Email, d.API.URL)
			if err != nil {
				trouble("%v", err)
				return
			}
			a, err := actFor(d.API, proof, id, service)
			if err != nil {
				h.broken.Add(1)
				// The same assertion is good once, whatever became of it.
				if a, err = actFor(d.API, proof, id, service); err != nil {
					continue
				}
			}
			switch a.Status {
			case 200:
				n, _ := acted.LoadOrStore(id, new(atomic.Int64))
				n.(*atomic.Int64).Add(1)
				return
			case 400: // used
				return
			case 401: // the assertion is
			default:
				trouble("delegation %s: %d %s", id, a.Status, a.Body)
				return
			}
		}
	}
	for i := range clients {
		a := askers[i%agents]
		all.Go(func() {
			for n := 0; !h.stop.Load(); n++ {
				silent(a, []string{"cat", "ls", "echo"}[n%3], fmt.Sprintf("x-%d-%d", i, n))
			}
		})
		all.Go(func() {
			for text := range sessions {
				if h.stop.Load() {
					return
				}
				renew(text)
			}
		})
		all.Go(func() {
			for id := range delegations {
				var both sync.WaitGroup
				for range 2 {
					both.Go(func() { act(id) })
				}
				both.Wait()
			}
		})
	}
	defer all.Wait()
	stop := sync.OnceFunc(func() { h.stop.Store(true); close(sessions); close(delegations) })
	defer stop()
	for round := range rounds {
		more()
		if round == rounds/2 {
			all.Go(func() {
				for !h.stop.Load() {
					a, err := h.owner.Try("DELETE", api.PathStanding+"/"+revoked, nil)
					if err == nil && (a.Status/100 == 2 || a.Status == 409) {
						over.Store(true)
						return
					}
				}
			})
		}
		enough := h.done.Load() + between
		vogtdtest.Await(t, "clients get on", func() bool { return h.done.Load() >= enough })
		d.AwaitWorker(d.KillWorker())
	}
	more()
	enough := h.done.Load() + between
	vogtdtest.Await(t, "clients get on after the last kill", func() bool { return over.Load() && h.done.Load() >= enough })
	stop()
	all.Wait()

	log := h.check(t, d)
	var byCounted int64
	used := map[string]int64{}
	ended := false
	for _, r := range d.Records() {
		var b struct {
			Standing   any    `json:"standing"`
			Operation  string `json:"operation"`
			Delegation string `json:"delegation"`
			N          int64  `json:"n"`
			Params     map[string]string
		}
		if r.Type == "decision" || r.Type == "delegation" || r.Type == "trust" {
			if err := json.Unmarshal(r.Body, &b); err != nil {
				t.Fatalf("record %d: %v", r.Index, err)
			}
		}
		ids, _ := b.Standing.([]any)
		switch {
		case r.Type == "decision" && slices.Contains(ids, any(counted)):
			byCounted++
		case r.Type == "decision" && slices.Contains(ids, any(revoked)) && ended:
			t.Errorf("record %d: a decision by what was taken back", r.Index)
		case r.Type == "trust" && b.Operation == "standing.revoked" && b.Params["id"] == revoked:
			ended = true
		case r.Type == "delegation":
			if used[b.Delegation]++; b.N != used[b.Delegation] {
				t.Errorf("record %d: use %d of a delegation is counted as %d", r.Index, used[b.Delegation], b.N)
			}
		}
	}
	if !ended {
		t.Error("the taking back was answered and is lost")
	}
	if byCounted > uses || byCounted < covered.Load() {
		t.Errorf("a pattern for %d uses decided %d times, and %d were told", uses, byCounted, covered.Load())
	}
	for id, n := range used {
		if n != 1 {
			t.Errorf("delegation %s was for one use and had %d", id, n)
		}
	}
	acted.Range(func(id, n any) bool {
		if got := n.(*atomic.Int64).Load(); got != 1 || used[id.(string)] != 1 {
			t.Errorf("delegation %s gave %d tokens and is on record %d times", id, got, used[id.(string)])
		}
		return true
	})
	var list []api.Standing
	h.owner.Get(api.PathStanding).Into(&list)
	for _, s := range list {
		if s.ID == counted && s.Uses != byCounted || s.ID == revoked && s.Status != grant.Revoked {
			t.Errorf("the pattern is %+v, on record are %d uses", s, byCounted)
		}
	}
	if len(used) == 0 || renewed.Load() == 0 || byCounted == 0 {
		t.Errorf("nothing was tried: %d delegations, %d renewals, %d decisions", len(used), renewed.Load(), byCounted)
	}
	t.Logf("%d grants, %d consumed, %d by the counted pattern, %d delegations, %d renewals, %d calls cut off",
		len(log.grants), len(h.consumed), byCounted, len(used), renewed.Load(), h.broken.Load())
	settled(t, d, log)
}
