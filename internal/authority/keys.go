package authority

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"time"

	"vogt/internal/store"
	"vogt/internal/token"
)

// keyring is what signs and verifies tokens at the moment.
type keyring struct {
	signing token.Key
	created int64
	all     token.Keys
	jwks    []byte
}

// openKeys reads the signing keys and makes the first one.
func (a *Authority) openKeys(ctx context.Context) error {
	var stored []store.SigningKey
	err := a.view(ctx, func(tx store.Tx) (err error) {
		stored, err = store.SigningKeys(tx)
		return err
	})
	if err != nil {
		return err
	}
	for _, k := range stored {
		if k.Retired == 0 {
			return a.loadKeys(stored)
		}
	}
	return a.RotateKeys(ctx)
}

func (a *Authority) loadKeys(stored []store.SigningKey) error {
	ring := &keyring{all: token.Keys{}}
	for _, k := range stored {
		if len(k.Seed) != ed25519.SeedSize {
			return store.ErrCorrupt
		}
		key := token.NewKey(k.Seed)
		ring.all[key.ID] = key.Private.Public().(ed25519.PublicKey)
		if k.Retired == 0 && ring.created < k.Created {
			ring.signing, ring.created = key, k.Created
		}
	}
	if ring.signing.ID == "" {
		return errors.New("no signing key is in use")
	}
	var err error
	if ring.jwks, err = ring.all.JWKS(); err != nil {
		return err
	}
	a.keys.Store(ring)
	return nil
}

// RotateKeys puts a new signing key into use. The old ones sign nothing any
// more and are published until the longest token they signed has run out.
func (a *Authority) RotateKeys(ctx context.Context) error {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(a.random, seed); err != nil {
		return err
	}
	key := token.NewKey(seed)
	var stored []store.SigningKey
	err := a.update(ctx, func(t *txn) error {
		now := int64(t.now)
		longest := max(a.cfg.LoginTTL, grantTokenLife, identityLife) + time.Minute
		if err := store.RetireSigningKeys(t, now, now+longest.Milliseconds()); err != nil {
			return err
		}
		if err := store.InsertSigningKey(t, store.SigningKey{KID: key.ID, Seed: seed, Created: now}); err != nil {
			return err
		}
		if _, err := t.record(recordKey, "", "", keyRecord{KID: key.ID, Event: "new"}); err != nil {
			return err
		}
		var err error
		stored, err = store.SigningKeys(t)
		return err
	})
	if err != nil {
		return err
	}
	return a.loadKeys(stored)
}

func (a *Authority) rotateIfDue(ctx context.Context) error {
	now := a.now()
	if ring := a.keys.Load(); int64(now)-ring.created >= a.cfg.KeyLife.Milliseconds() {
		return a.RotateKeys(ctx)
	}
	var stored []store.SigningKey
	err := a.update(ctx, func(t *txn) (err error) {
		if err = store.DropSigningKeys(t, int64(now)); err != nil {
			return err
		}
		stored, err = store.SigningKeys(t)
		return err
	})
	if err != nil {
		return err
	}
	return a.loadKeys(stored)
}

// JWKS is the published key set, ready to send.
func (a *Authority) JWKS() []byte { return a.keys.Load().jwks }
