package authority

import (
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
)

// FuzzParams: what was checked and put into its one form, which is what the person
// signs, is taken as it is when the signature comes.
func FuzzParams(f *testing.F) {
	kinds := []struct {
		check func(map[string]string) error
		names [5]string
	}{
		{delegationParams, [5]string{"delegate", "audience", "scopes", "grant_type", "duration"}},
		{delegationParams, [5]string{"delegate", "audience", "scopes", "grant_type", "expires_at"}},
		{deputyParams, [5]string{"deputy", "agents", "max_risk", "from", "until"}},
		{policyParams, [5]string{"policy", "days"}},
		{standingParams, [5]string{"pattern", "days", "reason"}},
	}
	f.Add(uint8(0), "bot@box", "plans.example.com", "b a a", "timed", "3600")
	f.Add(uint8(1), "Bot@box", "*", "", "always", "2030-01-31T12:00:00+01:00")
	f.Add(uint8(2), "ann@example.com", "b@x, a@x,b@x", "high", "", "2030-01-31T12:00:00.5Z")
	f.Add(uint8(2), "ann@example.com", "*", "low", "2029-01-31T12:00:00Z", "9999-12-31T23:59:59-23:59")
	f.Add(uint8(3), `{"agent":"b@x","mode":"deny-list","deny":["rm  *"],"deny_risk":"high"}`, "", "", "", "")
	f.Add(uint8(3), wide(20, 200), "1", "", "", "")
	f.Add(uint8(4), `{"agent":"*","programs":["cat"],"does":["read"],"read":["/p/./**","/p/**"]}`, "90", "because", "", "")
	f.Add(uint8(4), `{"agent":"*","programs":["cat"],"read":["/`+strings.Repeat("<", 500)+`"],"write":["/`+strings.Repeat("&", 500)+`"]}`, "", "", "", "")
	f.Fuzz(func(t *testing.T, kind uint8, a, b, c, d, e string) {
		k := kinds[int(kind)%len(kinds)]
		params := map[string]string{}
		for i, value := range []string{a, b, c, d, e} {
			if k.names[i] != "" && value != "" {
				params[k.names[i]] = value
			}
		}
		if k.check(params) != nil {
			return
		}
		again := maps.Clone(params)
		if err := k.check(again); err != nil {
			t.Fatalf("what is signed would be refused: %v: %q", err, params)
		}
		if !maps.Equal(params, again) {
			t.Errorf("the one form %q has another: %q", params, again)
		}
	})
}

// wide is a policy whose JSON grows by escapes when it is put into its one form.
func wide(patterns, length int) string {
	list := make([]string, patterns)
	for i := range list {
		list[i] = fmt.Sprintf(`"%s"`, strings.Repeat("<", length))
	}
	return `{"agent":"b@x","mode":"allow-list","allow":[` + strings.Join(list, ",") + `]}`
}

// TestLargeInOneForm: what grows too large in its one form is refused before
// anybody signs it.
func TestLargeInOneForm(t *testing.T) {
	for name, test := range map[string]struct {
		patterns int
		good     bool
	}{"within": {10, true}, "above": {20, false}} {
		if err := policyParams(map[string]string{"policy": wide(test.patterns, 200)}); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzAuthorize: what is taken as a request is bounded, and its answer goes to the
// address that it names, with the state that it came with.
func FuzzAuthorize(f *testing.F) {
	challenge := strings.Repeat("a", 43)
	f.Add("response_type=code&client_id=apes-cli&redirect_uri=http%3A%2F%2Flocalhost%2Fcb&state=x&code_challenge_method=S256&code_challenge=" + challenge)
	f.Add("response_type=token&client_id=a&redirect_uri=b%3Fc&state=%26iss%3D1&max_age=0&prompt=none+login&code_challenge_method=S256&code_challenge=" + challenge)
	a := &Authority{cfg: Config{Issuer: "https://id.example.com"}}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		_, _ = parseBridge(q)
		r, err := parseAuthorize(q)
		if err != nil {
			return
		}
		if r.Client == "" || r.RedirectURI == "" || r.State == "" || len(r.Challenge) != 43 || len(query) > 0 && r.MaxAge < -1 {
			t.Fatalf("taken: %+v", r)
		}
		to := a.answer(r, url.Values{"code": {"the code"}})
		rest, ok := strings.CutPrefix(to, r.RedirectURI)
		if !ok {
			t.Fatalf("%q does not go to %q", to, r.RedirectURI)
		}
		v, err := url.ParseQuery(rest[1:])
		if err != nil || v.Get("state") != r.State || v.Get("iss") != a.cfg.Issuer || v.Get("code") != "the code" || len(v) != 3 {
			t.Errorf("the answer is %q (%v)", to, err)
		}
	})
}
