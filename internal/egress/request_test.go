package egress

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"vogt/internal/inet"
)

// crlf makes lines as HTTP has them.
func crlf(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

func TestReadRequest(t *testing.T) {
	get := func(fields ...string) string {
		return crlf(append([]string{"GET http://a.test/x HTTP/1.1", "Host: a.test"}, fields...)...)
	}
	post := func(fields ...string) string {
		return crlf(append([]string{"POST http://a.test/x HTTP/1.1", "Host: a.test"}, fields...)...)
	}
	connect := func(fields ...string) string {
		return crlf(append([]string{"CONNECT a.test:443 HTTP/1.1"}, fields...)...)
	}
	for _, tt := range []struct {
		name, text string
		reason     Reason // NoReason: accepted
		head       string // what is sent on; empty for a tunnel
	}{
		{"plain", get("Accept: */*"), NoReason, crlf("GET /x HTTP/1.1", "Host: a.test", "Accept: */*", "Connection: close")},
		{"another port", crlf("GET http://A.test:8080/x?y=//z HTTP/1.1", "Host: a.test:8080"), NoReason, crlf("GET /x?y=//z HTTP/1.1", "Host: a.test:8080", "Connection: close")},
		{"port 80 in words", crlf("GET http://a.test:80/ HTTP/1.1", "Host: a.test"), NoReason, crlf("GET / HTTP/1.1", "Host: a.test", "Connection: close")},
		{"no path", crlf("GET http://a.test HTTP/1.1", "Host: a.test"), NoReason, crlf("GET / HTTP/1.1", "Host: a.test", "Connection: close")},
		{"a query only", crlf("GET http://a.test?q HTTP/1.1", "Host: a.test"), NoReason, crlf("GET /?q HTTP/1.1", "Host: a.test", "Connection: close")},
		{"two slashes", crlf("GET http://a.test//b.test/ HTTP/1.1", "Host: a.test"), NoReason, crlf("GET //b.test/ HTTP/1.1", "Host: a.test", "Connection: close")},
		{"an address", crlf("GET HTTP://[2001:db8::1]/ HTTP/1.1", "Host: x"), NoReason, crlf("GET / HTTP/1.1", "Host: [2001:db8::1]", "Connection: close")},
		{"an older version", crlf("GET http://a.test/x HTTP/1.0"), NoReason, crlf("GET /x HTTP/1.1", "Host: a.test", "Connection: close")},
		{"another host in the header", crlf("GET http://a.test/x HTTP/1.1", "Host: b.test"), NoReason, crlf("GET /x HTTP/1.1", "Host: a.test", "Connection: close")},
		{"what is for this hop", get("Proxy-Authorization: Basic eDp5", "Proxy-Connection: keep-alive", "Keep-Alive: 5", "TE: trailers", "Trailer: X", "Upgrade: websocket", "HTTP2-Settings: AAM", "Connection: upgrade, X-Mine", "X-Mine: 1", "X-Other: 2"),
			NoReason, crlf("GET /x HTTP/1.1", "Host: a.test", "X-Other: 2", "Connection: close")},
		{"the host cannot be for this hop", get("Connection: host, close"), NoReason, crlf("GET /x HTTP/1.1", "Host: a.test", "Connection: close")},
		{"a length", post("Content-Length: 5"), NoReason, crlf("POST /x HTTP/1.1", "Host: a.test", "Content-Length: 5", "Connection: close")},
		{"a length for this hop", post("Content-Length: 5", "Connection: content-length"), NoReason, crlf("POST /x HTTP/1.1", "Host: a.test", "Content-Length: 5", "Connection: close")},
		{"no length", post(), NoReason, crlf("POST /x HTTP/1.1", "Host: a.test", "Content-Length: 0", "Connection: close")},
		{"chunks", post("Transfer-Encoding: Chunked"), NoReason, crlf("POST /x HTTP/1.1", "Host: a.test", "Transfer-Encoding: chunked", "Connection: close")},
		{"blanks around a value", get("X-A: \t b \t "), NoReason, crlf("GET /x HTTP/1.1", "Host: a.test", "X-A: b", "Connection: close")},

		{"CONNECT", connect("Host: a.test:443"), NoReason, ""},
		{"CONNECT without Host", connect(), NoReason, ""},
		{"CONNECT with a Host without port", connect("Host: A.test"), NoReason, ""},
		{"CONNECT with credentials", connect("Proxy-Authorization: Basic eDp5"), NoReason, ""},
		{"CONNECT in HTTP/1.0", crlf("CONNECT a.test:443 HTTP/1.0"), NoReason, ""},
		{"CONNECT, other Host", connect("Host: b.test:443"), BadRequest, ""},
		{"CONNECT, other port", connect("Host: a.test:444"), BadRequest, ""},
		{"CONNECT, two Hosts", connect("Host: a.test", "Host: a.test"), BadRequest, ""},
		{"CONNECT with a length", connect("Content-Length: 5"), BadRequest, ""},
		{"CONNECT in chunks", connect("Transfer-Encoding: chunked"), BadRequest, ""},
		{"CONNECT that waits", connect("Expect: 100-continue"), BadRequest, ""},
		{"CONNECT without a port", crlf("CONNECT a.test HTTP/1.1"), BadHost, ""},
		{"CONNECT to an address in a URL", crlf("CONNECT http://a.test:443 HTTP/1.1"), BadHost, ""},
		{"CONNECT with a user", crlf("CONNECT x@a.test:443 HTTP/1.1"), BadHost, ""},

		{"length and chunks", post("Content-Length: 5", "Transfer-Encoding: chunked"), BadRequest, ""},
		{"chunks and length", post("Transfer-Encoding: chunked", "Content-Length: 5"), BadRequest, ""},
		{"chunks and no length", post("Transfer-Encoding: chunked", "Content-Length: 0"), BadRequest, ""},
		{"two lengths", post("Content-Length: 5", "Content-Length: 6"), BadRequest, ""},
		{"one length twice", post("Content-Length: 5", "Content-Length: 5"), BadRequest, ""},
		{"lengths in a list", post("Content-Length: 5, 5"), BadRequest, ""},
		{"a length with a sign", post("Content-Length: +5"), BadRequest, ""},
		{"a negative length", post("Content-Length: -5"), BadRequest, ""},
		{"a length in hex", post("Content-Length: 0x5"), BadRequest, ""},
		{"a length with a line", post("Content-Length: 5_0"), BadRequest, ""},
		{"an empty length", post("Content-Length:"), BadRequest, ""},
		{"a length beyond all", post("Content-Length: 99999999999999999999"), BadRequest, ""},
		{"chunks twice", post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), BadRequest, ""},
		{"chunks in a list", post("Transfer-Encoding: gzip, chunked"), BadRequest, ""},
		{"chunks and identity", post("Transfer-Encoding: chunked, identity"), BadRequest, ""},
		{"almost chunks", post("Transfer-Encoding: xchunked"), BadRequest, ""},
		{"chunks after a vertical tab", post("Transfer-Encoding: \vchunked"), BadRequest, ""},
		{"chunks in HTTP/1.0", crlf("POST http://a.test/x HTTP/1.0", "Transfer-Encoding: chunked"), BadRequest, ""},
		{"chunks with a blank before the colon", post("Transfer-Encoding : chunked"), BadRequest, ""},
		{"a continued line", get("X-A: b", " Transfer-Encoding: chunked"), BadRequest, ""},
		{"a first line that is continued", crlf("GET http://a.test/ HTTP/1.1", " x: y", "Host: a.test"), BadRequest, ""},
		{"line feeds alone", strings.ReplaceAll(get(), "\r\n", "\n"), BadRequest, ""},
		{"one line feed alone", "GET http://a.test/ HTTP/1.1\r\nHost: a.test\nX: y\r\n\r\n", BadRequest, ""},
		{"the last line feed alone", "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\n", BadRequest, ""},
		{"a carriage return alone", get("X: a\rContent-Length: 5"), BadRequest, ""},
		{"two carriage returns", "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\r\n\r\n", BadRequest, ""},
		{"a NUL", get("X: a\x00b"), BadRequest, ""},
		{"an escape", get("X: a\x1bb"), BadRequest, ""},
		{"no colon", get("X"), BadRequest, ""},
		{"no name", get(": x"), BadRequest, ""},
		{"a name with a blank", get("X Y: z"), BadRequest, ""},
		{"a name in Unicode", get("Ｈost: b.test"), BadRequest, ""},
		{"two hosts", get("Host: b.test"), BadRequest, ""},
		{"no host", crlf("GET http://a.test/ HTTP/1.1", "X: y"), BadRequest, ""},
		{"another expectation", post("Content-Length: 1", "Expect: 200-ok"), BadRequest, ""},
		{"a fragment", crlf("GET http://a.test/#@b.test HTTP/1.1", "Host: a.test"), BadRequest, ""},
		{"a tabulator in the address", crlf("GET http://a.test/\tx HTTP/1.1", "Host: a.test"), BadRequest, ""},
		{"Unicode in the address", crlf("GET http://a.test/ü HTTP/1.1", "Host: a.test"), BadRequest, ""},

		{"a user", crlf("GET http://a.test@b.test/ HTTP/1.1", "Host: a.test"), BadHost, ""},
		{"a backslash", crlf(`GET http://a.test\@b.test/ HTTP/1.1`, "Host: a.test"), BadHost, ""},
		{"an encoded host", crlf("GET http://a%2etest/ HTTP/1.1", "Host: a.test"), BadHost, ""},
		{"no host in the address", crlf("GET http:///x HTTP/1.1", "Host: a.test"), BadHost, ""},
		{"an empty port", crlf("GET http://a.test:/ HTTP/1.1", "Host: a.test"), BadHost, ""},

		{"no address", crlf("GET /x HTTP/1.1", "Host: a.test"), BadScheme, ""},
		{"a star", crlf("OPTIONS * HTTP/1.1", "Host: a.test"), BadScheme, ""},
		{"https", crlf("GET https://a.test/ HTTP/1.1", "Host: a.test"), BadScheme, ""},
		{"one slash", crlf("GET http:/a.test/ HTTP/1.1", "Host: a.test"), BadScheme, ""},
		{"ftp", crlf("GET ftp://a.test/ HTTP/1.1", "Host: a.test"), BadScheme, ""},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", BadProtocol, ""},
		{"HTTP/0.9", "GET http://a.test/\r\n\r\n", BadProtocol, ""},
		{"HTTP/1.2", crlf("GET http://a.test/ HTTP/1.2", "Host: a.test"), BadProtocol, ""},
		{"small letters", crlf("GET http://a.test/ http/1.1", "Host: a.test"), BadProtocol, ""},
		{"two blanks", crlf("GET  http://a.test/ HTTP/1.1", "Host: a.test"), BadProtocol, ""},
		{"words behind", crlf("GET http://a.test/ HTTP/1.1 x", "Host: a.test"), BadProtocol, ""},
		{"a method that is none", crlf("G(T http://a.test/ HTTP/1.1", "Host: a.test"), BadProtocol, ""},
		{"an empty line first", "\r\n" + get(), BadRequest, ""},
		{"a long line", get("X: " + strings.Repeat("a", 5000)), TooLarge, ""},
		{"long lines", get(strings.Split(strings.Repeat("X: aaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", 200), "\n")[:99]...), TooLarge, ""},
		{"many lines", get(strings.Split(strings.Repeat("X:\n", 150), "\n")[:150]...), TooLarge, ""},
		{"half of it", get()[:30], ClientGone, ""},
	} {
		r, refused := readRequest(bufio.NewReaderSize(strings.NewReader(tt.text), 16), 2048)
		switch {
		case refused != nil && refused.reason != tt.reason:
			t.Errorf("%s: %v (%v), want %v", tt.name, refused.reason, refused, tt.reason)
		case refused != nil:
		case tt.reason != NoReason:
			t.Errorf("%s: accepted, want %v", tt.name, tt.reason)
		case r.target.scheme == PlainHTTP && string(r.head()) != tt.head:
			t.Errorf("%s: sent on is %q, want %q", tt.name, r.head(), tt.head)
		case r.target.scheme == Tunnel && tt.head != "":
			t.Errorf("%s: taken for a tunnel", tt.name)
		}
	}
}

// What is accepted means the same to net/http, and what is sent on is one
// request to the granted host.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		crlf("GET http://a.test/x HTTP/1.1", "Host: a.test", "Connection: x, y", "X: y"),
		crlf("POST http://a.test:81 HTTP/1.1", "Host: b", "Content-Length: 3") + "abc",
		crlf("POST http://[::1]/ HTTP/1.1", "Host: b", "Transfer-Encoding: chunked") + "1\r\na\r\n0\r\n\r\n",
		crlf("CONNECT a.test:443 HTTP/1.1", "Host: a.test:443"),
		crlf("GET http://a.test//x HTTP/1.0"),
		crlf("GET http://a.test/ HTTP/1.1", "Host: a.test") + crlf("GET http://b.test/ HTTP/1.1", "Host: b.test"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		br := bufio.NewReader(strings.NewReader(text))
		r, refused := readRequest(br, 4096)
		if refused != nil {
			return
		}
		std, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			// net/http knows methods and addresses that it does not accept; what
			// matters is what is sent on.
			if r.target.scheme == Tunnel {
				t.Errorf("CONNECT is accepted, and net/http says %v", err)
			}
		} else if std.Method != r.method || std.ContentLength != r.length && !r.chunked || r.chunked != (len(std.TransferEncoding) > 0) {
			t.Errorf("%q is read as %+v, and by net/http as %+v", text, r, std)
		} else if r.target.scheme == PlainHTTP {
			checkSameHost(t, r, std.URL)
		}
		if r.target.scheme == PlainHTTP {
			checkSentOn(t, r)
		}
	})
}

func checkSameHost(t *testing.T, r *request, u *url.URL) {
	t.Helper()
	host, err := inet.ParseHost(u.Hostname())
	if err != nil || host != r.target.host {
		t.Errorf("the host is %q, and for net/http %q", r.target.host, u.Hostname())
	}
}

func checkSentOn(t *testing.T, r *request) {
	t.Helper()
	head := r.head()
	again := bufio.NewReader(bytes.NewReader(head))
	// As a server reads it, with the address put back, since it may be one that
	// net/http does not take.
	sent, err := http.ReadRequest(again)
	if err != nil {
		lines, lineErr := readHead(bufio.NewReader(bytes.NewReader(head)), 1<<20)
		if lineErr != nil || !strings.HasPrefix(lines[0], r.method+" /") || !strings.HasSuffix(lines[0], " HTTP/1.1") {
			t.Errorf("%q is sent on, of which net/http says %v", head, err)
		}
		return
	}
	if host, port, err := inet.ParseAuthority(sent.Host, 80); err != nil || host != r.target.host || port != r.target.port {
		t.Errorf("%q is sent on, to the host %q", head, sent.Host)
	}
	if !sent.Close || len(sent.Header["Proxy-Authorization"]) > 0 || len(sent.Header["Upgrade"]) > 0 || len(sent.Trailer) > 0 {
		t.Errorf("%q is sent on", head)
	}
	if !r.hasBody() {
		if rest, _ := io.ReadAll(again); len(rest) > 0 {
			t.Errorf("%q is sent on, of which %q is a second request", head, rest)
		}
	}
}
