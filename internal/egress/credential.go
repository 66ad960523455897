package egress

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/url"
	"strings"
)

// User is the name that goes with Config.Password.
const User = "vogt"

// credential is what clients have to show where others can reach the listener too.
// The zero value demands nothing.
type credential struct {
	demanded bool
	sum      [sha256.Size]byte
}

func newCredential(password string) credential {
	if password == "" {
		return credential{}
	}
	return credential{demanded: true, sum: sha256.Sum256([]byte(User + ":" + password))}
}

// accepts compares in a time that says nothing of how much was right.
func (c credential) accepts(user, password string) bool {
	got := sha256.Sum256([]byte(user + ":" + password))
	return !c.demanded || subtle.ConstantTimeCompare(got[:], c.sum[:]) == 1
}

// acceptsFields reads the fields Proxy-Authorization of a request. One is wanted.
func (c credential) acceptsFields(values []string) bool {
	if !c.demanded {
		return true
	}
	if len(values) != 1 {
		return false
	}
	scheme, text, _ := strings.Cut(values[0], " ")
	data, err := base64.StdEncoding.DecodeString(strings.TrimLeft(text, " "))
	if err != nil || !strings.EqualFold(scheme, "Basic") {
		return false
	}
	user, password, ok := strings.Cut(string(data), ":")
	return ok && c.accepts(user, password)
}

// Variables are the variables that send programs to a proxy at host:port; without
// a password it takes none. Most programs read one of the spellings; node needs to
// be told to look. No host is left out: what lies on this machine is the policy's
// business too.
func Variables(address, password string) []string {
	u := url.URL{Host: address}
	if password != "" {
		u.User = url.UserPassword(User, password)
	}
	var out []string
	for _, v := range [...]struct{ name, scheme string }{{"http_proxy", "http"}, {"https_proxy", "http"}, {"all_proxy", "socks5h"}} {
		u.Scheme = v.scheme
		out = append(out, v.name+"="+u.String(), strings.ToUpper(v.name)+"="+u.String())
	}
	return append(out, "no_proxy=", "NO_PROXY=", "NODE_USE_ENV_PROXY=1")
}
