package backend_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/pages"
	"vogt/internal/pages/backend"
	"vogt/internal/passkey/passkeytest"
	"vogt/internal/statement"
)

// desk is the pages' backend over a real authority, with a person whose
// browser and passkey are software.
type desk struct {
	pages.Backend
	t      *testing.T
	s      *authoritytest.Server
	device *passkeytest.Authenticator
	mara   pages.Session
}

var proofKey = []byte("a page's public key")

func newDesk(t *testing.T) *desk {
	t.Helper()
	s := authoritytest.Start(t)
	d := &desk{Backend: backend.New(s.Authority, "none"), t: t, s: s, device: passkeytest.New(s.Pages, "vogt.localhost")}
	token, _, err := s.Authority.StartSetup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	view, err := d.OpenSetUp(token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authority.ConfirmSetup(view.Digits); err != nil {
		t.Fatal(err)
	}
	c, err := d.SetUp.BeginSetUp(t.Context(), pages.NewOwner{Token: token, Browser: "browser", Name: "Mara", Email: mara})
	if err != nil {
		t.Fatal(err)
	}
	in, err := d.SetUp.FinishSetUp(t.Context(), pages.NewPasskey{Token: token, Browser: "browser", Ceremony: c.ID, Response: d.create(d.device, c), ProofKey: proofKey, Agent: "set-up"})
	if err != nil {
		t.Fatal(err)
	}
	d.mara = in.Session
	return d
}

// OpenSetUp opens a set-up link in the one browser of the test.
func (d *desk) OpenSetUp(token string) (pages.SetUpView, error) {
	return d.SetUp.OpenSetUp(d.t.Context(), token, "browser")
}

func (d *desk) create(device *passkeytest.Authenticator, c pages.Ceremony) json.RawMessage {
	d.t.Helper()
	response, err := device.Create(c.Options)
	if err != nil {
		d.t.Fatal(err)
	}
	return response
}

// signIn signs in once more, as another browser does.
func (d *desk) signIn() pages.Session {
	d.t.Helper()
	c, err := d.Sessions.BeginLogin(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	response, err := d.device.Get(c.Options)
	if err != nil {
		d.t.Fatal(err)
	}
	in, err := d.Sessions.FinishLogin(d.t.Context(), pages.NewPasskey{Ceremony: c.ID, Response: response, ProofKey: proofKey, Agent: "another"})
	if err != nil {
		d.t.Fatal(err)
	}
	return in.Session
}

// prepare prepares a change as session s.
func (d *desk) prepare(s pages.Session, operation string, params map[string]string) string {
	d.t.Helper()
	id, err := d.Trusts.PrepareTrust(d.t.Context(), s, pages.NewTrust{Operation: operation, Params: params})
	if err != nil {
		d.t.Fatal(err)
	}
	return id
}

// confirm confirms a change as session s.
func (d *desk) confirm(s pages.Session, id string) (string, error) {
	d.t.Helper()
	view, err := d.Trusts.Trust(d.t.Context(), s, id)
	if err != nil {
		d.t.Fatal(err)
	}
	options, err := d.Confirms.BeginConfirm(d.t.Context(), s, id, *view.Digest)
	if err != nil {
		return "", err
	}
	response, err := d.device.Get(options)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.Confirms.Confirm(d.t.Context(), s, pages.TrustAnswer{ID: id, Digest: *view.Digest, Assertion: response})
}

func is(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// TestLinkIsForTheSessionThatConfirmed: not for the one that prepared the
// change, and not a second time.
func TestLinkIsForTheSessionThatConfirmed(t *testing.T) {
	d := newDesk(t)
	other := d.signIn()
	id := d.prepare(d.mara, api.TrustPasskeyAdd, map[string]string{})
	link, err := d.confirm(other, id)
	if err != nil || !strings.HasPrefix(link, d.s.Pages+"/register?token=") {
		t.Fatalf("the session that confirmed got %q, %v", link, err)
	}
	for _, s := range []pages.Session{d.mara, other} {
		if view, err := d.Trusts.Trust(t.Context(), s, id); err != nil || view.Link != "" || view.Status != "confirmed" {
			t.Errorf("afterwards a session reads %+v, %v", view, err)
		}
	}
	again, err := d.confirm(d.mara, id)
	if is(t, "confirming again", err, pages.ErrClosed); again != "" {
		t.Errorf("confirming again gives %q", again)
	}

	// Prepared by a stranger: the link is the person's all the same.
	change, secret := d.s.Stranger().Prepare(api.TrustPasskeyAdd, nil)
	if link, err := d.confirm(d.mara, change.ID); err != nil || link == "" {
		t.Errorf("the person got %q, %v", link, err)
	}
	if a := d.s.Stranger().Do("GET", api.PathTrust+"/"+change.ID, nil, api.TrustSecretHeader, secret); strings.Contains(string(a.Body), "register") {
		t.Errorf("the stranger got %s", a.Body)
	}
}

// TestRegistration: the link's states as the pages know them.
func TestRegistration(t *testing.T) {
	d := newDesk(t)
	token := func() string {
		t.Helper()
		link, err := d.confirm(d.mara, d.prepare(d.mara, api.TrustPasskeyAdd, map[string]string{}))
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("token")
	}
	one := token()
	if v, err := d.Links.Link(t.Context(), one); err != nil || v.Person.Email != mara || v.Person.Name != "Mara" || !v.Expires.Equal(d.s.Clock.Now().Add(10*time.Minute)) {
		t.Errorf("the link is %+v, %v", v, err)
	}
	c, err := d.Links.BeginRegister(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.device.Create(c.Options); err == nil {
		t.Error("a device that has a passkey makes another one")
	}
	_, err = d.Links.Link(t.Context(), one)
	is(t, "a used link", err, pages.ErrUsed)
	_, err = d.Links.BeginRegister(t.Context(), one)
	is(t, "using it again", err, pages.ErrUsed)
	second := passkeytest.New(d.s.Pages, "vogt.localhost")
	in, err := d.Links.FinishRegister(t.Context(), pages.NewPasskey{Ceremony: c.ID, Response: d.create(second, c), ProofKey: proofKey, Agent: "phone"})
	if err != nil || in.Session.Person.Email != mara || in.Cookie == "" {
		t.Fatalf("registered as %+v, %v", in.Session, err)
	}
	if s, err := d.Sessions.Session(t.Context(), in.Cookie); err != nil || s.ID != in.Session.ID {
		t.Errorf("the new session is %+v, %v", s, err)
	}

	late := token()
	d.s.Clock.Advance(10 * time.Minute)
	_, err = d.Links.Link(t.Context(), late)
	is(t, "after ten minutes", err, pages.ErrExpired)
	slow := token()
	if c, err = d.Links.BeginRegister(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	d.s.Clock.Advance(5*time.Minute + time.Second)
	_, err = d.Links.FinishRegister(t.Context(), pages.NewPasskey{Ceremony: c.ID, Response: d.create(passkeytest.New(d.s.Pages, "vogt.localhost"), c), ProofKey: proofKey})
	is(t, "a dialogue of more than five minutes", err, pages.ErrExpired)

	// The account lists both, and gives one away.
	account, err := d.Accounts.Account(t.Context(), d.mara)
	if err != nil || len(account.Passkeys) != 2 || account.Passkeys[0].Name == account.Passkeys[1].Name {
		t.Fatalf("the passkeys are %+v, %v", account.Passkeys, err)
	}
	if err := d.Removals.RemovePasskey(t.Context(), d.mara, account.Passkeys[1].ID); err != nil {
		t.Fatal(err)
	}
	is(t, "removing the last", d.Removals.RemovePasskey(t.Context(), d.mara, account.Passkeys[0].ID), pages.ErrLastWay)
	is(t, "removing what is gone", d.Removals.RemovePasskey(t.Context(), d.mara, account.Passkeys[1].ID), pages.ErrNotFound)
}

// TestKeys: own ones, those of management, and those of others.
func TestKeys(t *testing.T) {
	d := newDesk(t)
	own, managed, agents := d.s.NewKey("laptop"), d.s.NewKey("backup"), d.s.NewKey("helper")
	if _, err := d.confirm(d.mara, d.prepare(d.mara, api.TrustKeyAdd, map[string]string{"public_key": own.Line})); err != nil {
		t.Fatal(err)
	}
	_, err := d.confirm(d.mara, d.prepare(d.mara, api.TrustKeyAdd, map[string]string{"public_key": own.Line}))
	is(t, "the same key again", err, pages.ErrTaken)
	add := map[string]string{"name": "helper", "public_key": agents.Line}
	if _, err := d.confirm(d.mara, d.prepare(d.mara, api.TrustAgentAdd, add)); err != nil {
		t.Fatal(err)
	}
	add["public_key"] = d.s.NewKey("other").Line
	_, err = d.confirm(d.mara, d.prepare(d.mara, api.TrustAgentAdd, add))
	is(t, "the same agent again", err, pages.ErrTaken)
	d.s.Manager().Post("/api/admin/users/"+url.PathEscape(mara)+"/ssh-keys", map[string]string{"publicKey": managed.Line}).Want(200)

	account, err := d.Accounts.Account(t.Context(), d.mara)
	if err != nil || len(account.Keys) != 2 {
		t.Fatalf("the keys are %+v, %v", account.Keys, err)
	}
	now := d.s.Clock.Now()
	for _, k := range account.Keys {
		doubtful := k.ID == string(managed.Private.Public().ID())
		if k.Managed != doubtful || k.LoginOnly != doubtful || k.Dormant.After(now) != doubtful || k.Fingerprint == "" {
			t.Errorf("%+v, and management added it: %t", k, doubtful)
		}
	}
	is(t, "an agent's key", d.Removals.RemoveKey(t.Context(), d.mara, string(agents.Private.Public().ID())), pages.ErrNotFound)
	for _, k := range account.Keys {
		if err := d.Removals.RemoveKey(t.Context(), d.mara, k.ID); err != nil {
			t.Errorf("removing %s: %v", k.Name, err)
		}
	}
	// Without a passkey a page confirms nothing, and says why.
	own = d.s.NewKey("again")
	if _, err := d.confirm(d.mara, d.prepare(d.mara, api.TrustKeyAdd, map[string]string{"public_key": own.Line})); err != nil {
		t.Fatal(err)
	}
	if err := d.Removals.RemovePasskey(t.Context(), d.mara, account.Passkeys[0].ID); err != nil {
		t.Fatal(err)
	}
	_, err = d.confirm(d.mara, d.prepare(d.mara, api.TrustPasskeyAdd, map[string]string{}))
	is(t, "without a passkey", err, pages.ErrNoPasskey)

	// Whoever was signed out meanwhile takes nothing away.
	if err := d.Sessions.EndSession(t.Context(), d.mara, d.mara.ID); err != nil {
		t.Fatal(err)
	}
	is(t, "after signing out", d.Removals.RemovePasskey(t.Context(), d.mara, account.Passkeys[0].ID), pages.ErrNoSession)
}

// allow answers a request of the agent with a reach that its card offers.
func (d *desk) allow(id string, kind grant.Type) {
	d.t.Helper()
	card, err := d.Cards.Card(d.t.Context(), d.mara, id)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, o := range card.Offers {
		if o.Type != kind {
			continue
		}
		c := pages.Choice{Grant: id, Type: kind, Digest: o.Statement.Digest()}
		if o.Statement.Expiry != nil {
			c.Expires = int64(*o.Statement.Expiry)
		}
		if kind != grant.Timed {
			c.Expires = 0
		}
		if err := d.Decisions.Decide(d.t.Context(), d.mara, pages.Decision{Choice: c, Allow: true}); err != nil {
			d.t.Fatal(err)
		}
		return
	}
	d.t.Fatalf("grant %s: no %s offer", id, kind)
}

// TestPermissions: an agent's page lists what it may do without asking, however
// many single permissions are newer, and only for those whose agent it is.
func TestPermissions(t *testing.T) {
	d := newDesk(t)
	key := d.s.NewKey("helper")
	id := d.prepare(d.mara, api.TrustAgentAdd, map[string]string{"name": "helper", "public_key": key.Line})
	if _, err := d.confirm(d.mara, id); err != nil {
		t.Fatal(err)
	}
	agents, err := d.People.Agents(t.Context(), d.mara)
	if err != nil || len(agents) != 1 {
		t.Fatalf("agents: %+v, %v", agents, err)
	}
	agent := &authoritytest.Principal{Client: authoritytest.Client{S: d.s}, Name: "helper", Email: agents[0].Email, Key: key}
	agent.Login()
	list := func(limit int) (out []string) {
		t.Helper()
		grants, err := d.Cards.Permissions(t.Context(), d.mara, agent.Email, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range grants {
			out = append(out, string(g.Type)+" "+g.Request.Command[0])
		}
		return out
	}
	if got := list(5); got != nil {
		t.Errorf("at first: %q", got)
	}
	always, timed := agent.Ask("make", "test").ID, agent.Ask("npm", "ci").ID
	agent.Ask("cargo", "build") // waits
	d.allow(always, grant.Always)
	d.s.Clock.Advance(time.Second)
	d.allow(timed, grant.Timed)
	for i := range 120 {
		d.s.Clock.Advance(100 * time.Millisecond)
		d.allow(agent.Ask("once", strconv.Itoa(i)).ID, grant.Once)
	}
	if got := list(5); len(got) != 2 || !slices.Contains(got, "timed npm") || !slices.Contains(got, "always make") {
		t.Errorf("beneath 120 single permissions: %q", got)
	}
	if got := list(1); len(got) != 1 {
		t.Errorf("limited to 1: %q", got)
	}
	d.s.Clock.Advance(25 * time.Hour)
	d.mara = d.signIn()
	if got := list(5); !slices.Equal(got, []string{"always make"}) {
		t.Errorf("after the end of the timed one: %q", got)
	}
	if err := d.Decisions.Revoke(t.Context(), d.mara, always); err != nil {
		t.Fatal(err)
	}
	if got := list(5); got != nil {
		t.Errorf("after revoking: %q", got)
	}
	_, err = d.Cards.Permissions(t.Context(), d.mara, mara+".other", 5)
	is(t, "somebody else's", err, pages.ErrForbidden)
}

// TestReading: a card has the authority's own reading of what its statement
// binds, whatever the request says of itself, and keeps it when it is answered.
func TestReading(t *testing.T) {
	d := newDesk(t)
	key := d.s.NewKey("helper")
	if _, err := d.confirm(d.mara, d.prepare(d.mara, api.TrustAgentAdd, map[string]string{"name": "helper", "public_key": key.Line})); err != nil {
		t.Fatal(err)
	}
	agents, err := d.People.Agents(t.Context(), d.mara)
	if err != nil || len(agents) != 1 {
		t.Fatalf("agents: %+v, %v", agents, err)
	}
	agent := &authoritytest.Principal{Client: authoritytest.Client{S: d.s}, Name: "helper", Email: agents[0].Email, Key: key}
	agent.Login()
	script := "cat notes.txt; sudo rm -rf ../cache"
	folder := "/home/mara/shop"
	argv := []string{"sh", "-c", script}
	id := agent.AskFor(grant.Request{
		Host: "nuc", Audience: "vogt", Type: grant.Once, Command: argv, Context: &grant.Context{Argv: argv, Executable: "/bin/ls", Cwd: &statement.File{Path: &folder}},
		Details: []detail.Wire{{Type: detail.WireCLI, CLI: "ls", Operation: "ls", Chain: []detail.Resource{{Name: "read"}}, Action: "read", Risk: "low", Permission: "ls.read[*]#read", Display: "Only looks around"}},
	}).ID
	look := func() {
		t.Helper()
		c, err := d.Cards.Card(t.Context(), d.mara, id)
		if err != nil {
			t.Fatal(err)
		}
		r := c.Reading
		if r == nil || !slices.Equal(r.Programs(), []string{"sh", "cat", "sudo", "rm"}) || r.Risk != detail.Critical || r.Risk != c.Grant.Risk {
			t.Fatalf("the reading is %+v, and the card is %s", r, c.Grant.Risk)
		}
		if !slices.Equal(r.Paths.Reads, []string{"/home/mara/shop/notes.txt"}) || !slices.Equal(r.Paths.Deletes, []string{"/home/mara/cache"}) {
			t.Errorf("it touches %+v", r.Paths)
		}
	}
	look()
	card, err := d.Cards.Card(t.Context(), d.mara, id)
	if err != nil {
		t.Fatal(err)
	}
	no := pages.Decision{Choice: pages.Choice{Grant: id, Type: grant.Once, Digest: card.Statement.Digest()}}
	if err := d.Decisions.Decide(t.Context(), d.mara, no); err != nil {
		t.Fatal(err)
	}
	look()
}

// TestEntriesHaveNames: people and agents by name, and who is neither.
func TestEntriesHaveNames(t *testing.T) {
	d := newDesk(t)
	d.s.Manager().Post("/api/admin/users", map[string]string{"email": "jonas@home.example", "name": "Jonas"}).Want(200)
	change, secret := d.s.Stranger().Prepare(api.TrustDevice, map[string]string{"name": "laptop"})
	d.s.Stranger().Do("POST", api.PathTrust+"/"+change.ID+"/decline", nil, api.TrustSecretHeader, secret).Want(200)
	entries, err := d.Log.Entries(t.Context(), d.mara, pages.LogQuery{Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, e := range entries {
		found[e.Type+" by "+e.By.Name+"<"+e.By.Email+"> for "+e.Agent.Name+"<"+e.Agent.Email+">"] = true
	}
	for _, want := range []string{
		"login by Mara<" + mara + "> for Mara<" + mara + ">",
		"trust by <" + pages.Management + "> for Jonas<jonas@home.example>",
		"refusal by <" + pages.Anonymous + "> for <>",
		"epoch by <> for <>",
	} {
		if !found[want] {
			t.Errorf("no entry is %q: %v", want, found)
		}
	}
	page, err := d.Log.Entries(t.Context(), d.mara, pages.LogQuery{Limit: 2, Before: 3})
	if err != nil || len(page) != 2 || page[0].Index != 2 || page[1].Index != 1 {
		t.Errorf("before record 3 there is %+v, %v", page, err)
	}
}

// TestLogState: the checkpoint's time is that of its signature.
func TestLogState(t *testing.T) {
	d := newDesk(t)
	if st, err := d.Log.LogState(t.Context()); err != nil || st.Signed != 0 || !st.CheckpointAt.IsZero() {
		t.Errorf("before any checkpoint: %+v, %v", st, err)
	}
	if _, err := d.s.Authority.LatestCheckpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	signed := d.s.Clock.Now()
	d.s.Clock.Advance(time.Hour)
	if st, err := d.Log.LogState(t.Context()); err != nil || st.Signed != st.Size || !st.CheckpointAt.Equal(signed) {
		t.Errorf("an hour after %s: %+v, %v", signed, st, err)
	}
}

// TestProtection says nothing that it does not know.
func TestProtection(t *testing.T) {
	d := newDesk(t)
	p, err := d.Accounts.Protection(t.Context())
	if want := (pages.Protection{Enforcement: "advisory", Loopback: true, Bearer: "none"}); err != nil || p != want {
		t.Errorf("%+v, %v; want %+v", p, err, want)
	}
}
