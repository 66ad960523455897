package egress

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"vogt/internal/inet"
)

// Others who reach the listener get nothing: no host, no budget, and no word about
// what is granted.
func TestPassword(t *testing.T) {
	const password = "right"
	port := newEcho(t)
	rules := []Rule{{Host: "127.0.0.1", Ports: []uint16{port}, Within: loopback, Carry: CarryAnything}}
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	connect := func(values ...string) string {
		lines := []string{fmt.Sprintf("CONNECT 127.0.0.1:%d HTTP/1.1", port)}
		for _, v := range values {
			lines = append(lines, "Proxy-Authorization: "+v)
		}
		return crlf(lines...)
	}
	socks := func(methods, word string) string {
		text := "\x05" + string([]byte{byte(len(methods))}) + methods
		if word != "" {
			text += "\x01\x04vogt" + string([]byte{byte(len(word))}) + word
		}
		return text + socksTo(1, socksIPv4, "\x7f\x00\x00\x01", port)
	}
	for _, tt := range []struct {
		name, text string
		want       string // that the answer begins with
		reason     Reason
	}{
		{"CONNECT", connect(basic("vogt:right")), "HTTP/1.1 200", NoReason},
		{"CONNECT, the scheme in capitals", connect("BASIC " + base64.StdEncoding.EncodeToString([]byte("vogt:right"))), "HTTP/1.1 200", NoReason},
		{"SOCKS", socks("\x00\x02", "right"), "\x05\x02\x01\x00\x05\x00", NoReason},
		{"CONNECT, none", connect(), "HTTP/1.1 407", NoCredential},
		{"CONNECT, empty", connect(""), "HTTP/1.1 407", NoCredential},
		{"CONNECT, wrong", connect(basic("vogt:wrong")), "HTTP/1.1 407", NoCredential},
		{"CONNECT, a part", connect(basic("vogt:righ")), "HTTP/1.1 407", NoCredential},
		{"CONNECT, another name", connect(basic("root:right")), "HTTP/1.1 407", NoCredential},
		{"CONNECT, no name", connect(basic("right")), "HTTP/1.1 407", NoCredential},
		{"CONNECT, two", connect(basic("vogt:wrong"), basic("vogt:right")), "HTTP/1.1 407", NoCredential},
		{"CONNECT, two, the first is right", connect(basic("vogt:right"), basic("vogt:wrong")), "HTTP/1.1 407", NoCredential},
		{"CONNECT, another scheme", connect("Bearer right"), "HTTP/1.1 407", NoCredential},
		{"CONNECT, no base64", connect("Basic vogt:right"), "HTTP/1.1 407", NoCredential},
		{"a request", crlf(fmt.Sprintf("GET http://127.0.0.1:%d/ HTTP/1.1", port), "Host: x"), "HTTP/1.1 407", NoCredential},
		{"a request to what nobody grants", crlf("GET http://other.test/ HTTP/1.1", "Host: x"), "HTTP/1.1 407", NoCredential},
		{"SOCKS, none", socks("\x00", ""), "\x05\xff", NoCredential},
		{"SOCKS, wrong", socks("\x02", "wrong"), "\x05\x02\x01\x01", NoCredential},
		{"SOCKS, another version", "\x05\x01\x02\x05\x04vogt\x05right", "\x05\x02", NoCredential},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr, audit := serve(t, Config{Policy: Policy{Rules: rules}, Own: noOwn, Password: password})
			conn := dial(t, addr)
			if _, err := io.WriteString(conn, tt.text); err != nil {
				t.Fatal(err)
			}
			_ = conn.CloseWrite()
			answer, err := io.ReadAll(conn)
			if err != nil && !isReset(err) {
				t.Fatal(err)
			}
			r := audit.last(t)
			if !strings.HasPrefix(string(answer), tt.want) || r.Reason != tt.reason && (tt.reason != NoReason || r.Reason != ClientGone) {
				t.Errorf("%q, recorded is %v; want %q, %v", answer, r.Reason, tt.want, tt.reason)
			}
			if tt.reason != NoReason && (strings.Contains(string(answer), "right") || r.Address.IsValid()) {
				t.Errorf("%q, recorded is %+v", answer, r)
			}
			if challenge := strings.Contains(string(answer), "Proxy-Authenticate: Basic "); challenge != strings.HasPrefix(tt.want, "HTTP/1.1 407") {
				t.Errorf("%q", answer)
			}
		})
	}
}

// Requests of strangers are not taken from the session's budget.
func TestStrangersUseNothing(t *testing.T) {
	port := newEcho(t)
	addr, audit := serve(t, Config{
		Policy: Policy{Rules: []Rule{{Host: "127.0.0.1", Ports: []uint16{port}, Within: loopback, Carry: CarryAnything}}, Limits: Limits{Requests: 1}},
		Own:    noOwn, Password: "right",
	})
	for range 3 {
		if answer := say(t, addr, crlf("CONNECT a.test:443 HTTP/1.1")); !strings.HasPrefix(answer, "HTTP/1.1 407") {
			t.Errorf("%q", answer)
		}
		say(t, addr, "nonsense\r\n\r\n")
	}
	audit.wait(t, 6)
	proxy := &url.URL{Scheme: "http", Host: addr, User: url.UserPassword(User, "right")}
	host, _ := inet.ParseHost("127.0.0.1")
	conn, err := DialThrough(t.Context(), proxy, host, port)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := DialThrough(t.Context(), proxy, host, port); err == nil || !strings.Contains(err.Error(), "as many requests as it may") {
		t.Errorf("past the budget: %v", err)
	}
}

func TestVariables(t *testing.T) {
	got := Variables("127.0.0.1:9", "pass")
	for _, want := range []string{"http_proxy=http://vogt:pass@127.0.0.1:9", "HTTPS_PROXY=http://vogt:pass@127.0.0.1:9", "ALL_PROXY=socks5h://vogt:pass@127.0.0.1:9", "no_proxy=", "NO_PROXY="} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	u, err := ProxyOf(func(name string) string {
		for _, v := range got {
			if text, ok := strings.CutPrefix(v, name+"="); ok {
				return text
			}
		}
		return ""
	})
	if password, _ := u.User.Password(); err != nil || u.Host != "127.0.0.1:9" || password != "pass" {
		t.Errorf("%v, %v", u, err)
	}
}

func TestProxyOf(t *testing.T) {
	for _, tt := range []struct {
		variables map[string]string
		want      string // address, or part of the error
	}{
		{map[string]string{}, "no variable"},
		{map[string]string{"http_proxy": "http://a:1"}, "no variable"}, // is for requests, not for tunnels
		{map[string]string{"HTTPS_PROXY": "http://a:1", "https_proxy": "http://b:2"}, "http://b:2"},
		{map[string]string{"HTTPS_PROXY": "a:1"}, "http://a:1"},
		{map[string]string{"ALL_PROXY": "socks5h://a"}, "socks5h://a:1080"},
		{map[string]string{"https_proxy": "http://a"}, "http://a:80"},
		{map[string]string{"https_proxy": "https://u:secret@a"}, "scheme https"},
		{map[string]string{"https_proxy": "http://u:secret%zz@a"}, "https_proxy is no address"},
	} {
		u, err := ProxyOf(func(name string) string { return tt.variables[name] })
		got := fmt.Sprint(u)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) || strings.Contains(got, "secret") {
			t.Errorf("%v: %q, want %q", tt.variables, got, tt.want)
		}
	}
}

func TestDialThrough(t *testing.T) {
	port := newEcho(t)
	dns := newNames(map[string]string{"echo.test": "127.0.0.1", "private.test": "10.0.0.1"})
	for _, scheme := range []string{"http", "socks5h"} {
		for _, password := range []string{"", "right"} {
			addr, _ := serve(t, Config{
				Policy: Policy{Rules: []Rule{
					{Host: "echo.test", Ports: []uint16{port}, Within: loopback, Carry: CarryAnything},
					{Host: "127.0.0.1", Ports: []uint16{port}, Within: loopback, Carry: CarryAnything}, {Host: "private.test"},
				}},
				Resolve: dns.resolve, Own: noOwn, Password: password,
			})
			proxy := &url.URL{Scheme: scheme, Host: addr}
			if password != "" {
				proxy.User = url.UserPassword(User, password)
			}
			for _, name := range []string{"echo.test", "127.0.0.1"} {
				host, _ := inet.ParseHost(name)
				conn, err := DialThrough(t.Context(), proxy, host, port)
				if err != nil {
					t.Fatalf("%s %s: %v", scheme, name, err)
				}
				text := bytes.Repeat([]byte("0123456789"), 10_000)
				go func() { _, _ = conn.Write(text); _ = conn.CloseWrite() }()
				got, err := io.ReadAll(conn) // ends since the host sees the half that has ended
				if err != nil || !bytes.Equal(got, text) {
					t.Errorf("%s %s: %d bytes, %v", scheme, name, len(got), err)
				}
				conn.Close()
			}
			for name, want := range map[string]string{"other.test": "allow|no rule grants", "private.test": "allow|not public"} {
				host, _ := inet.ParseHost(name)
				_, err := DialThrough(t.Context(), proxy, host, 443)
				refused, ok := errors.AsType[*RefusedError](err)
				if !ok || !containsOne(refused.Error(), want) || (scheme == "http") != (refused.Remedy != "") {
					t.Errorf("%s %s: %v", scheme, name, err)
				}
			}
			proxy.User = url.UserPassword(User, "wrong")
			host, _ := inet.ParseHost("echo.test")
			if conn, err := DialThrough(t.Context(), proxy, host, port); (err == nil) != (scheme == "http" && password == "") {
				t.Errorf("%s with a wrong credential, right is %q: %v", scheme, password, err)
			} else if err == nil {
				conn.Close()
			}
		}
	}
}

func containsOne(text, parts string) bool {
	return slices.ContainsFunc(strings.Split(parts, "|"), func(part string) bool { return strings.Contains(text, part) })
}

// A proxy that lies or breaks off makes an error, and nothing waits for it.
func TestDialThroughBrokenProxy(t *testing.T) {
	host, _ := inet.ParseHost("a.test")
	for answer, scheme := range map[string]string{
		"": "http", "nonsense\r\n\r\n": "http", "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n": "http",
		"\x05\x00": "socks5", "\x04\x00": "socks5", "\x05\x00\x05\x02\x00\x01": "socks5", "\x05\x00\x05\x00\x00\x03\xffshort": "socks5h",
	} {
		until := "\r\n\r\n"
		if scheme != "http" {
			until = "\x05\x01\x00"
		}
		r := newRaw(t, until, answer)
		if conn, err := DialThrough(t.Context(), &url.URL{Scheme: scheme, Host: fmt.Sprintf("127.0.0.1:%d", r.port)}, host, 443); err == nil {
			conn.Close()
			t.Errorf("%q: no error", answer)
		}
	}
}
