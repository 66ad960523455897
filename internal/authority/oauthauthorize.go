package authority

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"vogt/internal/grant"
	"vogt/internal/store"
)

// authorizeRequest is a request for a code (RFC 6749, section 4.1.1; RFC 7636;
// OpenID Connect Core 1.0, section 3.1.2.1), read once.
type authorizeRequest struct {
	Client      string   `json:"client"`
	RedirectURI string   `json:"redirect_uri"`
	State       string   `json:"state"`
	Nonce       string   `json:"nonce,omitempty"`
	Challenge   string   `json:"challenge"`
	Scope       string   `json:"scope"`
	Hint        string   `json:"hint,omitempty"`
	Delegation  string   `json:"delegation,omitempty"`
	Prompt      []string `json:"prompt,omitempty"`
	MaxAge      int64    `json:"max_age"` // seconds, -1 for any

	refusal string // an error that is told at RedirectURI, "" for none
}

// challengeS256 is the form of a SHA-256 in base64url without padding.
var challengeS256 = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// parseAuthorize reads a request. What it returns as error is shown to the
// person and never sent to an address that the request itself named.
func parseAuthorize(q url.Values) (authorizeRequest, error) {
	bad := func(title, detail, kind string) (authorizeRequest, error) {
		return authorizeRequest{}, problem(400, title, detail, "The service that sent you here has to change it.").kind(kind)
	}
	for name, values := range q {
		if len(values) > 1 {
			return bad("The request is not clear", "A parameter is there more than once.", "invalid_request")
		}
		if len(values[0]) > maxParameter {
			return bad("The request is too long", "Parameter "+shorten(strconv.QuoteToASCII(name), 50)+" has more than "+strconv.Itoa(maxParameter)+" bytes.", "invalid_request")
		}
	}
	if q.Has("authorization_details") {
		return bad("Permissions are not given at this address", "authorization_details would be granted by following a link.", "invalid_request")
	}
	r := authorizeRequest{
		Client: q.Get("client_id"), RedirectURI: q.Get("redirect_uri"), State: q.Get("state"), Nonce: q.Get("nonce"),
		Challenge: q.Get("code_challenge"), Scope: scopesOf(q.Get("scope")), Hint: strings.TrimSpace(lower(q.Get("login_hint"))),
		Delegation: q.Get("delegation_grant"), Prompt: strings.Fields(q.Get("prompt")), MaxAge: -1,
	}
	switch {
	case r.Client == "":
		return bad("The client is missing", "client_id is required.", "invalid_request")
	case r.RedirectURI == "":
		return bad("The redirect address is missing", "redirect_uri is required.", "invalid_request")
	case r.State == "":
		return bad("The state is missing", "state is required: it ties the answer to whoever asked.", "invalid_state")
	case q.Get("code_challenge_method") != "S256" || !challengeS256.MatchString(r.Challenge):
		return bad("PKCE is missing", "code_challenge with code_challenge_method=S256 is required.", "invalid_pkce")
	}
	if q.Has("max_age") {
		n, err := strconv.ParseInt(q.Get("max_age"), 10, 32)
		if err != nil || n < 0 {
			return bad("The request is not clear", "max_age is no number of seconds.", "invalid_request")
		}
		r.MaxAge = n
	}
	switch {
	case q.Get("response_type") != "code":
		r.refusal = "unsupported_response_type"
	case q.Has("request"):
		r.refusal = "request_not_supported"
	case q.Has("request_uri"):
		r.refusal = "request_uri_not_supported"
	case q.Has("response_mode") && q.Get("response_mode") != "query":
		r.refusal = "invalid_request"
	case r.prompts("none") && len(r.Prompt) > 1:
		r.refusal = "invalid_request"
	}
	return r, nil
}

func (r authorizeRequest) prompts(what string) bool { return slices.Contains(r.Prompt, what) }

// answer is the address that the person is sent to with values, state and the
// issuer, by which a client tells answers of several issuers apart (RFC 9207).
func (a *Authority) answer(r authorizeRequest, values url.Values) string {
	values.Set("state", r.State)
	values.Set("iss", a.cfg.Issuer)
	separator := "?"
	if strings.Contains(r.RedirectURI, "?") {
		separator = "&"
	}
	return r.RedirectURI + separator + values.Encode()
}

func (a *Authority) refusedAt(r authorizeRequest, code, description string) string {
	v := url.Values{"error": {code}}
	if description != "" {
		v.Set("error_description", description)
	}
	return a.answer(r, v)
}

// Authorization is what comes next for whoever asks for a code: an address to go
// to, or something that only a page can do first.
type Authorization struct {
	Location string // of the client, with a code or an error
	// SignIn asks for a login; Hint names whose, or is "", and Again is the
	// query to come back with. Where nobody may be asked, Location is set, too.
	SignIn bool
	Hint   string
	Again  url.Values
	// Ask names a question that the person answers on a page, see Consent.
	Ask string
	// Denied names a refusal that the person is told of first.
	Denied string
}

// Authorize answers a request for a code. By is a bearer, a page's session, or
// nobody. An error is for the person; the client is told nothing of it.
func (a *Authority) Authorize(ctx context.Context, by Actor, query url.Values) (Authorization, error) {
	r, err := parseAuthorize(query)
	if err != nil {
		return Authorization{}, err
	}
	stranger := by.Means == Anonymous
	if !stranger && !by.Known() {
		return Authorization{}, problem(403, "Only people and agents log in", "", "Use a login of your own.").kind("forbidden")
	}
	// A stranger makes nobody ask the network: such a client is looked up once
	// somebody has logged in.
	c, err := a.client(ctx, r.Client, !stranger)
	if err != nil && (!stranger || !strings.Contains(r.Client, ".")) {
		return Authorization{}, err
	}
	if err == nil && !c.answeredAt(r.RedirectURI) {
		return Authorization{}, problem(400, "The redirect address is not the client's", "redirect_uri is none of those that the client has registered, letter by letter.",
			"The service that sent you here has to change it. You were sent nowhere.").kind("invalid_redirect")
	}
	if stranger {
		if err == nil && r.refusal != "" {
			return Authorization{Location: a.refusedAt(r, r.refusal, "")}, nil
		}
		out := Authorization{SignIn: true, Hint: r.Hint, Again: query}
		if err == nil && r.prompts("none") {
			out.Location = a.refusedAt(r, "login_required", "")
		}
		return out, nil
	}
	if r.refusal != "" {
		return Authorization{Location: a.refusedAt(r, r.refusal, "")}, nil
	}
	if again, needed := a.signInAgain(by, r, query); needed {
		if by.Means != Page || r.prompts("none") {
			return Authorization{Location: a.refusedAt(r, "login_required", "Another login is wanted than this one.")}, nil
		}
		return Authorization{SignIn: true, Hint: r.Hint, Again: again}, nil
	}
	return a.authorize(ctx, by, c, r)
}

// signInAgain tells whether the request wants another login than by's, and with
// which query to come back after it: one that does not ask for it once more.
func (a *Authority) signInAgain(by Actor, r authorizeRequest, query url.Values) (url.Values, bool) {
	again := url.Values{}
	for k, v := range query {
		again[k] = v
	}
	if r.Hint != "" && r.Hint != by.Principal.Email {
		return again, true
	}
	fresh := r.prompts("login") || r.prompts("select_account") || r.MaxAge == 0
	if fresh {
		again.Del("prompt")
		if r.prompts("consent") {
			again.Set("prompt", "consent")
		}
		again.Del("max_age")
		return again, true
	}
	age := a.clock().Sub(time.UnixMilli(by.loggedIn()))
	return again, r.MaxAge > 0 && age > time.Duration(r.MaxAge)*time.Second
}

// loggedIn is when the actor proved who it is, in Unix milliseconds; 0 where
// that is not known.
func (a Actor) loggedIn() int64 {
	if a.Means == Page {
		return a.Session.Created
	}
	return a.Principal.LastLogin
}

// Denial is why a policy gives nothing; "" is none.
type Denial string

// The denials.
const (
	DeniedByDomain  Denial = "domain"    // the domain permits no service
	NotOnList       Denial = "list"      // its administrators have not allowed this one
	DelegatorIsAway Denial = "delegator" // whoever gave a delegation would have to be asked
	NoLoginForOther Denial = "login"     // a login here for somebody else
)

// describe is what a client is told.
func (d Denial) describe() string {
	switch d {
	case DeniedByDomain:
		return "The domain of the account does not permit logins at services."
	case NotOnList:
		return "The administrators of the account's domain have not allowed this service."
	case DelegatorIsAway:
		return "Whoever gave the delegation would have to agree to this service first."
	case NoLoginForOther:
		return "Nobody logs in here for somebody else."
	}
	return "The person said no."
}

// asked is what a policy says to a request.
type asked uint8

const (
	refused asked = iota
	ask
	allowed
)

// authorize gives a code, asks, or refuses, by the policy of the domain of
// whoever the token will be about.
func (a *Authority) authorize(ctx context.Context, by Actor, c ClientMetadata, r authorizeRequest) (Authorization, error) {
	subject, err := a.subjectOf(ctx, by, r)
	var no *OAuthError
	switch {
	case errors.As(err, &no) && no.Status == 403:
		return Authorization{}, inactiveUser().caused(err)
	case errors.As(err, &no):
		return Authorization{Location: a.refusedAt(r, "access_denied", no.Description)}, nil
	case err != nil:
		return Authorization{}, err
	}
	verdict, reason, err := a.policy(ctx, by, subject, c, r)
	if err != nil {
		return Authorization{}, err
	}
	switch {
	case verdict == refused && (by.Means != Page || r.prompts("none")):
		return Authorization{Location: a.refusedAt(r, "access_denied", reason.describe())}, nil
	case verdict == refused:
		id, err := a.pend(by, question{Request: r, Denied: reason})
		return Authorization{Denied: id}, err
	case verdict == ask && (by.Means != Page || r.prompts("none")):
		return Authorization{Location: a.refusedAt(r, "consent_required", "The person has to agree to this on a page first.")}, nil
	case verdict == ask, by.Means == Page && !by.Proven:
		// A cookie alone reads. What was agreed to before is not asked again, but
		// the page has to show that it holds the session's key.
		id, err := a.pend(by, question{Request: r, Agreed: verdict == allowed})
		return Authorization{Ask: id}, err
	}
	to, err := a.give(ctx, by, c, r, false)
	return Authorization{Location: to}, err
}

func inactiveUser() *Error {
	return problem(403, "User is inactive", "The account is switched off, paused or gone.",
		"The owner of an agent switches it on again (vogt resume NAME), for a person the management token does.").kind("forbidden")
}

// subjectOf is whom the token will be about: the caller or, under a delegation,
// whoever gave it. Both are read as they are now.
func (a *Authority) subjectOf(ctx context.Context, by Actor, r authorizeRequest) (subject store.Principal, err error) {
	err = a.update(ctx, func(t *txn) error {
		if subject, err = inStanding(t, by.Principal.Email, by.Principal.Generation); err != nil || r.Delegation == "" {
			return err
		}
		d, err := t.delegation(subject, r.Delegation, r.Client, false)
		if err != nil {
			return err
		}
		subject, err = inStanding(t, d.Delegator, 0)
		return err
	})
	return subject, err
}

// policy is what the domain of subject says to client c, and why where it
// refuses.
func (a *Authority) policy(ctx context.Context, by Actor, subject store.Principal, c ClientMetadata, r authorizeRequest) (asked, Denial, error) {
	if c.ID == CLIClient {
		if r.Delegation != "" {
			return refused, NoLoginForOther, nil
		}
		// A login here is no service of a domain. Whoever holds a login has it
		// already; a page asks each time, since any program of the machine could
		// have opened it and be waiting at the redirect address.
		if by.Means == Page {
			return ask, "", nil
		}
		return allowed, "", nil
	}
	_, domain, _ := strings.Cut(subject.Email, "@")
	var mode Mode
	if a.policies != nil {
		var err error
		if mode, err = a.policies.Mode(ctx, domain); err != nil {
			return refused, "", problem(502, "The policy of "+domain+" could not be read", "Nothing was given to the service.",
				"Try again later. The domain's owner publishes the policy, the authority's log file has the cause.").kind("idp_unreachable").caused(err)
		}
	}
	switch mode {
	case ModeOpen:
		return permitted(c, r), "", nil
	case ModeAdmin:
		if slices.Contains(a.cfg.Allowed, AllowedService{Domain: domain, Client: c.ID}) {
			return permitted(c, r), "", nil
		}
		ok := false
		err := a.view(ctx, func(tx store.Tx) (err error) {
			ok, err = store.ClientAllowed(tx, domain, c.ID)
			return err
		})
		if err != nil || !ok {
			return refused, NotOnList, err
		}
		return permitted(c, r), "", nil
	case ModePerson, "":
		return a.consented(ctx, by, subject, c, r)
	}
	return refused, DeniedByDomain, nil
}

// permitted is what a request gets that the domain permits: the person is asked
// where the service wants that, and where nobody knows what the service is.
func permitted(c ClientMetadata, r authorizeRequest) asked {
	if r.prompts("consent") || c.Unpublished {
		return ask
	}
	return allowed
}

// consented looks for a stored consent that covers the request.
func (a *Authority) consented(ctx context.Context, by Actor, subject store.Principal, c ClientMetadata, r authorizeRequest) (asked, Denial, error) {
	if subject.Email != by.Principal.Email {
		return refused, DelegatorIsAway, nil
	}
	var stored store.Consent
	err := a.view(ctx, func(tx store.Tx) (err error) {
		stored, err = store.ConsentOf(tx, subject.Email, c.ID)
		return ignoreNotFound(err)
	})
	if err != nil {
		return refused, "", err
	}
	// What listens on the person's machine may have changed since (RFC 8252,
	// section 8.6).
	if r.prompts("consent") || c.Unpublished || native(r.RedirectURI) && by.Means == Page ||
		stored.Client == "" || stored.Generation != subject.Generation || !within(r.Scope, stored.Scope) {
		return ask, "", nil
	}
	return allowed, "", nil
}

// give makes a code in one step with its record and, where the person has just
// agreed, the stored consent.
func (a *Authority) give(ctx context.Context, by Actor, c ClientMetadata, r authorizeRequest, agreed bool) (string, error) {
	if !a.rates.try("code:"+by.Principal.Email, a.clock()) {
		return "", tooFast("Codes are asked for too often.")
	}
	code, err := a.newID()
	if err != nil {
		return "", err
	}
	id, err := a.newID()
	if err != nil {
		return "", err
	}
	err = a.update(ctx, func(t *txn) error {
		p, err := t.stillHere(by)
		if err != nil {
			return err
		}
		row := store.Code{
			Hash: hashOf("vogt-code", code), ID: id, Client: c.ID, RedirectURI: r.RedirectURI, Email: p.Email, Generation: p.Generation,
			Epoch: a.Epoch(), Login: by.TokenID, Scope: r.Scope, Nonce: r.Nonce, Challenge: r.Challenge, AuthTime: by.loggedIn(),
			Expires: int64(t.now) + codeLife.Milliseconds(), KeepUntil: int64(t.now) + codeLife.Milliseconds(),
		}
		record := oauthRecord{Operation: "code.given", By: by.Name(), Subject: p.Email, Client: c.ID, Family: id, Redirect: r.RedirectURI, Scope: r.Scope}
		if r.Delegation != "" {
			if err := t.delegate(&row, &record, p, r); err != nil {
				return err
			}
		}
		// Under a delegation the delegate has agreed to nothing about itself.
		if agreed && c.ID != CLIClient && r.Delegation == "" {
			if err := t.consent(p, c, r.Scope); err != nil {
				return err
			}
		}
		if err := store.InsertCode(t, row); err != nil {
			return err
		}
		return t.recordOAuth(record)
	})
	var no *OAuthError
	switch {
	case errors.As(err, &no) && no.Status == 403:
		return "", inactiveUser().caused(err)
	case errors.As(err, &no):
		return a.refusedAt(r, "access_denied", no.Description), nil
	case err != nil:
		return "", err
	}
	return a.answer(r, url.Values{"code": {code}}), nil
}

// stillHere looks inside the transaction whether the actor is still logged in
// and in standing.
func (t *txn) stillHere(by Actor) (store.Principal, error) {
	if by.Means == Page {
		s, err := store.SessionByID(t, by.Session.ID)
		if err != nil || grant.Millis(s.Expires).Reached(t.now) {
			return store.Principal{}, errUnauthenticated().caused(err)
		}
	} else if _, err := t.loginOf(by.TokenID); err != nil {
		return store.Principal{}, errUnauthenticated().caused(err)
	}
	return inStanding(t, by.Principal.Email, by.Principal.Generation)
}

// delegate makes a code one with which its holder acts for somebody else. The
// delegation is used now, before the code exists.
func (t *txn) delegate(row *store.Code, record *oauthRecord, by store.Principal, r authorizeRequest) error {
	d, err := t.delegation(by, r.Delegation, r.Client, true)
	if err != nil {
		return err
	}
	subject, err := inStanding(t, d.Delegator, 0)
	if err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	row.Email, row.Generation, row.Delegated = subject.Email, subject.Generation, string(text)
	record.Subject, record.Actor, record.Delegated = subject.Email, by.Email, d.ID
	return nil
}

func (t *txn) consent(p store.Principal, c ClientMetadata, scope string) error {
	old, err := store.ConsentOf(t, p.Email, c.ID)
	if err := ignoreNotFound(err); err != nil {
		return err
	}
	if old.Generation == p.Generation {
		scope = scopesOf(scope + " " + old.Scope)
	}
	err = store.SetConsent(t, store.Consent{Email: p.Email, Client: c.ID, Generation: p.Generation, Name: c.Name, Scope: scope, Created: int64(t.now)})
	if err != nil {
		return err
	}
	return t.recordOAuth(oauthRecord{Operation: "consent.given", By: p.Email, Subject: p.Email, Client: c.ID, Scope: scope})
}
