package authority

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"vogt/internal/api"
	"vogt/internal/grant"
	"vogt/internal/passkey"
	"vogt/internal/sshkey"
	"vogt/internal/store"
)

var agentName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,23}$`)

// plainEmail admits what people have and agents get; their hosts may carry a
// port. Quoted local parts are left out on purpose: they only confuse readers.
var plainEmail = regexp.MustCompile(`^[A-Za-z0-9._%+-]+@[A-Za-z0-9._:-]+$`)

const maxAgents = 100 // of one owner

// AgentEmail is the address of an agent: its name, eight hex digits of the
// owner's hash, the owner, and the authority's host.
func AgentEmail(name, owner, issuer string) string {
	owner = strings.ToLower(strings.TrimSpace(owner))
	sum := sha256.Sum256([]byte(owner))
	local, domain, _ := strings.Cut(owner, "@")
	host := issuer
	if u, err := url.Parse(issuer); err == nil {
		host = u.Host
	}
	return fmt.Sprintf("%s-%s+%s+%s@%s", name, hex.EncodeToString(sum[:4]), local, strings.ReplaceAll(domain, ".", "_"), lower(host))
}

// lower is the one form in which addresses are kept and compared. Only the
// letters that an address may have are changed, so that nothing else turns into
// one of them.
func lower(email string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, email)
}

func checkEmail(email string) error {
	if len(email) > maxIdentityLen || !plainEmail.MatchString(email) {
		return problem(400, "The e-mail address cannot be used", fmt.Sprintf("%q is not a plain address such as you@example.com.", shorten(email, 100)), "")
	}
	return nil
}

func checkName(name string) error {
	if name == "" || len(name) > 200 || !plainText(name) {
		return problem(400, "The name cannot be used", "It must be plain text of 1 to 200 bytes.", "")
	}
	return nil
}

// plainText reports whether s reads as it is: nothing in it moves the cursor,
// hides, or turns the direction of what follows (Unicode Standard Annex #9).
func plainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
	})
}

// CreateOwner makes the first person, with an SSH key. It works once: a
// second call for another person is refused, the same call again is not.
func (a *Authority) CreateOwner(ctx context.Context, email, name, publicKey string) error {
	if err := checkEmail(email); err != nil {
		return err
	}
	email = lower(email)
	if name == "" {
		name, _, _ = strings.Cut(email, "@")
	}
	if err := checkName(name); err != nil {
		return err
	}
	key, err := sshkey.ParsePublic(publicKey)
	if err != nil {
		return problem(400, "The owner's key cannot be used", err.Error(), "Give the public half of an ssh-ed25519 key.")
	}
	return a.update(ctx, func(t *txn) error {
		if k, err := store.KeyByID(t, string(key.ID())); err == nil && k.Email == email {
			return nil
		}
		if err := t.firstPerson(email, name); err != nil {
			return err
		}
		return t.addKey(email, newKey{Public: key, source: sourceOwner})
	})
}

// firstPerson adds the owner if there never was a person.
func (t *txn) firstPerson(email, name string) error {
	has, err := store.HasPerson(t)
	if err != nil {
		return err
	}
	if has {
		return problem(409, "This authority has an owner already", "", "Log in as the owner; further people are added by management.")
	}
	p := store.Principal{Email: email, Kind: kindPerson, Name: name, Created: int64(t.now)}
	if err := store.InsertPrincipal(t, &p); err != nil {
		return err
	}
	_, err = t.record(recordTrust, "", email, trustRecord{Operation: "owner.create", By: email, Subject: email})
	return err
}

// How a key came; see store.Key.
const (
	sourceOwner      = "owner"
	sourceTrust      = "trust"
	sourceManagement = "management"
)

// newKey is a key as it is added to an account.
type newKey struct {
	sshkey.Public
	name         string // "" takes the key's comment
	source       string
	by           string // who added it, where that is not the source
	dormantUntil int64
	weak         bool
}

func (t *txn) addKey(email string, key newKey) error {
	if key.name == "" {
		key.name = key.Comment()
	}
	k := store.Key{
		ID: string(key.ID()), Email: email, Name: key.name, PublicKey: key.String(), Source: key.source,
		Created: int64(t.now), DormantUntil: key.dormantUntil, Weak: key.weak,
	}
	if err := store.InsertKey(t, k); errors.Is(err, store.ErrConflict) {
		return problem(409, "This key is registered already", "A key belongs to one principal only.", "Use another key.").kind("taken")
	} else if err != nil {
		return err
	}
	_, err := t.record(recordTrust, "", email, trustRecord{
		Operation: "key.added", By: cmp.Or(key.by, key.source), Subject: email, DormantUntil: key.dormantUntil,
		Params: map[string]string{"key_id": k.ID, "fingerprint": key.Fingerprint()},
	})
	return err
}

// addPrincipal adds p or enrols it anew. store.ErrConflict means that the address
// is in use.
func (t *txn) addPrincipal(p *store.Principal) error {
	old, err := store.PrincipalByEmail(t, p.Email)
	if err == nil && old.Removed && old.Kind != p.Kind {
		was := "a person"
		if old.Kind == kindAgent {
			was = "an agent"
		}
		return problem(409, "This address was "+was+"'s", "The log names "+p.Email+" as "+was+", and it stays that.", "Choose another address.").kind("taken")
	}
	return store.InsertPrincipal(t, p)
}

// addAgent enrols an agent of owner with one key and, unless safe is "off", with
// the safe commands in the folders that it lists. The next record must say who has
// confirmed it.
func (t *txn) addAgent(owner store.Principal, name string, key sshkey.Public, safe string, strength grant.Strength) (api.Enrolled, error) {
	if !agentName.MatchString(name) {
		return api.Enrolled{}, problem(400, "The agent's name cannot be used", fmt.Sprintf("%q: want a lower-case letter, then up to 23 letters, digits or hyphens.", name), "")
	}
	agents, err := store.Principals(t, owner.Email)
	if err != nil {
		return api.Enrolled{}, err
	}
	if len(agents) >= maxAgents {
		return api.Enrolled{}, problem(409, "You have too many agents", fmt.Sprintf("The limit is %d.", maxAgents), "Remove one first: vogt agent remove NAME.")
	}
	p := store.Principal{
		Email: AgentEmail(name, owner.Email, t.a.cfg.Issuer), Kind: kindAgent, Name: name,
		Owner: owner.Email, Approver: owner.Email, Created: max(int64(t.now), owner.Created),
	}
	if err := t.addPrincipal(&p); errors.Is(err, store.ErrConflict) {
		return api.Enrolled{}, problem(409, "An agent with this name already exists", "", "Choose a different name, or remove it first: vogt agent remove "+name+".").kind("taken")
	} else if err != nil {
		return api.Enrolled{}, err
	}
	if err := t.addKey(p.Email, newKey{Public: key, source: sourceTrust}); err != nil {
		return api.Enrolled{}, err
	}
	out := api.Enrolled{Email: p.Email, Name: p.Name, Owner: p.Owner, Approver: p.Approver, Status: "active"}
	folders, safe, err := safeFolders(safe)
	if err != nil {
		return out, err
	}
	if safe != safeOff {
		s, err := t.seedSafe(owner, p.Email, folders, owner.Email, strength)
		if err != nil {
			return out, err
		}
		out.SafeCommands, out.Safe, out.Folders = len(s.Pattern.Programs), s.ID, s.Pattern.Folders()
	}
	return out, nil
}

// EnrolByBearer is the wire's enrolment with nothing but a person's token. It
// is a change of trust, so it works only under the bearer_decisions switch.
func (a *Authority) EnrolByBearer(ctx context.Context, by Actor, name, publicKey string) (api.Enrolled, error) {
	if !by.Person() {
		return api.Enrolled{}, problem(403, "Only a person enrols agents", "", "Ask your owner: vogt agent add NAME.").kind("forbidden")
	}
	if a.cfg.Bearer == 0 {
		return api.Enrolled{}, problem(403, "A login alone enrols nobody", "It is a change of trust and needs a proof made for it.",
			"Use `vogt agent add "+name+"`, or set the authority's bearer_decisions switch for clients that cannot sign.").kind("forbidden")
	}
	key, err := sshkey.ParsePublic(publicKey)
	if err != nil {
		return api.Enrolled{}, problem(400, "The agent's key cannot be used", err.Error(), "")
	}
	var out api.Enrolled
	err = a.update(ctx, func(t *txn) error {
		if err := t.still(by, proven{strength: grant.Bearer}); err != nil {
			return err
		}
		if out, err = t.addAgent(by.Principal, name, key, "", grant.Bearer); err != nil {
			return err
		}
		_, err := t.record(recordTrust, "", out.Email, trustRecord{
			Operation: api.TrustAgentAdd, By: by.Name(), Subject: out.Email, Strength: grant.Bearer, Params: map[string]string{"safe": "[]", "id": out.Safe},
		})
		return err
	})
	return out, err
}

// ManagedUser is what management may set of a principal.
type ManagedUser struct {
	Email, Name, PublicKey, Owner, Approver, Kind string
	NoSafe                                        bool // an agent without the safe commands
}

// ManageUser creates a principal by the management token. It never touches
// one that exists.
func (a *Authority) ManageUser(ctx context.Context, by Actor, u ManagedUser) (store.Principal, api.Standing, error) {
	var p store.Principal
	var safe store.Standing
	bad := func(err error) (store.Principal, api.Standing, error) { return p, api.Standing{}, err }
	if !by.manages() {
		return bad(errManagement())
	}
	if err := checkEmail(u.Email); err != nil {
		return bad(err)
	}
	u.Email, u.Owner, u.Approver = lower(u.Email), lower(u.Owner), lower(u.Approver)
	if u.Name == "" {
		u.Name, _, _ = strings.Cut(u.Email, "@")
	}
	if err := checkName(u.Name); err != nil {
		return bad(err)
	}
	if u.Kind == "" {
		u.Kind = kindPerson
		if u.Owner != "" {
			u.Kind = kindAgent
		}
	}
	if u.Kind != kindPerson && u.Kind != kindAgent || (u.Kind == kindPerson) != (u.Owner == "") {
		return bad(problem(400, "The kind of principal is wrong", "type is human without owner, or agent with owner.", ""))
	}
	if u.Approver == "" {
		u.Approver = u.Owner
	}
	p = store.Principal{Email: u.Email, Kind: u.Kind, Name: u.Name, Owner: u.Owner, Approver: u.Approver, Active: true}
	var added store.Key
	err := a.update(ctx, func(t *txn) error {
		if err := t.manages(by); err != nil {
			return err
		}
		p.Created = int64(t.now)
		var owner store.Principal
		for _, person := range uniq(u.Owner, u.Approver) {
			if person == "" {
				continue
			}
			o, err := store.PrincipalByEmail(t, person)
			if err != nil || o.Kind != kindPerson || !usable(o) {
				return problem(400, "There is no such person", fmt.Sprintf("%q can be neither owner nor approver.", person), "")
			}
			p.Created = max(p.Created, o.Created)
			if person == u.Owner {
				owner = o
			}
		}
		if err := t.addPrincipal(&p); errors.Is(err, store.ErrConflict) {
			return problem(409, "This address is taken", u.Email+" exists.", "")
		} else if err != nil {
			return err
		}
		var params map[string]string
		if u.Kind == kindAgent && !u.NoSafe {
			s, err := t.seedSafe(owner, p.Email, nil, by.Name(), grant.Bearer)
			if err != nil {
				return err
			}
			safe, params = s, map[string]string{"safe": "[]", "id": s.ID}
		}
		if _, err := t.record(recordTrust, "", p.Email, trustRecord{Operation: "principal.create", By: by.Name(), Subject: p.Email, Params: params}); err != nil {
			return err
		}
		if u.PublicKey == "" {
			return nil
		}
		key, err := sshkey.ParsePublic(u.PublicKey)
		if err != nil {
			return problem(400, "The key cannot be used", err.Error(), "")
		}
		added, err = t.manageKey(by, p, "", key)
		return err
	})
	if err != nil {
		return bad(err)
	}
	a.announceKey(added)
	return p, a.standingView(safe), nil
}

func errManagement() *Error {
	return problem(403, "This needs the management token or the admin role", "",
		"Set VOGT_MANAGEMENT_TOKEN for the authority and send it as bearer, or sign in at the pages as an administrator.").kind("forbidden")
}

// ManageKey adds a key by the management token, see txn.manageKey.
func (a *Authority) ManageKey(ctx context.Context, by Actor, email, name, publicKey string) (store.Key, error) {
	if !by.manages() {
		return store.Key{}, errManagement()
	}
	key, err := sshkey.ParsePublic(publicKey)
	if err != nil {
		return store.Key{}, problem(400, "The key cannot be used", err.Error(), "Give one line: ssh-ed25519 BASE64 COMMENT.")
	}
	if name != "" {
		if err := checkName(name); err != nil {
			return store.Key{}, err
		}
	}
	if err := checkEmail(email); err != nil {
		return store.Key{}, err
	}
	email = lower(email)
	var out store.Key
	err = a.update(ctx, func(t *txn) error {
		if err := t.manages(by); err != nil {
			return err
		}
		p, err := store.PrincipalByEmail(t, email)
		if errors.Is(err, store.ErrNotFound) {
			local, _, _ := strings.Cut(email, "@")
			p = store.Principal{Email: email, Kind: kindPerson, Name: local, Created: int64(t.now), Active: true}
			err = store.InsertPrincipal(t, &p)
		}
		if err != nil {
			return err
		}
		if !usable(p) {
			return inactive(email)
		}
		out, err = t.manageKey(by, p, name, key)
		return err
	})
	if err == nil {
		a.announceKey(out)
	}
	return out, err
}

// manageKey adds a key to p on behalf of management. To an account that was
// ever somebody's it is dormant for a while, announced, and good for logging in
// only: management alone never gains a decision, also not by removing a person
// and enrolling the address anew. Whom it has to give a new start gets a new
// address.
func (t *txn) manageKey(by Actor, p store.Principal, name string, key sshkey.Public) (store.Key, error) {
	keys, err := store.Keys(t, p.Email)
	if err != nil {
		return store.Key{}, err
	}
	passkeys, err := store.Passkeys(t, p.Email)
	if err != nil {
		return store.Key{}, err
	}
	n := newKey{Public: key, name: name, source: sourceManagement, by: by.Name()}
	if len(keys)+len(passkeys) > 0 || wasUsed(p) {
		n.weak, n.dormantUntil = true, int64(t.now)+t.a.cfg.Dormancy.Milliseconds()
	}
	if err := t.addKey(p.Email, n); err != nil {
		return store.Key{}, err
	}
	return store.KeyByID(t, string(key.ID()))
}

// wasUsed reports whether the account was ever somebody's: it had a key then,
// also if it has none now.
func wasUsed(p store.Principal) bool {
	return p.LastLogin != 0 || p.Kind == kindPerson && p.Generation > 1
}

// announceKey tells a person of a key that others added to the account.
func (a *Authority) announceKey(k store.Key) {
	if k.DormantUntil == 0 || a.announce == nil {
		return
	}
	a.announce(k.Email, "A key was added to your account by management. It can log in from "+
		grant.Millis(k.DormantUntil).Time().UTC().Format("2 January 2006 15:04 UTC")+
		" and never decides. If it is not yours, sign in with your passkey, which cancels it, or remove it.")
}

// RemoveKey deletes a key: a person its own or its agents', management any.
// It narrows, so a login is enough.
func (a *Authority) RemoveKey(ctx context.Context, by Actor, email, keyID string) error {
	email = lower(email)
	return a.narrow(ctx, func(t *txn) error {
		if err := t.mayNarrow(by, email); err != nil {
			return err
		}
		if err := t.keepWay(email, keyID); err != nil {
			return err
		}
		if err := store.DeleteKey(t, email, keyID); errors.Is(err, store.ErrConflict) {
			return problem(404, "There is no such key", "", "")
		} else if err != nil {
			return err
		}
		_, err := t.record(recordTrust, "", email, trustRecord{Operation: "key.removed", By: by.Name(), Subject: email, Params: map[string]string{"key_id": keyID}})
		return err
	})
}

// keepWay refuses to take from a person the last key or passkey that it can
// decide with: nothing could confirm a new one. id is what would be removed.
func (t *txn) keepWay(email, id string) error {
	p, err := store.PrincipalByEmail(t, email)
	if err != nil || p.Kind != kindPerson {
		return ignoreNotFound(err)
	}
	keys, err := store.Keys(t, email)
	if err != nil {
		return err
	}
	passkeys, err := store.Passkeys(t, email)
	if err != nil {
		return err
	}
	found, left := false, 0
	count := func(key string) {
		if key == id {
			found = true
		} else {
			left++
		}
	}
	for _, k := range keys {
		if !k.Weak {
			count(k.ID)
		}
	}
	for _, k := range passkeys {
		count(k.ID)
	}
	if found && left == 0 {
		return problem(403, "This is the last way into the account", "", "Add another passkey or key first.").kind("last_way")
	}
	return nil
}

// keepDecider refuses to remove or switch off the last person who can decide:
// whoever comes after could confirm nothing and answer nobody.
func (t *txn) keepDecider(email string) error {
	p, err := store.PrincipalByEmail(t, email)
	if err != nil || p.Kind != kindPerson || !usable(p) {
		return ignoreNotFound(err)
	}
	all, err := store.Deciders(t, "", int64(t.now))
	if err != nil {
		return err
	}
	others, err := store.Deciders(t, email, int64(t.now))
	if err != nil || others > 0 || all == 0 {
		return err
	}
	return problem(409, "This is the last person who can decide", "Without "+email+" nobody could answer a request or confirm a change.",
		"Enrol another person with a key of its own first.").kind("last_decider")
}

// mayNarrow reports whether the actor may take something away from email: its
// own, its agents', or anything by management.
func (t *txn) mayNarrow(by Actor, email string) error {
	if by.manages() {
		return t.manages(by)
	}
	if !by.Person() || by.Means == Page && !by.Proven {
		return problem(403, "Only a signed-in person may do this", "", "").kind("forbidden")
	}
	if by.Principal.Email == email {
		return nil
	}
	p, err := store.PrincipalByEmail(t, email)
	if err != nil || p.Removed || p.Owner != by.Principal.Email {
		return problem(404, "There is no such agent", "", "See yours: vogt agent list.")
	}
	return nil
}

// Deactivate switches a principal off. Its tokens, sessions and open requests
// end in the same transaction.
func (a *Authority) Deactivate(ctx context.Context, by Actor, email string) error {
	email = lower(email)
	return a.narrow(ctx, func(t *txn) error {
		if err := t.mayNarrow(by, email); err != nil {
			return err
		}
		if err := t.keepDecider(email); err != nil {
			return err
		}
		if err := store.SetActive(t, email, false); errors.Is(err, store.ErrConflict) {
			return problem(404, "There is no such principal", "", "")
		} else if err != nil {
			return err
		}
		return t.cutOff(by, email, "principal.deactivated")
	})
}

// Activate is management's: a person's own way is a change of trust.
func (a *Authority) Activate(ctx context.Context, by Actor, email string) error {
	email = lower(email)
	if !by.manages() {
		return errManagement()
	}
	return a.update(ctx, func(t *txn) error {
		if err := t.manages(by); err != nil {
			return err
		}
		if err := store.SetActive(t, email, true); err != nil {
			return err
		}
		_, err := t.record(recordTrust, "", email, trustRecord{Operation: "principal.activated", By: by.Name(), Subject: email})
		return err
	})
}

// Remove deletes a principal's keys and logins for good. The address stays
// taken until it is enrolled anew, under the next generation.
func (a *Authority) Remove(ctx context.Context, by Actor, email string) error {
	email = lower(email)
	return a.narrow(ctx, func(t *txn) error {
		if err := t.mayNarrow(by, email); err != nil {
			return err
		}
		if by.Principal.Email == email {
			return problem(400, "You cannot remove yourself", "", "Management can: it holds the management token.")
		}
		if err := t.keepDecider(email); err != nil {
			return err
		}
		if err := store.RemovePrincipal(t, email); errors.Is(err, store.ErrConflict) {
			return problem(404, "There is no such principal", "", "")
		} else if err != nil {
			return err
		}
		if err := t.cutOff(by, email, "principal.removed"); err != nil {
			return err
		}
		// Nobody answers for the agents any more, and whoever is enrolled
		// under this address later did not choose them.
		agents, err := store.Principals(t, email)
		if err != nil {
			return err
		}
		for _, agent := range agents {
			if err := store.RemovePrincipal(t, agent.Email); err != nil {
				return err
			}
			if err := t.cutOff(by, agent.Email, "principal.removed"); err != nil {
				return err
			}
		}
		return nil
	})
}

// cutOff ends everything that a principal could still use.
func (t *txn) cutOff(by Actor, email, operation string) error {
	if err := t.signOutEverywhere(email); err != nil {
		return err
	}
	open, err := store.OpenGrantsOf(t, email)
	if err != nil {
		return err
	}
	for _, g := range open {
		next, err := g.Apply(grant.Revoke{By: by.Name(), At: t.now})
		if err != nil {
			continue // its time has run out; it is written down as expired
		}
		if err := t.revoke(next, operation); err != nil {
			return err
		}
	}
	p, err := store.PrincipalByEmail(t, email)
	if err != nil {
		return err
	}
	if err := t.endStandingOf(by.Name(), p); err != nil {
		return err
	}
	if err := t.endPoliciesOf(by.Name(), p.Email); err != nil {
		return err
	}
	if err := t.endDelegationsOf(by.Name(), email); err != nil {
		return err
	}
	if err := t.endDeputiesOf(by.Name(), email); err != nil {
		return err
	}
	_, err = t.record(recordTrust, "", email, trustRecord{Operation: operation, By: by.Name(), Subject: email})
	return err
}

// Pause stops an agent without ending its permissions; a person resumes it by
// a change of trust.
func (a *Authority) Pause(ctx context.Context, by Actor, email string) error {
	email = lower(email)
	return a.narrow(ctx, func(t *txn) error {
		if err := t.mayNarrow(by, email); err != nil {
			return err
		}
		if _, err := store.SetPaused(t, email, "", true); err != nil {
			return err
		}
		_, err := t.record(recordTrust, "", email, trustRecord{Operation: "agent.paused", By: by.Name(), Subject: email})
		return err
	})
}

// Panic pauses every agent, revokes the agents' logins, and ends their waiting
// requests and unused once-grants, at once. Any signed-in person may do it.
func (a *Authority) Panic(ctx context.Context, by Actor, reason string) (api.PanicResult, error) {
	var out api.PanicResult
	if by.Means != Management && (!by.Person() || by.Means == Page && !by.Proven) {
		return out, problem(403, "Only a signed-in person may do this", "", "Log in: vogt login.").kind("forbidden")
	}
	err := a.narrow(ctx, func(t *txn) error {
		out = api.PanicResult{}
		var err error
		if out.Agents, err = store.PauseAll(t); err != nil {
			return err
		}
		if out.Tokens, err = store.DeleteAgentTokens(t); err != nil {
			return err
		}
		if err = store.EndOAuthOfAgents(t, int64(t.now)); err != nil {
			return err
		}
		if _, err := store.ExpireDelegations(t, grant.Once); err != nil {
			return err
		}
		open, err := store.ShortGrants(t)
		if err != nil {
			return err
		}
		for _, g := range open {
			next, err := g.Apply(grant.Revoke{By: by.Name(), At: t.now})
			if err != nil {
				continue
			}
			if err := t.revoke(next, "panic"); err != nil {
				return err
			}
			out.Grants++
		}
		_, err = t.record(recordPanic, "", by.Principal.Email, panicRecord{
			By: by.Name(), Reason: shorten(reason, maxReason), Agents: out.Agents, Tokens: out.Tokens, Grants: out.Grants,
		})
		return err
	})
	return out, err
}

// People lists principals: a person its agents, management everybody.
func (a *Authority) People(ctx context.Context, by Actor) ([]store.Principal, error) {
	owner := by.Principal.Email
	switch {
	case by.manages():
		owner = ""
	case !by.Person():
		return nil, errUnauthenticated()
	}
	var out []store.Principal
	err := a.view(ctx, func(tx store.Tx) (err error) {
		out, err = store.Principals(tx, owner)
		return err
	})
	return out, err
}

// Account is a principal with what it can log in with.
type Account struct {
	Principal store.Principal
	Keys      []store.Key
	Passkeys  []store.Passkey
	Sessions  []store.Session
	Labels    []store.Label
}

// Account reads one principal: oneself, one's agent, or anybody by management.
func (a *Authority) Account(ctx context.Context, by Actor, email string) (out Account, err error) {
	email = lower(email)
	if !by.Known() && !by.manages() {
		return out, errUnauthenticated()
	}
	err = a.view(ctx, func(tx store.Tx) error {
		p, err := store.PrincipalByEmail(tx, email)
		if err != nil || p.Removed || !by.manages() && p.Email != by.Principal.Email && p.Owner != by.Principal.Email {
			return problem(404, "There is no such principal", "", "").caused(err)
		}
		out.Principal = p
		if out.Keys, err = store.Keys(tx, email); err != nil {
			return err
		}
		if out.Passkeys, err = store.Passkeys(tx, email); err != nil {
			return err
		}
		if out.Labels, err = store.Labels(tx, email); err != nil {
			return err
		}
		out.Sessions, err = store.Sessions(tx, email, int64(a.now()))
		return err
	})
	return out, err
}

// passkeysOf reads the credentials of a person that may be used now.
func (a *Authority) passkeysOf(ctx context.Context, email string) ([]store.Passkey, []passkey.Credential, error) {
	var rows []store.Passkey
	err := a.view(ctx, func(tx store.Tx) (err error) {
		rows, err = store.Passkeys(tx, email)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return decodePasskeys(rows, int64(a.now()))
}

func decodePasskeys(rows []store.Passkey, now int64) (usable []store.Passkey, creds []passkey.Credential, err error) {
	for _, row := range rows {
		if row.DormantUntil > now {
			continue
		}
		var c passkey.Credential
		if err := json.Unmarshal([]byte(row.Credential), &c); err != nil {
			return nil, nil, fmt.Errorf("passkey %s: %v: %w", row.ID, err, store.ErrCorrupt)
		}
		usable, creds = append(usable, row), append(creds, c)
	}
	return usable, creds, nil
}
