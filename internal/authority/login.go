package authority

import (
	"context"
	"time"

	"vogt/internal/api"
	"vogt/internal/sshkey"
	"vogt/internal/store"
	"vogt/internal/token"
)

const (
	challengeLife  = time.Minute
	purposeLogin   = "key-login"
	maxIdentityLen = 320
)

// Challenge starts a login by key. It answers alike for everybody, so that it
// tells nobody who exists.
func (a *Authority) Challenge(_ context.Context, id string) (string, error) {
	if id == "" || len(id) > maxIdentityLen {
		return "", problem(400, "The identity is missing", `"id" must be the e-mail address of a person or agent.`, "")
	}
	id = lower(id)
	challenge, err := a.randomHex(32)
	if err != nil {
		return "", err
	}
	a.once.start(challenge, ceremony{purpose: purposeLogin, subject: id, ends: a.clock().Add(challengeLife)})
	return challenge, nil
}

func errBadLogin() *Error {
	return problem(401, "The login was refused", "The challenge, the key or the identity does not match.",
		"Ask for a new challenge and sign it with a key that is registered for this identity.").kind("unauthorized")
}

// Login finishes a login by key: signature is the raw one over the challenge
// or an armoured SSHSIG in the login namespace. The challenge is spent
// whatever comes of it.
func (a *Authority) Login(ctx context.Context, id, challenge, signature string) (api.Login, error) {
	id = lower(id)
	c, ok := a.once.take(challenge, purposeLogin, a.clock())
	if !ok || c.subject != id {
		return api.Login{}, errBadLogin()
	}
	var p store.Principal
	var owner store.Principal
	var usableKeys []sshkey.Public
	err := a.view(ctx, func(tx store.Tx) error {
		var err error
		if p, err = store.PrincipalByEmail(tx, id); err != nil {
			return ignoreNotFound(err)
		}
		if p.Owner != "" {
			if owner, err = store.PrincipalByEmail(tx, p.Owner); err != nil {
				return ignoreNotFound(err)
			}
		}
		keys, err := store.Keys(tx, id)
		for _, k := range keys {
			if k.DormantUntil > int64(a.now()) {
				continue
			}
			public, err := sshkey.ParsePublic(k.PublicKey)
			if err != nil {
				return err
			}
			usableKeys = append(usableKeys, public)
		}
		return err
	})
	if err != nil {
		return api.Login{}, err
	}
	key, err := verifyLogin(challenge, signature, usableKeys)
	if err != nil || p.Email == "" {
		return api.Login{}, errBadLogin().caused(err)
	}
	// Only who holds the key learns that the account is switched off.
	if !usable(p) {
		return api.Login{}, inactive(p.Email)
	}
	if p.Owner != "" && !usable(owner) {
		return api.Login{}, inactive(p.Owner)
	}
	if !a.rates.try("login:"+p.Email, a.clock()) {
		return api.Login{}, tooFast(p.Email + " logs in too often.")
	}
	return a.issue(ctx, p, string(key.ID()), "key")
}

func verifyLogin(challenge, signature string, keys []sshkey.Public) (sshkey.Public, error) {
	key, err := sshkey.VerifyLogin(challenge, signature, keys)
	if err != nil {
		return sshkey.Verify(signature, sshkey.NamespaceLogin, []byte(challenge), keys)
	}
	return key, nil
}

// issue records a login and returns its token.
func (a *Authority) issue(ctx context.Context, p store.Principal, keyID, means string) (out api.Login, err error) {
	err = a.update(ctx, func(t *txn) error {
		out, err = t.issue(p, keyID, means)
		return err
	})
	return out, err
}

func (t *txn) issue(p store.Principal, keyID, means string) (api.Login, error) {
	a := t.a
	// What the signature was checked against may have changed since.
	p, err := store.PrincipalByEmail(t, p.Email)
	if err != nil || !usable(p) {
		return api.Login{}, errBadLogin().caused(err)
	}
	if keyID != "" {
		k, err := store.KeyByID(t, keyID)
		if err != nil || k.Email != p.Email {
			return api.Login{}, errBadLogin().caused(err)
		}
		if !k.Weak {
			if err := t.cancelRecovery(p.Email, p.Email); err != nil {
				return api.Login{}, err
			}
		}
	}
	jti, err := a.newID()
	if err != nil {
		return api.Login{}, err
	}
	now := t.now.Seconds()
	life := int64(a.cfg.LoginTTL / time.Second)
	raw, err := token.Sign(a.keys.Load().signing, token.Login{
		Issuer: a.cfg.Issuer, Subject: p.Email, Audience: token.CLIAudience, Act: p.Kind,
		IssuedAt: now, Expires: now + life, ID: jti, Use: token.UseLogin, Epoch: a.Epoch(), Generation: p.Generation,
	})
	if err != nil {
		return api.Login{}, err
	}
	if err := store.InsertToken(t, store.Token{ID: jti, Email: p.Email, KeyID: keyID, Created: int64(t.now), Expires: (now + life) * 1000}); err != nil {
		return api.Login{}, err
	}
	if err := store.TouchLogin(t, p.Email, int64(t.now)); err != nil {
		return api.Login{}, err
	}
	if _, err := t.record(recordLogin, "", p.Email, loginRecord{Email: p.Email, Means: means, Key: keyID}); err != nil {
		return api.Login{}, err
	}
	return api.Login{
		Token: raw, ID: p.Email, AgentID: p.Email, Email: p.Email, Name: p.Name, Act: p.Kind, ExpiresIn: life,
		Owner: p.Owner, LogKey: a.verifier,
	}, nil
}

// Logout revokes the token that the call came with.
func (a *Authority) Logout(ctx context.Context, by Actor) error {
	if by.Means != Bearer {
		return errUnauthenticated()
	}
	return a.narrow(ctx, func(t *txn) error {
		// Of a login by code, what renews it ends with it.
		l, err := store.TokenByID(t, by.TokenID)
		if err := ignoreNotFound(err); err != nil {
			return err
		}
		if l.Origin != "" {
			if err := t.endAuthorization(by.Name(), l.Email, CLIClient, l.Origin, "logged out"); err != nil {
				return err
			}
		}
		if err := store.DeleteToken(t, by.TokenID); err != nil {
			return err
		}
		_, err = t.record(recordLogout, "", by.Principal.Email, loginRecord{Email: by.Principal.Email, Means: "key", Key: by.KeyID})
		return err
	})
}
