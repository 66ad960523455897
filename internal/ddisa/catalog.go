package ddisa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
	"unicode"
	"unicode/utf8"

	"vogt/internal/fetch"
)

// PathCatalog is where a service says which scopes it knows.
const PathCatalog = "/.well-known/openape.json"

const (
	maxScopes      = 200
	maxDescription = 280 // characters
)

// Scope is something that a service lets others do, in its own words.
type Scope struct {
	ID          string // "mail:read"
	Description string
}

// Scopes returns what the service of that ID lets others do, in its own order. That
// there is no such service, or that it says nothing usable, is ErrNoClient; any other
// error means that nobody can tell now.
func (c *Clients) Scopes(ctx context.Context, id string) ([]Scope, error) {
	origin, err := c.origin(id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoClient, err)
	}
	type answer = catalogAnswer
	a, err := c.catalogs.get(ctx, id, func(ctx context.Context) (answer, time.Duration, error) {
		doc, err := c.fetch.Get(ctx, fetch.Request{URL: origin + PathCatalog, Types: []string{"application/json"}})
		switch failure(err) {
		case nothing, unusable:
			return answer{err: fmt.Errorf("%w: %w", ErrNoClient, err)}, absent, nil
		case passing:
			return answer{}, 0, err
		case none:
		}
		scopes, err := ParseScopes(doc.Body)
		if err != nil {
			return answer{err: fmt.Errorf("%w: %s: %w", ErrNoClient, doc.URL, err)}, absent, nil
		}
		return answer{scopes: scopes}, found, nil
	})
	if err != nil {
		return nil, err
	}
	return append([]Scope(nil), a.scopes...), a.err
}

type catalogAnswer struct {
	scopes []Scope
	err    error // wraps ErrNoClient
}

// ParseScopes reads a catalog: {"scopes": [{"id": "mail:read", "description": "…"}]}.
// Every entry has to be right, since people decide by these words.
func ParseScopes(body []byte) ([]Scope, error) {
	form := regexp.MustCompile(`^[a-z0-9-]{1,64}:[a-z0-9-]{1,64}$`)
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || !utf8.Valid(body) {
		return nil, errors.New("it is no JSON object")
	}
	var entries []map[string]json.RawMessage
	if err := json.Unmarshal(members["scopes"], &entries); err != nil {
		return nil, errors.New("scopes is no list of objects")
	}
	if len(entries) == 0 || len(entries) > maxScopes {
		return nil, fmt.Errorf("scopes has %d entries, want 1 to %d", len(entries), maxScopes)
	}
	seen := make(map[string]bool)
	var scopes []Scope
	for i, entry := range entries {
		var s Scope
		if json.Unmarshal(entry["id"], &s.ID) != nil || !form.MatchString(s.ID) {
			return nil, fmt.Errorf("scopes[%d]: id is not of the form resource:action, in lower case", i)
		}
		if json.Unmarshal(entry["description"], &s.Description) != nil {
			return nil, fmt.Errorf("scopes[%d]: description is missing", i)
		}
		n := utf8.RuneCountInString(s.Description)
		for _, r := range s.Description {
			if !unicode.IsPrint(r) {
				return nil, fmt.Errorf("scopes[%d]: description contains a character that cannot be shown", i)
			}
		}
		if n < 1 || n > maxDescription {
			return nil, fmt.Errorf("scopes[%d]: description has %d characters, want 1 to %d", i, n, maxDescription)
		}
		if seen[s.ID] {
			return nil, fmt.Errorf("scopes[%d]: %s stands in it twice", i, s.ID)
		}
		seen[s.ID] = true
		scopes = append(scopes, s)
	}
	return scopes, nil
}
