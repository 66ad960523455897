// Package coverage decides which details of a request are covered by which
// grants, and says why one is missing.
//
// It is pure: requests, grants and the time come in as values. This version
// knows exact permissions only: a timed or always grant covers the very
// request that it was given for. Patterns come later, in the same place.
package coverage

import (
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

// Result tells what covers a request. The zero value covers nothing.
type Result struct {
	Grant   *grant.Grant // the grant that covers every detail, or nil
	Missing []detail.Detail
	Reason  string
}

// Check looks for a grant that permits exactly this request now. identity is
// the request's statement without what differs between two askings; a grant
// for another identity covers nothing, whatever its hashes or names say.
func Check(identity statement.Digest, details []detail.Detail, candidates []grant.Grant, now grant.Millis) Result {
	if detail.Highest(details) == detail.Critical {
		return Result{Missing: details, Reason: "critical actions are asked every time"}
	}
	for i := range candidates {
		g := &candidates[i]
		if g.Type == grant.Once || !g.Permits(now) || g.Identity != identity {
			continue
		}
		return Result{Grant: g, Reason: "the same command was allowed before"}
	}
	return Result{Missing: details, Reason: "nobody has allowed this yet"}
}
