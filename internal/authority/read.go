package authority

import (
	"vogt/internal/flow"
	"vogt/internal/grant"
)

// Read says what a request would do, as the authority reads it: by the same
// reader and in the same place as when it was made and rated, from its argument
// list alone. It decides nothing and records nothing; what it returns is for
// display, and follows a catalog that has changed since.
func (a *Authority) Read(req grant.Request) (flow.Reading, error) {
	return flow.Read(a.reader, req)
}
