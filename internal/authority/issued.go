package authority

import (
	"crypto/sha256"
	"sync"

	"vogt/internal/token"
)

// issued remembers the grant tokens that were signed a moment ago, by their hash,
// so that their use does not verify a signature of our own making. A token counts
// only under the very ring of keys that signed it: after any change of keys, and
// after a restart, its signature is verified as anybody's is. Its time, its epoch and
// everything that it leads to are looked at in any case.
type issued struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]issuedToken
}

type issuedToken struct {
	claims token.Grant // without what only its holder reads
	ring   *keyring
}

// maxIssued bounds what is remembered; tokens beyond are verified.
const maxIssued = 4096

func newIssued() *issued { return &issued{all: make(map[[sha256.Size]byte]issuedToken)} }

func (i *issued) put(raw string, c token.Grant, ring *keyring) {
	c.Permissions, c.Details, c.Command, c.Context = nil, nil, nil, nil
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.all) >= maxIssued {
		clear(i.all)
	}
	i.all[sha256.Sum256([]byte(raw))] = issuedToken{claims: c, ring: ring}
}

func (i *issued) get(raw string, ring *keyring) (token.Grant, bool) {
	key := sha256.Sum256([]byte(raw))
	i.mu.Lock()
	defer i.mu.Unlock()
	t, ok := i.all[key]
	return t.claims, ok && t.ring == ring
}

// verifyGrant is the claims of a grant token of ours that has not expired.
func (a *Authority) verifyGrant(raw string) (token.Grant, error) {
	ring := a.keys.Load()
	c, ok := a.issued.get(raw, ring)
	if !ok {
		return ring.all.VerifyGrant(raw, a.cfg.Issuer, a.clock())
	}
	if a.clock().Unix() >= c.Expires {
		return token.Grant{}, token.ErrExpired
	}
	return c, nil
}
