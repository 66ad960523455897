package authoritytest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/statement"
)

// Key is an SSH key, in memory and in a file.
type Key struct {
	Private *sshkey.Private
	Line    string // public key, as in authorized_keys
	Path    string // OpenSSH private key file; the public half lies beside it
}

// NewKey makes a key.
func (s *Server) NewKey(comment string) Key {
	s.T.Helper()
	pem, public, err := sshkey.Generate(rand.Reader, comment)
	if err != nil {
		s.T.Fatal(err)
	}
	k := Key{Line: public.String(), Path: filepath.Join(s.T.TempDir(), "id_ed25519")}
	if err := sshkey.WriteNew(k.Path, pem, public); err != nil {
		s.T.Fatal(err)
	}
	if k.Private, err = sshkey.LoadPrivate(k.Path, nil); err != nil {
		s.T.Fatal(err)
	}
	return k
}

// Principal is a person or an agent that has logged in.
type Principal struct {
	Client
	Email string
	Name  string
	Key   Key
	Owner *Principal // of an agent
}

// Owner makes the first person, with an SSH key, and logs it in.
func (s *Server) Owner() *Principal {
	s.T.Helper()
	p := &Principal{Client: Client{S: s}, Email: OwnerEmail, Name: "Owner", Key: s.NewKey(OwnerEmail)}
	if err := s.Authority.CreateOwner(context.Background(), p.Email, p.Name, p.Key.Line); err != nil {
		s.T.Fatal(err)
	}
	return p.Login()
}

// Person makes a further person through management and logs it in.
func (s *Server) Person(email string) *Principal {
	s.T.Helper()
	p := &Principal{Client: Client{S: s}, Email: email, Name: email, Key: s.NewKey(email)}
	s.Manager().Post("/api/admin/users", map[string]string{"email": email, "name": email}).Want(200)
	s.Manager().Post("/api/admin/users/"+url.PathEscape(email)+"/ssh-keys", map[string]string{"publicKey": p.Key.Line}).Want(200)
	return p.Login()
}

// Agent enrols an agent of owner by a signed change of trust and logs it in.
func (s *Server) Agent(owner *Principal, name string) *Principal {
	s.T.Helper()
	p := &Principal{Client: Client{S: s}, Name: name, Key: s.NewKey(name), Owner: owner}
	done := owner.Change(api.TrustAgentAdd, map[string]string{"name": name, "public_key": p.Key.Line, "safe": "off"})
	if done.Enrolled == nil {
		s.T.Fatalf("the confirmed change names no agent: %+v", done)
	}
	p.Email = done.Enrolled.Email
	return p.Login()
}

// ManagedAgent enrols an agent through management, which can name another
// approver than the owner, and logs it in.
func (s *Server) ManagedAgent(name string, owner, approver *Principal) *Principal {
	s.T.Helper()
	p := &Principal{Client: Client{S: s}, Name: name, Key: s.NewKey(name), Owner: owner, Email: authority.AgentEmail(name, owner.Email, s.URL)}
	s.Manager().Post("/api/agent/enroll", map[string]any{
		"email": p.Email, "name": name, "publicKey": p.Key.Line, "owner": owner.Email, "approver": approver.Email, "no_safe_commands": true,
	}).Want(200)
	return p.Login()
}

// Login logs in by key, replacing the bearer, and returns p.
func (p *Principal) Login() *Principal {
	p.S.T.Helper()
	var login api.Login
	p.TryLogin(p.Key).Into(&login)
	if login.Email != p.Email {
		p.S.T.Fatalf("logged in as %q, want %q", login.Email, p.Email)
	}
	p.Bearer = login.Token
	return p
}

// TryLogin answers a fresh challenge with key and returns what came of it.
func (p *Principal) TryLogin(key Key) Answer {
	p.S.T.Helper()
	var c api.Challenge
	p.S.Stranger().Post(api.PathChallenge, api.ChallengeRequest{ID: p.Email}).Into(&c)
	sig, err := sshkey.SignLogin(key.Private, c.Challenge)
	if err != nil {
		p.S.T.Fatal(err)
	}
	return p.S.Stranger().Post(api.PathAuthenticate, api.Authenticate{ID: p.Email, Challenge: c.Challenge, Signature: sig})
}

// Actor is the principal as the authority's methods see it now.
func (p *Principal) Actor() authority.Actor {
	p.S.T.Helper()
	a, err := p.S.Authority.Authenticate(context.Background(), p.Bearer)
	if err != nil {
		p.S.T.Fatal(err)
	}
	return a
}

// Request is what [Principal.Ask] sends for a command.
func Request(argv ...string) grant.Request {
	return grant.Request{Host: "box", Audience: "shapes", Type: grant.Once, Command: argv, Reason: "because " + strings.Join(argv, " ")}
}

// Ask requests a grant for the command.
func (p *Principal) Ask(argv ...string) api.Grant {
	p.S.T.Helper()
	return p.AskFor(Request(argv...))
}

// AskFor requests a grant.
func (p *Principal) AskFor(req grant.Request) (g api.Grant) {
	p.S.T.Helper()
	p.Post(api.PathGrants, req).Into(&g)
	return g
}

// Grant reads a grant.
func (p *Principal) Grant(id string) (g api.Grant) {
	p.S.T.Helper()
	p.Get(GrantPath(id)).Into(&g)
	return g
}

// SignDecision signs a statement's digest as a decision.
func (k Key) SignDecision(d statement.Digest) (string, error) {
	return sshkey.Sign(k.Private, sshkey.NamespaceDecision, []byte(d.String()))
}

// Signed makes the body of an approval of the reach, signed with the
// principal's key. The digest is computed from the statement that was shown.
func (p *Principal) Signed(id string, kind grant.Type, expiresAt int64) api.Decide {
	p.S.T.Helper()
	q := url.Values{"grant_type": {string(kind)}}
	if expiresAt != 0 {
		q.Set("expires_at", fmt.Sprint(expiresAt))
	}
	var offer api.Offer
	p.Get(GrantPath(id, "statement") + "?" + q.Encode()).Into(&offer)
	digest := offer.Statement.Digest()
	if digest != offer.Digest {
		p.S.T.Fatalf("grant %s: the authority's digest %s is not that of its statement, %s", id, offer.Digest, digest)
	}
	sig, err := p.Key.SignDecision(digest)
	if err != nil {
		p.S.T.Fatal(err)
	}
	return api.Decide{GrantType: kind, ExpiresAt: expiresAt, Digest: &digest, Signature: sig}
}

// Approve says yes by signature; for a timed approval expiresAt is its end in
// Unix seconds.
func (p *Principal) Approve(id string, kind grant.Type, expiresAt int64) api.Grant {
	p.S.T.Helper()
	var out api.Decided
	p.Post(GrantPath(id, "approve"), p.Signed(id, kind, expiresAt)).Into(&out)
	return out.Grant
}

// Token fetches the grant token.
func (p *Principal) Token(id string) string {
	p.S.T.Helper()
	var out api.Token
	p.Post(GrantPath(id, "token"), nil).Into(&out)
	return out.AuthzJWT
}

// Consume spends a use of a grant with a grant token, as clients do: an empty
// body without a content type.
func (s *Server) Consume(id, jwt string) Answer {
	s.T.Helper()
	return (&Client{S: s, Bearer: jwt}).Post(GrantPath(id, "consume"), nil, "Content-Type", "")
}

// Secret makes the secret of a change of trust.
func (s *Server) Secret() string {
	s.T.Helper()
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		s.T.Fatal(err)
	}
	return hex.EncodeToString(b[:])
}

// Prepare prepares a change of trust and returns it with the asker's secret.
func (c *Client) Prepare(operation string, params map[string]string) (tr api.Trust, secret string) {
	c.S.T.Helper()
	secret = c.S.Secret()
	c.Post(api.PathTrust, api.TrustRequest{Operation: operation, Params: params, Secret: secret}).Want(201).Into(&tr)
	return tr, secret
}

// SignedChange makes the body that confirms a prepared change as p.
func (p *Principal) SignedChange(id string) api.ConfirmTrust {
	p.S.T.Helper()
	var tr api.Trust
	p.Get(api.PathTrust + "/" + id).Into(&tr)
	if tr.Statement == nil || tr.Digest == nil || tr.Statement.Digest() != *tr.Digest {
		p.S.T.Fatalf("change %s: statement and digest do not fit: %+v", id, tr)
	}
	sig, err := p.Key.SignDecision(*tr.Digest)
	if err != nil {
		p.S.T.Fatal(err)
	}
	return api.ConfirmTrust{Digest: *tr.Digest, Signature: sig}
}

// Change prepares a change of trust, confirms it by signature and returns its
// result.
func (p *Principal) Change(operation string, params map[string]string) (out api.Trust) {
	p.S.T.Helper()
	tr, secret := p.Prepare(operation, params)
	p.Post(api.PathTrust+"/"+tr.ID+"/confirm", p.SignedChange(tr.ID), api.TrustSecretHeader, secret).Into(&out)
	return out
}
