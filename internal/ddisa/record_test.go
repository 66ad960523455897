package ddisa

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParseRecord(t *testing.T) {
	const idp = "https://id.example.com"
	for text, want := range map[string]Record{
		"v=ddisa1 idp=https://id.example.com":                         {IDP: idp, Priority: 10},
		"v=ddisa1 idp=https://id.example.com/":                        {IDP: idp + "/", Priority: 10}, // another authority
		"v=ddisa1 idp=https://ID.Example.com":                         {IDP: "https://ID.Example.com", Priority: 10},
		"v=ddisa1 idp=https://id.example.com:8443/a":                  {IDP: idp + ":8443/a", Priority: 10},
		"v=ddisa1  IDP = https://id.example.com ; Mode=OPEN":          {IDP: idp, Priority: 10, Mode: Open},
		"v=ddisa1 mode=deny; idp=https://id.example.com":              {IDP: idp, Priority: 10, Mode: Deny},
		"v=ddisa1 idp=https://id.example.com;mode=allowlist-user;;":   {IDP: idp, Priority: 10, Mode: AllowlistUser},
		"v=ddisa1 idp=https://id.example.com; mode=allowlist-admin;":  {IDP: idp, Priority: 10, Mode: AllowlistAdm},
		"v=ddisa1 idp=https://id.example.com; priority=0":             {IDP: idp},
		"v=ddisa1 idp=https://id.example.com; priority=65535":         {IDP: idp, Priority: 65535},
		"v=ddisa1 idp=https://id.example.com; policy=https://a.test/": {IDP: idp, Priority: 10, PolicyEndpoint: "https://a.test/"},
		"v=ddisa1 idp=https://xn--bcher-kva.example":                  {IDP: "https://xn--bcher-kva.example", Priority: 10},
		// What is wrong beside idp is left out.
		"v=ddisa1 idp=https://id.example.com; mode=anything":              {IDP: idp, Priority: 10, Ignored: []string{`the mode "anything" is none of open, allowlist-admin, allowlist-user, deny`}},
		"v=ddisa1 idp=https://id.example.com; priority=-1":                {IDP: idp, Priority: 10, Ignored: []string{`the priority "-1" is no number from 0 to 65535`}},
		"v=ddisa1 idp=https://id.example.com; priority=1e3":               {IDP: idp, Priority: 10, Ignored: []string{`the priority "1e3" is no number from 0 to 65535`}},
		"v=ddisa1 idp=https://id.example.com; policy_endpoint=http://a.b": {IDP: idp, Priority: 10, Ignored: []string{`the policy endpoint "http://a.b" is no https address`}},
		"v=ddisa1 idp=https://id.example.com; new=1; word":                {IDP: idp, Priority: 10, Ignored: []string{`the key "new" is not known`, `"word" has no value`}},
	} {
		got, err := ParseRecord(text, false)
		if err != nil || got.IDP != want.IDP || got.Mode != want.Mode || got.Priority != want.Priority ||
			got.PolicyEndpoint != want.PolicyEndpoint || !slices.Equal(got.Ignored, want.Ignored) {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestNoRecord(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                            "does not begin with",
		"v=spf1 -all":                                                 "does not begin with",
		"v=ddisa1; idp=https://a.example":                             "does not begin with",
		"v=ddisa10 idp=https://a.example":                             "does not begin with",
		"V=DDISA1 idp=https://a.example":                              "does not begin with",
		" v=ddisa1 idp=https://a.example":                             "does not begin with",
		"v=ddisa1\tidp=https://a.example":                             "does not begin with",
		"v=ddisa2 idp=https://a.example":                              "does not begin with",
		"v=ddisa1":                                                    "idp is missing",
		"v=ddisa1 ":                                                   "idp is missing",
		"v=ddisa1 mode=open":                                          "idp is missing",
		"v=ddisa1 idp=":                                               "idp",
		"v=ddisa1 idp=http://a.example":                               "https",
		"v=ddisa1 idp=http://127.0.0.1:8648":                          "https",
		"v=ddisa1 idp=javascript:alert(1)":                            "https",
		"v=ddisa1 idp=https://a@b.example":                            "user",
		"v=ddisa1 idp=https://a:b@c.example":                          "user",
		"v=ddisa1 idp=https://@b.example":                             "user",
		"v=ddisa1 idp=https://a.example?x=1":                          "query",
		"v=ddisa1 idp=https://a.example#x":                            "fragment",
		"v=ddisa1 idp=https://b\u00fccher.de":                         "0xc3",
		"v=ddisa1 idp=https://a.example\u200b":                        "0xe2",
		"v=ddisa1 idp=https://a.example\x00":                          "0x00",
		"v=ddisa1 idp=https://a.example\\@evil":                       "0x5c",
		"v=ddisa1 idp=https://a.example evil":                         "0x20",
		"v=ddisa1 idp=https://127.1":                                  "IPv4",
		"v=ddisa1 idp=https://a.example; idp=https://b.example":       "twice",
		"v=ddisa1 idp=https://a.example; IDP=https://a.example":       "twice",
		"v=ddisa1 idp=https://a.example; mode=open; mode=deny":        "twice",
		"v=ddisa1 idp=https://a.example/" + strings.Repeat("a", 5000): "bytes",
	} {
		r, err := ParseRecord(text, false)
		if err == nil || !strings.Contains(err.Error(), want) || r.IDP != "" {
			t.Errorf("%q: %+v, %v; want an error about %q", text, r, err, want)
		}
	}
	if _, err := ParseRecord("v=spf1", false); !errors.Is(err, ErrOther) {
		t.Error(err)
	}
}

// Only what somebody has written down on this machine may lead to it without TLS.
func TestPlainIDP(t *testing.T) {
	for text, want := range map[string]bool{
		"http://127.0.0.1:8648": true, "http://localhost:1": true, "http://[::1]:1": true, "http://vogt.localhost": true, "https://a.example": true,
		"http://a.example": false, "http://127.0.0.1.example": false, "http://10.0.0.1": false, "http://169.254.169.254": false, "http://localhost.example": false,
	} {
		if err := CheckIDP(text, true); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
		if err := CheckIDP(text, false); (err == nil) != strings.HasPrefix(text, "https") {
			t.Errorf("%s in the DNS: %v", text, err)
		}
	}
}

func TestChoose(t *testing.T) {
	record := func(idp, rest string) string { return "v=ddisa1 idp=https://" + idp + ".example" + rest }
	for _, tt := range []struct {
		name  string
		texts []string
		want  string
	}{
		{"none", nil, ""},
		{"others only", []string{"v=spf1 -all", "hello"}, ""},
		{"broken only", []string{"v=ddisa1 idp=http://a.example"}, ""},
		{"one of several", []string{"v=spf1 -all", record("a", "")}, "https://a.example"},
		{"the lowest priority", []string{record("a", "; priority=20"), record("b", "; priority=5"), record("c", "")}, "https://b.example"},
		{"10 when there is none", []string{record("a", "; priority=11"), record("b", "")}, "https://b.example"},
		{"a broken one does not win", []string{record("a", ""), "v=ddisa1 idp=http://b.example; priority=1"}, "https://a.example"},
		{"equal priorities, either order", []string{record("b", ""), record("a", "")}, "https://a.example"},
		{"equal priorities, either order", []string{record("a", ""), record("b", "")}, "https://a.example"},
		{"not past the bound", append(slices.Repeat([]string{"x"}, maxRecords), record("a", "")), ""},
	} {
		r, found, all := choose(tt.texts, false)
		if r.IDP != tt.want || found != (tt.want != "") || len(all) != min(len(tt.texts), maxRecords) {
			t.Errorf("%s: %+v, %v, %d texts", tt.name, r, found, len(all))
		}
	}
}

func TestDomainOf(t *testing.T) {
	for email, want := range map[string]string{
		"a@example.com":      "example.com",
		"A@EXAMPLE.com":      "example.com",
		"a@example.com.":     "example.com",
		"a@b\u00fccher.de":   "xn--bcher-kva.de",
		"a@xn--bcher-kva.de": "xn--bcher-kva.de",
		"bot-b6c873db+patrick+example_com@id.example.com": "id.example.com",
		"a@b@example.com":                        "",
		"a@@example.com":                         "",
		"@example.com":                           "",
		"a@":                                     "",
		"a":                                      "",
		"":                                       "",
		"a@localhost":                            "",
		"a@127.0.0.1":                            "",
		"a@127.1":                                "",
		"a@[127.0.0.1]":                          "",
		"a@::1":                                  "",
		"a@example.com:53":                       "",
		"a@example.com/x":                        "",
		"a@_ddisa.example.com":                   "",
		"a@exa mple.com":                         "",
		"a@example.com\n":                        "",
		"a@example..com":                         "",
		"a@" + strings.Repeat("a.", 124) + "com": "", // 251 bytes: no room for _ddisa.
	} {
		d, err := DomainOf(email)
		if d.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", email, d, err, want)
		}
	}
}

func FuzzRecord(f *testing.F) {
	for _, seed := range []string{"v=ddisa1 idp=https://id.example.com; mode=open; priority=5; policy_endpoint=https://a/", "v=ddisa1 idp=http://localhost", "v=ddisa1 =;==;idp=https://a.b/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRecord(text, false)
		if err != nil {
			if r.IDP != "" || r.Mode != NoMode {
				t.Errorf("%q: an error and %+v", text, r)
			}
			return
		}
		if !strings.HasPrefix(strings.ToLower(r.IDP), "https://") || !strings.Contains(text, r.IDP) || strings.ContainsAny(r.IDP, "@#?\\ \t\r\n") {
			t.Errorf("%q: the authority is %q", text, r.IDP)
		}
		if !slices.Contains([]Mode{NoMode, Open, AllowlistAdm, AllowlistUser, Deny}, r.Mode) || r.Priority < 0 || r.Priority > maxPriority {
			t.Errorf("%q: %+v", text, r)
		}
		again, err := ParseRecord("v=ddisa1 idp="+r.IDP+"; mode="+string(r.Mode), false)
		if err != nil || again.IDP != r.IDP || again.Mode != r.Mode {
			t.Errorf("%q: %+v, written again %+v, %v", text, r, again, err)
		}
	})
}
