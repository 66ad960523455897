package push

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzCheckEndpoint: whatever is taken leads to an allowed host by https, as a URL
// parser other than the check reads it.
func FuzzCheckEndpoint(f *testing.F) {
	for _, seed := range []string{
		"https://push.example/a", "https://a.push.example:443/", "https://push.example@evil.example/", "https://evil.example\\@push.example/",
		"https:push.example", "https://push.example.evil.example/", "https://[::1]/", "https://push.example:443@evil.example/", "HTTPS://PUSH.EXAMPLE/", "https://.push.example/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		if CheckEndpoint(endpoint, []string{"push.example", "*.push.example"}) != nil {
			return
		}
		u, err := url.ParseRequestURI(endpoint)
		if err != nil {
			if u, err = url.Parse(endpoint); err != nil {
				t.Fatal(err)
			}
		}
		// What stands between // and the next delimiter, as other parsers read it.
		_, rest, ok := strings.Cut(endpoint, "://")
		if !ok {
			t.Fatalf("%q has no authority", endpoint)
		}
		if i := strings.IndexAny(rest, `/\?#`); i >= 0 {
			rest = rest[:i]
		}
		rest = strings.TrimSuffix(strings.ToLower(rest), ":443")
		rest = strings.TrimSuffix(rest, ":")
		if u.Scheme != "https" || u.User != nil || rest != "push.example" && !strings.HasSuffix(rest, ".push.example") || len(endpoint) > maxEndpoint {
			t.Errorf("%q was taken", endpoint)
		}
	})
}

// FuzzCheckKeys: what is taken can be encrypted for.
func FuzzCheckKeys(f *testing.F) {
	f.Add("BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU", "AAECAwQFBgcICQoLDA0ODw")
	f.Add("BA", "")
	f.Add("BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU", "AAECAwQFBgcI"+strings.Repeat("\r\n", 20)+"CQoLDA0ODw")
	f.Fuzz(func(t *testing.T, p256dh, auth string) {
		if CheckKeys(p256dh, auth) == nil && (len(p256dh) > 100 || len(auth) > 30) {
			t.Errorf("%q, %q were taken", p256dh, auth)
		}
	})
}
