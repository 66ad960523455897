package inet

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseHost(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Repeat(label+".", 3)
	for text, want := range map[string]string{
		"example.com":                   "example.com",
		"EXAMPLE.Com":                   "example.com",
		"example.com.":                  "example.com",
		"localhost":                     "localhost",
		"a-b.c--d.example":              "a-b.c--d.example",
		"r3---sn-4g5e.example":          "r3---sn-4g5e.example",
		"1.example":                     "1.example",
		"1.2.3.4.example":               "1.2.3.4.example",
		"0x7f.example":                  "0x7f.example",
		"bücher.example":                "xn--bcher-kva.example",
		"BÜCHER.example":                "xn--bcher-kva.example",
		"xn--bcher-kva.example":         "xn--bcher-kva.example",
		"XN--BCHER-KVA.example":         "xn--bcher-kva.example",
		"example。com":                   "example.com", // the ideographic full stop is a dot
		"ｅｘａｍｐｌｅ.com":                   "example.com",
		"exаmple.com":                   "xn--exmple-4nf.com", // the third letter is Cyrillic
		long + label[:61]:               long + label[:61],
		"192.0.2.7":                     "192.0.2.7",
		"192.0.2.7.":                    "192.0.2.7",
		"2001:db8::1":                   "2001:db8::1",
		"2001:DB8:0:0:0:0:0:1":          "2001:db8::1",
		"::1":                           "::1",
		"":                              "",
		".":                             "",
		"..":                            "",
		".example.com":                  "",
		"example.com..":                 "",
		"example..com":                  "",
		"-a.example":                    "",
		"a-.example":                    "",
		"_dmarc.example.com":            "",
		"a_b.example.com":               "",
		"*.example.com":                 "",
		"exa mple.com":                  "",
		"example.com\x00.evil.test":     "",
		"evil.test\x00.example.com":     "",
		"example.com\r\nHost: evil":     "",
		"example.com%00":                "",
		"example.com%2eevil.test":       "",
		"example.com/evil":              "",
		"example.com\\evil":             "",
		"user@example.com":              "",
		"example.com#evil":              "",
		"example.com?evil":              "",
		"exam\xffple.com":               "",
		"exam\u00adple.com":             "example.com", // a soft hyphen is nothing
		"example.com\u200b":             "example.com",
		"xn--":                          "",
		"xn--a.example":                 "",
		"xn--ascii-.example":            "",
		"xn--bücher-kva.example":        "",
		label + "a.example":             "",
		long + label[:62]:               "",
		strings.Repeat("a.", 600) + "a": "",
		"127.1":                         "",
		"127.0.1":                       "",
		"2130706433":                    "",
		"0x7f000001":                    "",
		"0x7f.1":                        "",
		"0x7f.0.0.0x1":                  "",
		"0X7F.1":                        "",
		"0177.0.0.1":                    "",
		"127.0.0.01":                    "",
		"127.0.0.256":                   "",
		"1.2.3.4.5":                     "",
		"example.123":                   "",
		"example.0x":                    "",
		"１２７.0.0.1":                     "",
		"127。0。0。1":                     "",
		"①②⑦.0.0.1":                     "",
		"::ffff:127.0.0.1":              "",
		"::ffff:7f00:1":                 "",
		"fe80::1%eth0":                  "",
		"[::1]":                         "",
		"example.com:443":               "",
		"::1::":                         "",
	} {
		host, err := ParseHost(text)
		if host.String() != want && (want != "" || err == nil) || (err == nil) != (want != "") {
			t.Errorf("ParseHost(%q) = %q, %v; want %q", text, host, err, want)
		}
	}
}

func TestParseAuthority(t *testing.T) {
	for text, want := range map[string]string{
		"example.com:443":       "example.com 443",
		"Example.com.:8443":     "example.com 8443",
		"[2001:db8::1]:443":     "2001:db8::1 443",
		"[2001:db8::1]":         "2001:db8::1 80",
		"192.0.2.1:1":           "192.0.2.1 1",
		"example.com":           "example.com 80",
		"example.com:65535":     "example.com 65535",
		"example.com:":          "",
		"example.com:0":         "",
		"example.com:0443":      "",
		"example.com:+443":      "",
		"example.com:65536":     "",
		"example.com:-1":        "",
		"example.com:443:80":    "",
		"example.com:443@evil":  "",
		"user:pw@evil.test:443": "",
		"2001:db8::1:443":       "",
		"[192.0.2.1]:443":       "",
		"[example.com]:443":     "",
		"[::1":                  "",
		"[::1]443":              "",
		"[::1]:":                "",
		"[::ffff:1.2.3.4]:443":  "",
		"[fe80::1%25eth0]:443":  "",
		"[::1]evil.test:443":    "",
		":443":                  "",
		"":                      "",
	} {
		host, port, err := ParseAuthority(text, 80)
		got := ""
		if err == nil {
			got = fmt.Sprint(host, " ", port)
		}
		if got != want {
			t.Errorf("ParseAuthority(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	if _, _, err := ParseAuthority("example.com", 0); err == nil {
		t.Error("a missing port is accepted where none is the default")
	}
}

func FuzzName(f *testing.F) {
	for _, seed := range []string{"example.com", "BÜCHER.example.", "xn--bcher-kva.de", "127.0.0.1", "0x7f.1", "::1", "a\x00b", "①.1", "exam\u00adple.com", "xn--a-.b", "ß.de"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		host, err := ParseHost(text)
		if err != nil {
			if host != (Host{}) {
				t.Errorf("ParseHost(%q) fails and returns %q", text, host)
			}
			return
		}
		name := host.String()
		if again, err := ParseHost(name); err != nil || again != host {
			t.Errorf("ParseHost(%q) = %q, and of that %q, %v", text, name, again, err)
		}
		if host.addr.IsValid() {
			if addr, err := netip.ParseAddr(strings.TrimSuffix(text, ".")); err != nil || addr != host.addr || addr.Is4In6() {
				t.Errorf("ParseHost(%q) is the address %v, which netip does not read: %v", text, host, err)
			}
			return
		}
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || name == "" || len(name) > maxName || name[len(name)-1] == '.' {
			t.Errorf("ParseHost(%q) = %q", text, name)
		}
		if _, err := netip.ParseAddr(name); err == nil || numberAtEnd(name) {
			t.Errorf("ParseHost(%q) = %q, which others take for an address", text, name)
		}
		if utf8.ValidString(text) && text == strings.ToLower(text) && isASCII(text) && name != strings.TrimSuffix(text, ".") {
			t.Errorf("ParseHost(%q) = %q changed more than the case", text, name)
		}
	})
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
