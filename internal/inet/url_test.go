package inet

import (
	"net/http"
	"testing"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.com":             "https://example.com",
		"https://example.com/":            "https://example.com/",
		"HTTPS://Example.COM:443/A%2fb?c": "https://example.com/A%2fb?c",
		"http://localhost:9876/callback":  "http://localhost:9876/callback",
		"https://[2001:DB8::1]:8443/":     "https://[2001:db8::1]:8443/",
		"https://example.com?":            "https://example.com?",
		"https://example.com/../x":        "https://example.com/../x",
		"http://example.com:443/":         "http://example.com:443/",
		"https://user@example.com/":       "",
		"https://user:@example.com/":      "",
		"https://@example.com/":           "",
		"https://example.com/#":           "",
		"https://example.com\\@evil/":     "",
		"https://exam%70le.com/":          "",
		"https://b%C3%BCcher.example/":    "",
		"https://example.com:/":           "",
		"https://127.1/":                  "",
		"https:example.com":               "",
		"ftp://example.com/":              "",
		"example.com":                     "",
		"":                                "",
	} {
		u, err := ParseURL(text)
		got := ""
		if err == nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("ParseURL(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, seed := range []string{"https://sp.example.com/a?b=c", "https://[::1]:443/", "http://a@b/", "https://a%2eb/", "https://a:1:2", "https://a\\b", "https://A/../b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseURL(text)
		if err != nil {
			return
		}
		if again, err := ParseURL(p.String()); err != nil || again != p {
			t.Errorf("ParseURL(%q) = %q, and of that %q, %v", text, p, again, err)
		}
		if _, err := http.NewRequest(http.MethodGet, p.String(), nil); err != nil {
			t.Errorf("ParseURL(%q) = %q, which cannot be sent: %v", text, p, err)
		}
	})
}
