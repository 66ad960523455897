package authority

import (
	"context"
	"crypto/ecdh"
	"errors"
	"fmt"

	"vogt/internal/grant"
	"vogt/internal/store"
)

// maxSubscriptions is how many browsers of one person are told of requests.
const maxSubscriptions = 20

// PushKey returns the key that signs to push services, a P-256 scalar of 32
// bytes, and makes it when it is first wanted. It is kept like the signing keys;
// another one would end every subscription.
func (a *Authority) PushKey(ctx context.Context) (scalar []byte, err error) {
	err = a.view(ctx, func(tx store.Tx) (err error) {
		scalar, err = store.PushKey(tx)
		return ignoreNotFound(err)
	})
	if err != nil || len(scalar) > 0 {
		return scalar, err
	}
	fresh, err := ecdh.P256().GenerateKey(a.random)
	if err != nil {
		return nil, fmt.Errorf("making the push key: %w", err)
	}
	err = a.update(ctx, func(t *txn) (err error) {
		// Of two that make one at once the first has made it.
		if scalar, err = store.PushKey(t); !errors.Is(err, store.ErrNotFound) {
			return err
		}
		scalar = fresh.Bytes()
		id, err := a.newID()
		if err != nil {
			return err
		}
		if err := store.InsertPushKey(t, id, scalar, int64(t.now)); err != nil {
			return err
		}
		_, err = t.record(recordKey, "", "", keyRecord{KID: "push-" + id, Event: "new"})
		return err
	})
	return scalar, err
}

// Subscribe has a browser of the person told of requests. Its endpoint and keys
// were checked by the caller. One that is another person's is refused: whoever
// knows an endpoint could turn it to itself.
func (a *Authority) Subscribe(ctx context.Context, by Actor, s store.Subscription) error {
	return a.update(ctx, func(t *txn) error {
		if err := t.mayNarrow(by, by.Principal.Email); err != nil {
			return err
		}
		if err := t.still(by, proven{}); err != nil {
			return err
		}
		s.Email, s.Created = by.Principal.Email, int64(t.now)
		have, err := store.Subscriptions(t, s.Email)
		if err != nil {
			return err
		}
		if err := store.PutSubscription(t, s); errors.Is(err, store.ErrConflict) {
			return problem(409, "This browser tells somebody else", "Its push address is another account's.",
				"Switch notifications off there first, or on again in this browser.").kind("taken")
		} else if err != nil {
			return err
		}
		// The oldest makes room: browsers that are gone do not say so.
		for i := 0; i < len(have) && len(have)-i >= maxSubscriptions; i++ {
			if have[i].Endpoint == s.Endpoint {
				continue
			}
			if err := store.DeleteSubscription(t, s.Email, have[i].Endpoint); err != nil {
				return err
			}
		}
		return nil
	})
}

// Unsubscribe ends it for one browser of the person.
func (a *Authority) Unsubscribe(ctx context.Context, by Actor, endpoint string) error {
	return a.narrow(ctx, func(t *txn) error {
		if err := t.mayNarrow(by, by.Principal.Email); err != nil {
			return err
		}
		if err := store.DeleteSubscription(t, by.Principal.Email, endpoint); errors.Is(err, store.ErrConflict) {
			return problem(404, "There is no such subscription", "", "")
		} else if err != nil {
			return err
		}
		return nil
	})
}

// Subscriptions lists the browsers of a person in good standing that are to be
// told of requests; of anybody else there are none.
func (a *Authority) Subscriptions(ctx context.Context, email string) (out []store.Subscription, err error) {
	err = a.view(ctx, func(tx store.Tx) error {
		p, err := store.PrincipalByEmail(tx, email)
		if err != nil || !usable(p) || p.Kind != kindPerson {
			return ignoreNotFound(err)
		}
		out, err = store.Subscriptions(tx, email)
		return err
	})
	return out, err
}

// DropSubscription forgets a browser whose push service says that it is gone.
func (a *Authority) DropSubscription(ctx context.Context, email, endpoint string) error {
	return a.update(ctx, func(t *txn) error {
		if err := store.DeleteSubscription(t, email, endpoint); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
		return nil
	})
}

// WaitsFor returns a request that still waits, the person who is to be told of it
// and who asks; waits is false for any other.
func (a *Authority) WaitsFor(ctx context.Context, id string) (g grant.Grant, person string, agent store.Principal, waits bool, err error) {
	err = a.view(ctx, func(tx store.Tx) error {
		var err error
		if g, err = store.GrantByID(tx, id); err != nil {
			return ignoreNotFound(err)
		}
		g = g.As(a.now())
		waits = g.Status == grant.Pending
		if person = g.Approver; person == "" {
			person = g.Owner
		}
		agent, err = store.PrincipalByEmail(tx, g.Request.Requester)
		return ignoreNotFound(err)
	})
	return g, person, agent, waits, err
}
