package httpapi_test

import (
	"net/url"
	"strings"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

func keyPath(k authoritytest.Key) string {
	return api.PathMyKeys + "/" + string(k.Private.Public().ID())
}

// TestOwnKeys: a login lists the caller's keys and takes them away, one's own
// and nobody else's, and never the last one that decides.
func TestOwnKeys(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "bot")
	other := s.Person("jonas@example.com")
	second, managed := s.NewKey("second"), s.NewKey("managed")
	owner.Change(api.TrustKeyAdd, map[string]string{"public_key": second.Line})
	s.Manager().Post("/api/admin/users/"+url.PathEscape(owner.Email)+"/ssh-keys", map[string]string{"publicKey": managed.Line}).Want(200)

	var me api.Principal
	owner.Get(api.PathWhoAmI).Into(&me)
	listed := map[string]api.Key{}
	for _, k := range me.Keys {
		listed[k.ID] = k
	}
	for _, want := range []struct {
		key       authoritytest.Key
		source    string
		loginOnly bool
	}{{owner.Key, "owner", false}, {second, "trust", false}, {managed, "management", true}} {
		k := listed[string(want.key.Private.Public().ID())]
		if k.PublicKey != want.key.Line || k.Source != want.source || k.LoginOnly != want.loginOnly || (k.DormantUntil != 0) != want.loginOnly {
			t.Errorf("the key of %s is listed as %+v", want.source, k)
		}
	}

	// Nobody else, and nothing else.
	s.Stranger().Do("DELETE", keyPath(second), nil).Problem(401)
	agent.Do("DELETE", keyPath(agent.Key), nil).Problem(403)
	agent.Do("DELETE", keyPath(second), nil).Problem(403)
	other.Do("DELETE", keyPath(second), nil).Problem(404)
	s.Manager().Do("DELETE", keyPath(second), nil).Problem(404)
	owner.Do("DELETE", keyPath(agent.Key), nil).Problem(404)
	owner.Do("DELETE", keyPath(other.Key), nil).Problem(404)
	owner.Do("DELETE", api.PathMyKeys+"/", nil).Problem(404)
	owner.Do("DELETE", api.PathMyKeys+"/"+url.PathEscape("../x"), nil).Problem(404)
	if now := (api.Principal{}); len(owner.Get(api.PathWhoAmI).Into(&now).Body) == 0 || len(now.Keys) != 3 {
		t.Fatalf("the keys are %+v", now.Keys)
	}

	// A removed key decides no more, and logins that it brought end.
	elsewhere := *owner
	elsewhere.Key = second
	elsewhere.Login()
	g := agent.Ask("uptime")
	yes := elsewhere.Signed(g.ID, grant.Once, 0)
	reads(t, owner.Do("DELETE", keyPath(second), nil), "ok bool")
	elsewhere.Get(api.PathWhoAmI).Problem(401)
	elsewhere.TryLogin(second).Problem(401)
	owner.Post(authoritytest.GrantPath(g.ID, "approve"), yes).Problem(403)
	owner.Do("DELETE", keyPath(second), nil).Problem(404)
	if !s.HasRecord("trust", "key.removed", owner.Email, string(second.Private.Public().ID())) {
		t.Error("the removal is not on record")
	}

	// The key of management is no way in that counts, so the last own one stays.
	if p := owner.Do("DELETE", keyPath(owner.Key), nil).Problem(403); !strings.Contains(p.Detail, "last way") && !strings.Contains(p.Title, "last way") {
		t.Errorf("the last key: %+v", p)
	}
	owner.Do("DELETE", keyPath(managed), nil).Want(200)
	owner.Get(api.PathWhoAmI).Into(&me)
	if len(me.Keys) != 1 {
		t.Errorf("the keys are %+v", me.Keys)
	}
}

// TestLinkOfAConfirmedChange comes with the answer to the confirming call, with
// the asker's secret or without, and at no other time.
func TestLinkOfAConfirmedChange(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	for _, withSecret := range []bool{true, false} {
		tr, secret := s.Stranger().Prepare(api.TrustPasskeyAdd, nil)
		path := api.PathTrust + "/" + tr.ID
		var headers []string
		if withSecret {
			headers = []string{api.TrustSecretHeader, secret}
		}
		var done api.Trust
		owner.Post(path+"/confirm", owner.SignedChange(tr.ID), headers...).Into(&done)
		if done.Status != "confirmed" || !strings.HasPrefix(done.Link, s.Pages+"/register?token=") {
			t.Errorf("who confirmed is told %+v", done)
		}
		for name, a := range map[string]authoritytest.Answer{
			"the asker": s.Stranger().Do("GET", path, nil, api.TrustSecretHeader, secret),
			"both":      owner.Do("GET", path, nil, api.TrustSecretHeader, secret),
		} {
			if a.Want(200); strings.Contains(string(a.Body), "register") {
				t.Errorf("afterwards, %s: %s", name, a.Body)
			}
		}
	}
}
