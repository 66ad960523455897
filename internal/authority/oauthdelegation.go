package authority

import "vogt/internal/store"

// delegated is what a delegation permits its delegate.
type delegated struct {
	Grant     string   `json:"grant"`
	Delegator string   `json:"delegator"`
	Delegate  string   `json:"delegate"`
	Scopes    []string `json:"scopes"` // none permits nothing
}

// delegation looks whether by may act for somebody at audience under that
// delegation; with use it also uses it up where it is good once. It is the one
// place where tokens meet delegations, which this version does not have yet.
func (t *txn) delegation(by store.Principal, id, audience string, use bool) (delegated, error) {
	return delegated{}, invalidGrant("There is no such delegation.")
}
