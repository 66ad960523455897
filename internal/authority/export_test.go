package authority

import (
	"context"

	"vogt/internal/store"
	"vogt/internal/token"
)

// Expire writes down what has run out, as Run does every second.
func (a *Authority) Expire(ctx context.Context) error { return a.expire(ctx) }

// Tidy deletes what has run out and rotates keys, as Run does every minute.
func (a *Authority) Tidy(ctx context.Context) error { return a.tidy(ctx) }

// Record appends to the log.
func (a *Authority) Record(ctx context.Context, kind string, body any) error {
	return a.update(ctx, func(t *txn) error {
		_, err := t.record(kind, "", "", body)
		return err
	})
}

// OpenWaits counts the calls that name keeps open.
func (a *Authority) OpenWaits(name string) int {
	a.waits.mu.Lock()
	defer a.waits.mu.Unlock()
	return a.waits.open[name]
}

// Ceremonies counts what waits in memory.
func (a *Authority) Ceremonies() int {
	a.once.mu.Lock()
	defer a.once.mu.Unlock()
	return len(a.once.all)
}

// KeptPatterns names the patterns of an owner that a request in tx would look at,
// with why one is paused.
func (a *Authority) KeptPatterns(tx store.Tx, owner string) (ids []string, err error) {
	o, err := a.patterns.of(tx, owner)
	if err != nil {
		return nil, err
	}
	for _, s := range o.index.All() {
		if s.Paused != "" {
			ids = append(ids, s.ID+" ("+s.Paused+")")
			continue
		}
		ids = append(ids, s.ID)
	}
	return ids, nil
}

// UseDelegation uses a delegation as what issues tokens does.
func (a *Authority) UseDelegation(ctx context.Context, id, delegate, audience string) (scopes []string, err error) {
	err = a.update(ctx, func(t *txn) (err error) {
		_, scopes, err = useDelegation(t, id, delegate, audience)
		return err
	})
	return scopes, err
}

// Sign signs claims with the authority's key, as no method of it would.
func (a *Authority) Sign(claims any) (string, error) {
	return token.Sign(a.keys.Load().signing, claims)
}

// Errand does one thing that was asked for by mail, as Run does.
func (a *Authority) Errand(ctx context.Context) { a.runErrand(ctx, <-a.errands) }
