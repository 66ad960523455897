package egress

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"vogt/internal/inet"

	"golang.org/x/net/http/httpguts"
)

// field is a header field.
type field struct{ name, value string }

// request is the head of an HTTP request that can be read in one way only.
type request struct {
	target  target
	method  string
	path    string  // with the query, as the client wrote it
	minor   int     // of the version
	fields  []field // of the client's own, without those for this hop
	length  int64   // of the body, if not chunked
	chunked bool
	expects bool // waits for "100 Continue" before it sends the body

	credentials []string // for this proxy
}

// hasBody reports whether a body follows.
func (r *request) hasBody() bool { return r.chunked || r.length > 0 }

var (
	errLongHead = errors.New("the head is too long")
	errNoCRLF   = errors.New("a line does not end in CR LF")
)

// readRequest reads the head of a request: CONNECT, or one for an http://
// address. It accepts less than RFC 9112 does, since whatever two programs read
// differently can carry a second request past one of them.
func readRequest(br *bufio.Reader, limit int) (*request, *refusal) {
	return readRequestTo(br, limit, nil)
}

// readDirectRequest reads the head of a request of a client that believes that it
// speaks to the host itself.
func readDirectRequest(br *bufio.Reader, limit int, to target) (*request, *refusal) {
	return readRequestTo(br, limit, &to)
}

// readRequestTo is readRequest, or readDirectRequest if it is known whom the client
// speaks to.
func readRequestTo(br *bufio.Reader, limit int, to *target) (*request, *refusal) {
	lines, err := readHead(br, limit)
	switch {
	case errors.Is(err, errLongHead):
		return nil, refuse(TooLarge)
	case errors.Is(err, errNoCRLF):
		return nil, refuseFor(BadRequest, err)
	case err != nil:
		return nil, unread(err)
	}
	r, refused := parseRequestLine(lines[0], to)
	if refused != nil {
		return nil, refused
	}
	if err := r.parseFields(lines[1:], to != nil); err != nil {
		return nil, refuseFor(BadRequest, err)
	}
	return r, nil
}

// unread says why nothing more could be read from the client.
func unread(err error) *refusal {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(TooSlow)
	}
	return refuse(ClientGone)
}

// readHead reads lines up to the empty one.
func readHead(br *bufio.Reader, limit int) ([]string, error) {
	var lines []string
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		if limit -= len(part); limit < 0 || len(lines) > maxHeaders+1 {
			return nil, errLongHead
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		text, ok := bytes.CutSuffix(line, []byte("\r\n"))
		if !ok { // a carriage return elsewhere is a control character
			return nil, errNoCRLF
		}
		if len(text) == 0 {
			if len(lines) == 0 {
				return nil, errNoCRLF // an empty line is no request line
			}
			return lines, nil
		}
		lines = append(lines, string(text))
		line = line[:0]
	}
}

func parseRequestLine(line string, to *target) (*request, *refusal) {
	method, rest, _ := strings.Cut(line, " ")
	address, version, _ := strings.Cut(rest, " ")
	minor := 1
	switch {
	case !httpguts.ValidHeaderFieldName(method): // a token, too
		return nil, refuse(BadProtocol)
	case version == "HTTP/1.0":
		minor = 0
	case version != "HTTP/1.1":
		return nil, refuse(BadProtocol)
	}
	for i := range len(address) {
		if address[i] <= ' ' || address[i] >= 0x7f {
			return nil, refuseFor(BadRequest, errors.New("the address has a byte that must be percent-encoded"))
		}
	}
	r := &request{method: method, minor: minor}
	if to != nil {
		if method == http.MethodConnect || !strings.HasPrefix(address, "/") || strings.Contains(address, "#") {
			return nil, refuseFor(BadRequest, errors.New("the address is no path of this host"))
		}
		r.target, r.path = *to, address
		return r, nil
	}
	if method == http.MethodConnect {
		host, port, err := inet.ParseAuthority(address, 0)
		if err != nil {
			return nil, refuseFor(BadHost, err)
		}
		r.target = target{host: host, port: port, scheme: Tunnel}
		return r, nil
	}
	const scheme = "http://"
	if len(address) < len(scheme) || !strings.EqualFold(address[:len(scheme)], scheme) {
		return nil, refuse(BadScheme)
	}
	address = address[len(scheme):]
	if strings.Contains(address, "#") {
		return nil, refuseFor(BadRequest, errors.New("an address in a request has no fragment"))
	}
	authority := address
	if end := strings.IndexAny(address, "/?"); end >= 0 {
		authority, r.path = address[:end], address[end:]
	}
	if r.path == "" || r.path[0] == '?' {
		r.path = "/" + r.path
	}
	host, port, err := inet.ParseAuthority(authority, PlainHTTP.defaultPort())
	if err != nil {
		return nil, refuseFor(BadHost, err)
	}
	r.target = target{host: host, port: port, scheme: PlainHTTP}
	return r, nil
}

// parseFields reads the header. Fields that are about this hop do not stay. A client
// that speaks to the host itself says who that is in the field Host.
func (r *request) parseFields(lines []string, direct bool) error {
	if len(lines) > maxHeaders {
		return errors.New("there are too many header fields")
	}
	hosts, lengths, hop := 0, 0, []string(nil)
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || !httpguts.ValidHeaderFieldName(name) { // so no continued lines, and no blank before the colon
			return errors.New("a header field has no proper name")
		}
		value = strings.Trim(value, " \t")
		if !httpguts.ValidHeaderFieldValue(value) {
			return errors.New("a header field contains a control character")
		}
		switch name = strings.ToLower(name); name {
		case "host":
			hosts++
			if err := r.checkHost(value, direct); err != nil {
				return err
			}
		case "content-length":
			n, err := strconv.ParseUint(value, 10, 63)
			if lengths++; err != nil || value[0] == '+' {
				return errors.New("the field Content-Length is no number")
			}
			r.length = int64(n)
		case "transfer-encoding":
			if r.chunked || !strings.EqualFold(value, "chunked") || r.minor == 0 {
				return errors.New("the field Transfer-Encoding is something else than chunked, once, in HTTP/1.1")
			}
			r.chunked = true
		case "expect":
			if !strings.EqualFold(value, "100-continue") {
				return errors.New("the field Expect is something else than 100-continue")
			}
			r.expects = r.minor > 0
		case "connection":
			for option := range strings.SplitSeq(value, ",") {
				hop = append(hop, strings.ToLower(strings.Trim(option, " \t")))
			}
		case "proxy-authorization":
			r.credentials = append(r.credentials, value)
		default:
			r.fields = append(r.fields, field{name, value})
		}
	}
	switch {
	case hosts > 1 || lengths > 1:
		return errors.New("one of the fields Host and Content-Length stands twice")
	case lengths > 0 && r.chunked:
		return errors.New("the fields Content-Length and Transfer-Encoding exclude each other")
	case hosts == 0 && (direct || r.minor > 0 && r.target.scheme == PlainHTTP):
		return errors.New("the field Host is missing")
	case !direct && r.target.scheme == Tunnel && (r.hasBody() || r.expects):
		return errors.New("CONNECT has no body")
	}
	r.fields = slices.DeleteFunc(r.fields, func(f field) bool { return hopByHop(f.name) || slices.Contains(hop, f.name) })
	return nil
}

// checkHost compares the field Host of a CONNECT, or of a client that speaks to the
// host itself, with the target. For other requests the field is replaced by the address's host, as RFC 9112 section
// 3.2.2 demands of proxies.
func (r *request) checkHost(value string, direct bool) error {
	if r.target.scheme != Tunnel && !direct {
		return nil
	}
	usual := r.target.port
	if direct {
		usual = r.target.scheme.defaultPort()
	}
	host, port, err := inet.ParseAuthority(value, usual)
	if err != nil || host != r.target.host || port != r.target.port {
		return errors.New("the field Host names another host than the connection")
	}
	return nil
}

// hopByHop reports whether a field, in lower case, is for the next hop only, or
// for proxies.
func hopByHop(name string) bool {
	switch name {
	case "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "http2-settings":
		return true
	}
	return strings.HasPrefix(name, "proxy-")
}

// head returns the head that is sent on. It holds one host, the granted one,
// and says how the body ends in one way.
func (r *request) head() []byte {
	var b bytes.Buffer
	b.WriteString(r.method + " " + r.path + " HTTP/1.1\r\nHost: " + r.target.host.Bracketed())
	if r.target.port != r.target.scheme.defaultPort() {
		b.WriteString(":" + strconv.Itoa(int(r.target.port)))
	}
	b.WriteString("\r\n")
	for _, f := range r.fields {
		b.WriteString(http.CanonicalHeaderKey(f.name) + ": " + f.value + "\r\n")
	}
	switch {
	case r.chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case r.length > 0 || r.method == http.MethodPost || r.method == http.MethodPut || r.method == http.MethodPatch:
		b.WriteString("Content-Length: " + strconv.FormatInt(r.length, 10) + "\r\n")
	}
	b.WriteString("Connection: close\r\n\r\n")
	return b.Bytes()
}
