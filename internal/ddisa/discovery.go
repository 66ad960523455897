package ddisa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"vogt/internal/fetch"
)

// PathDiscovery is where an authority says what it is (OpenID Connect Discovery 1.0,
// section 4; RFC 8414 has another place, which DDISA does not use).
const PathDiscovery = "/.well-known/openid-configuration"

// Discovery is what an authority says of itself, as far as it matters here.
type Discovery struct {
	Issuer      string   `json:"issuer"`
	Version     string   `json:"ddisa_version"`
	AuthMethods []string `json:"ddisa_auth_methods_supported"`
}

// ErrOtherIssuer tells that who answers at an authority's address calls itself by
// another one.
var ErrOtherIssuer = errors.New("it calls itself by another address")

// Discover asks the authority at idp what it is. That it calls itself by idp, to the
// letter, is part of the question: else anybody could answer for it. The document is
// returned together with ErrOtherIssuer too.
func Discover(ctx context.Context, client *fetch.Client, idp string) (Discovery, error) {
	doc, err := client.Get(ctx, fetch.Request{URL: trimSlash(idp) + PathDiscovery, Types: []string{"application/json"}})
	if err != nil {
		return Discovery{}, err
	}
	var d Discovery
	if err := json.Unmarshal(doc.Body, &d); err != nil {
		return Discovery{}, fmt.Errorf("%s: it is no JSON object of discovery", doc.URL)
	}
	if d.Issuer != idp {
		return d, fmt.Errorf("%s: %w, %.200q", doc.URL, ErrOtherIssuer, d.Issuer)
	}
	return d, nil
}

// trimSlash takes the final slash away, as discovery does before it adds a path.
func trimSlash(address string) string {
	for len(address) > 0 && address[len(address)-1] == '/' {
		address = address[:len(address)-1]
	}
	return address
}
