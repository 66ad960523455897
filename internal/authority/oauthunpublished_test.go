package authority_test

import (
	"testing"

	"vogt/internal/authority"
	"vogt/internal/authoritytest"
)

const silent = "silent.example.com" // a service that publishes nothing

// A service that publishes nothing is answered at its own host alone, by https, and
// never without a person who says so: neither an open domain nor a list, nor an
// earlier yes, stands for that (DDISA Core, permissive).
func TestUnpublishedService(t *testing.T) {
	t.Parallel()
	sources := publish()
	sources.clients[silent] = authority.ClientMetadata{ID: silent, Unpublished: true}
	sources.clients["two.example.com"] = authority.ClientMetadata{ID: "two.example.com", Unpublished: true, RedirectURIs: []string{"https://evil.example/"}}
	w := withPasskey(t, append(withServices(sources), withAllowed("example.com", silent))...)
	w.addKey()
	for _, redirect := range []string{
		"https://evil.example/cb", "http://" + silent + "/cb", "https://" + silent + ":8443/cb", "https://" + silent + ".evil.example/cb",
		"https://sub." + silent + "/cb", "https://" + silent + "@evil.example/", "https://user@" + silent + "/cb", "https://" + silent + "\\@evil.example/",
		"//" + silent + "/cb", "https://" + silent + "/cb#x", "https://" + silent + "%2eevil.example/", "http://localhost:9876/callback", silent, "javascript:alert(1)",
	} {
		a := w.owner.Get("/authorize?" + request(silent, redirect).Encode())
		if a.Problem(400); a.Header.Get("Location") != "" {
			t.Errorf("%s: sent to %q", redirect, a.Header.Get("Location"))
		}
		if out, err := w.s.Authority.Authorize(ctx, w.page, request(silent, redirect)); err == nil {
			t.Errorf("%s: %+v", redirect, out)
		}
	}
	w.owner.Get("/authorize?" + request("two.example.com", "https://evil.example/").Encode()).Problem(400)
	w.owner.Get("/authorize?" + request("two.example.com", "https://two.example.com/").Encode()).Problem(400)

	redirect := "https://" + silent + "/any/path?x=y"
	q := request(silent, redirect)
	for _, mode := range []authority.Mode{authority.ModeOpen, authority.ModeAdmin, authority.ModePerson, ""} {
		sources.set("example.com", mode)
		for range 2 {
			if v := answered(t, w.owner.Get("/authorize?"+q.Encode()).Want(302).Header.Get("Location"), redirect); v.Get("error") != "consent_required" {
				t.Errorf("%q, a bearer: %v", mode, v)
			}
			out, err := w.s.Authority.Authorize(ctx, w.page, q)
			if err != nil || out.Ask == "" {
				t.Fatalf("%q, a page: %+v, %v", mode, out, err)
			}
			to, err := w.s.Authority.AnswerConsent(ctx, w.page, out.Ask, true)
			if v := answered(t, to, redirect); err != nil || v.Get("code") == "" {
				t.Errorf("%q, agreed: %q, %v", mode, to, err)
			}
		}
	}
	sources.set("example.com", authority.ModeDeny)
	if v := answered(t, w.owner.Get("/authorize?"+q.Encode()).Want(302).Header.Get("Location"), redirect); v.Get("error") != "access_denied" {
		t.Errorf("deny: %v", v)
	}
}

// What the configuration allows for a domain holds for that domain and service only.
func TestAllowedByConfiguration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ domain, client, want string }{
		{"example.com", plans, ""}, {"other.example", plans, "access_denied"}, {"example.com", local, "access_denied"},
		{"", plans, "access_denied"}, {"example.com", "", "access_denied"}, {"*", "*", "access_denied"},
	} {
		sources := publish()
		sources.set("example.com", authority.ModeAdmin)
		w := withPasskey(t, append(withServices(sources), withAllowed(tt.domain, tt.client))...)
		w.addKey()
		v := answered(t, w.owner.Get("/authorize?"+request(plans, plansRedirect).Encode()).Want(302).Header.Get("Location"), plansRedirect)
		if v.Get("error") != tt.want || (v.Get("code") != "") != (tt.want == "") {
			t.Errorf("%+v: %v", tt, v)
		}
	}
}

func withAllowed(domain, client string) authoritytest.Option {
	return authoritytest.WithConfig(func(c *authority.Config) {
		c.Allowed = []authority.AllowedService{{Domain: domain, Client: client}}
	})
}
