package authority_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/passkey/passkeytest"
	"vogt/internal/store"
)

// registerLink makes a registration link by a change of trust that the page
// confirms, and returns its token.
func (w *world) registerLink() string {
	w.t.Helper()
	tr, _ := w.s.Stranger().Prepare(api.TrustPasskeyAdd, nil)
	link := w.confirm(tr.ID).Link
	token, ok := strings.CutPrefix(link, w.s.Pages+"/register?token=")
	if !ok {
		w.t.Fatalf("the link is %q", link)
	}
	return token
}

// register makes another passkey with a link.
func (w *world) register(token string) *passkeytest.Authenticator {
	w.t.Helper()
	device := passkeytest.New(w.s.Pages, "vogt.localhost")
	options, id, err := w.s.Authority.RegisterOptions(ctx, token)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := device.Create(options)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.s.Authority.RegisterVerify(ctx, id, response, proofKey, "a browser"); err != nil {
		w.t.Fatal(err)
	}
	return device
}

// kindOf is the kind of an authority's error.
func kindOf(err error) string {
	if e, ok := err.(*authority.Error); ok {
		return e.Kind
	}
	return ""
}

// TestLinkIsForTheConfirmer: an agent that prepares the change and talks the
// person into confirming it gets nothing, however it asks, and neither does
// anybody who reads the database.
func TestLinkIsForTheConfirmer(t *testing.T) {
	t.Parallel()
	w := withPasskey(t)
	w.addKey()
	tr, secret := w.agent.Prepare(api.TrustPasskeyAdd, nil)
	link := w.confirm(tr.ID).Link
	if link == "" {
		t.Fatal("who confirmed got no link")
	}
	for name, a := range map[string]authoritytest.Answer{
		"the asker":              w.agent.Do("GET", trustPath(tr.ID), nil, api.TrustSecretHeader, secret),
		"the asker, not as self": asSecret(w.s, tr.ID, secret),
		"the person, later":      w.owner.Get(trustPath(tr.ID)),
	} {
		if a.Want(200); strings.Contains(string(a.Body), "register") {
			t.Errorf("%s gets the link: %s", name, a.Body)
		}
	}
	token := link[strings.Index(link, "=")+1:]
	err := w.s.DB.View(ctx, func(tx store.Tx) error {
		stored, err := store.TrustByID(tx, tr.ID)
		if strings.Contains(stored.Result+stored.Params, token) {
			t.Error("the link is stored")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range w.s.Recorded("trust") {
		if strings.Contains(record, token) {
			t.Error("the link is on record")
		}
	}
	// Confirming again gives no second one.
	if a := w.owner.Post(trustPath(tr.ID, "confirm"), w.owner.SignedChange(tr.ID)); a.Status != 409 {
		t.Errorf("confirming again: %d %s", a.Status, a.Body)
	}
}

// TestRegisterLink: looking spends nothing, using it does, and whoever comes
// later is told that somebody was there.
func TestRegisterLink(t *testing.T) {
	t.Parallel()
	w := withPasskey(t)
	token := w.registerLink()
	for range 3 {
		person, ends, err := w.s.Authority.RegisterLink(ctx, token)
		if err != nil || person.Email != authoritytest.OwnerEmail || !ends.Equal(w.s.Clock.Now().Add(10*time.Minute)) {
			t.Fatalf("the link is for %q until %s, %v", person.Email, ends, err)
		}
	}
	w.register(token)
	_, _, err := w.s.Authority.RegisterLink(ctx, token)
	if fails(t, "a used link", err, 410); kindOf(err) != "link_used" {
		t.Errorf("a used link is %q", kindOf(err))
	}
	_, _, err = w.s.Authority.RegisterOptions(ctx, token)
	if fails(t, "using it again", err, 410); kindOf(err) != "link_used" {
		t.Errorf("a link used again is %q", kindOf(err))
	}
	for _, other := range []string{"", "x", strings.Repeat("0", 64)} {
		_, _, err := w.s.Authority.RegisterLink(ctx, other)
		if fails(t, "no link", err, 410); kindOf(err) != "" {
			t.Errorf("%q is %q", other, kindOf(err))
		}
	}
	late := w.registerLink()
	w.s.Clock.Advance(10 * time.Minute)
	_, _, err = w.s.Authority.RegisterLink(ctx, late)
	fails(t, "after ten minutes", err, 410)
	_, _, err = w.s.Authority.RegisterOptions(ctx, late)
	fails(t, "used after ten minutes", err, 410)

	// The dialogue has its own five minutes.
	slow := w.registerLink()
	options, id, err := w.s.Authority.RegisterOptions(ctx, slow)
	if err != nil {
		t.Fatal(err)
	}
	response, err := passkeytest.New(w.s.Pages, "vogt.localhost").Create(options)
	if err != nil {
		t.Fatal(err)
	}
	w.s.Clock.Advance(5*time.Minute + time.Second)
	_, err = w.s.Authority.RegisterVerify(ctx, id, response, proofKey, "")
	fails(t, "a dialogue of more than five minutes", err, 410)
}

// TestPasskeyNames: those of one day can be told apart, also after one went.
func TestPasskeyNames(t *testing.T) {
	t.Parallel()
	w := withPasskey(t)
	names := func() (out []string) {
		account, err := w.s.Authority.Account(ctx, w.page, authoritytest.OwnerEmail)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range account.Passkeys {
			out = append(out, p.Name)
		}
		return out
	}
	w.register(w.registerLink())
	w.register(w.registerLink())
	account, err := w.s.Authority.Account(ctx, w.page, authoritytest.OwnerEmail)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range account.Passkeys {
		if p.Name == "Passkey 2026-03-04 (2)" {
			if err := w.s.Authority.RemovePasskey(ctx, w.page, p.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.register(w.registerLink())
	seen := map[string]bool{}
	for _, name := range names() {
		if seen[name] {
			t.Errorf("two passkeys are called %q", name)
		}
		seen[name] = true
	}
	if len(seen) != 3 || !seen["Passkey 2026-03-04"] || !seen["Passkey 2026-03-04 (2)"] || !seen["Passkey 2026-03-04 (3)"] {
		t.Errorf("the passkeys are called %q", names())
	}
}

// TestLastWay: the last key or passkey that decides stays, whatever else the
// account has.
func TestLastWay(t *testing.T) {
	t.Parallel()
	w := withPasskey(t)
	account, err := w.s.Authority.Account(ctx, w.page, authoritytest.OwnerEmail)
	if err != nil {
		t.Fatal(err)
	}
	first := account.Passkeys[0].ID
	refused := func(err error) {
		t.Helper()
		if fails(t, "removing the last way in", err, 403); kindOf(err) != "last_way" {
			t.Errorf("it is %q", kindOf(err))
		}
	}
	refused(w.s.Authority.RemovePasskey(ctx, w.page, first))
	unproven := w.page
	unproven.Proven = false
	w.register(w.registerLink())
	fails(t, "removing with the cookie alone", w.s.Authority.RemovePasskey(ctx, unproven, first), 403)
	if err := w.s.Authority.RemovePasskey(ctx, w.page, first); err != nil {
		t.Fatal(err)
	}
	if _, err := w.login(); err == nil {
		t.Error("a removed passkey signs in")
	}
	fails(t, "removing what is not there", w.s.Authority.RemovePasskey(ctx, w.page, first), 404)
}

// TestLogHead: the time is that of the signature, not that of the question.
func TestLogHead(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	if h, err := s.Authority.LogHead(ctx); err != nil || h.Size == 0 || h.Signed != 0 || !h.SignedAt.IsZero() {
		t.Errorf("before anything was signed: %+v, %v", h, err)
	}
	signed := s.Clock.Now()
	if _, err := s.Authority.LatestCheckpoint(ctx); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(time.Hour)
	// Signing what is signed already changes nothing.
	if _, err := s.Authority.LatestCheckpoint(ctx); err != nil {
		t.Fatal(err)
	}
	if h, err := s.Authority.LogHead(ctx); err != nil || h.Signed != h.Size || !h.SignedAt.Equal(signed) {
		t.Errorf("an hour after the signature of %s: %+v, %v", signed, h, err)
	}
	s.Owner()
	if h, err := s.Authority.LogHead(ctx); err != nil || h.Signed >= h.Size || h.SignedAt.After(s.Clock.Now()) {
		t.Errorf("after more was written: %+v, %v", h, err)
	}
}

// TestActivity names who did what, and is for people only.
func TestActivity(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	g := agent.Ask("uptime")
	owner.Post(authoritytest.GrantPath(g.ID, "deny"), nil).Want(200)
	s.Manager().Post(userPath(owner.Email)+"/ssh-keys", map[string]string{"publicKey": s.NewKey("added").Line}).Want(200)
	entries, err := s.Authority.Activity(ctx, owner.Actor(), store.LogFilter{Before: 1 << 62, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for i, e := range entries {
		if i > 0 && e.Index >= entries[i-1].Index {
			t.Error("the entries are not newest first")
		}
		key := e.Type + " by " + e.By.Name + " for " + e.Party.Name
		if e.By.Name == "" {
			key = e.Type + " by <" + e.By.Email + "> for " + e.Party.Name
		}
		found[key] = true
	}
	for _, want := range []string{
		"request by helper for helper", "decision by Owner for helper", "trust by Owner for helper", "login by helper for helper",
		"trust by <_management_> for Owner", "epoch by <> for ", "trust by <> for helper",
	} {
		if !found[want] {
			t.Errorf("there is no %q in %v", want, found)
		}
	}
	for name, who := range map[string]authority.Actor{"nobody": {}, "an agent": agent.Actor(), "management": {Means: authority.Management}} {
		if _, err := s.Authority.Activity(context.Background(), who, store.LogFilter{Before: 1 << 62, Limit: 1}); err == nil {
			t.Errorf("%s reads the activity", name)
		}
	}
}
