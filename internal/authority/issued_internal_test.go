package authority

import (
	"strconv"
	"testing"

	"vogt/internal/token"
)

// TestIssuedForItsRing: no change of keys leaves a token remembered, and neither
// do ten thousand others.
func TestIssuedForItsRing(t *testing.T) {
	i, ring := newIssued(), &keyring{}
	i.put("raw", token.Grant{GrantID: "g", Command: []string{"ls"}}, ring)
	if c, ok := i.get("raw", ring); !ok || c.GrantID != "g" || c.Command != nil {
		t.Errorf("remembered: %+v, %v", c, ok)
	}
	if _, ok := i.get("raw", &keyring{created: 1}); ok {
		t.Error("it counts under other keys")
	}
	if _, ok := i.get("raw2", ring); ok {
		t.Error("another one counts")
	}
	for n := range 10_000 {
		i.put(strconv.Itoa(n), token.Grant{}, ring)
	}
	if len(i.all) > maxIssued {
		t.Errorf("%d are remembered", len(i.all))
	}
}
