package httpapi_test

import (
	"strings"
	"testing"

	"vogt/internal/authoritytest"
	"vogt/internal/httpapi"
)

// TestMadeUpBearersAreCounted: addresses that read no bearer, or one that is no login,
// count a made-up one for whoever sends it.
func TestMadeUpBearersAreCounted(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"POST /token", "POST /revoke", "GET /userinfo", "POST /api/grants/x/consume"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := authoritytest.Start(t, limited(httpapi.Rates{Strangers: 5, Local: 1}))
			method, path, _ := strings.Cut(path, " ")
			body := map[string]string{"grant_type": "authorization_code", "token": "x"}
			passed, last := many(12, func() authoritytest.Answer {
				c := &authoritytest.Client{S: s, Bearer: "made.up.token"}
				if method == "GET" {
					return c.Do(method, path, nil, "X-Forwarded-For", "192.0.2.7")
				}
				return c.Do(method, path, body, "X-Forwarded-For", "192.0.2.7")
			})
			if passed != 5 || last.Status != 429 {
				t.Errorf("%d of 12 passed, the last was %d", passed, last.Status)
			}
		})
	}
}
