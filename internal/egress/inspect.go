package egress

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Inspect opens the TLS of a host: the proxy shows the client a certificate of the
// session's own authority, reads each request, and makes another connection to the
// host, whose certificate is verified. The host is then reached in no other way.
type Inspect struct {
	// Requests are what may be asked; none is everything.
	Requests []Permitted
	// Set are fields that each request gets, in the place of the client's own.
	Set []Field
}

// Permitted are requests of some methods below a path.
type Permitted struct {
	Methods []string
	// Path is a prefix that ends where a part of the path ends: "/a" permits /a and
	// /a/b, and not /ab.
	Path string
}

// Field is a header field with a secret in it.
type Field struct {
	Name  string
	Value Secret
}

// Secret is text that nothing prints. The zero value is empty.
type Secret struct{ text string }

// NewSecret returns the text as a secret.
func NewSecret(text string) Secret { return Secret{text} }

// String hides the text.
func (s Secret) String() string { return "[secret]" }

// Format hides the text from every verb of package fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText hides the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// check finds what is wrong with a rule's Inspect.
func (i *Inspect) check() error {
	for _, p := range i.Requests {
		if len(p.Methods) == 0 || slices.ContainsFunc(p.Methods, func(m string) bool {
			return !httpguts.ValidHeaderFieldName(m) || m != strings.ToUpper(m) || m == http.MethodConnect || repeats(m)
		}) {
			return errors.New("the methods of permitted requests are words in capitals, as GET")
		}
		if !strings.HasPrefix(p.Path, "/") || !plainPath(p.Path) || strings.ContainsAny(p.Path, "?#") {
			return fmt.Errorf("the path %q of permitted requests has no usual form", p.Path)
		}
	}
	for _, f := range i.Set {
		name := strings.ToLower(f.Name)
		if !httpguts.ValidHeaderFieldName(f.Name) || hopByHop(name) || slices.Contains([]string{"host", "content-length", "expect"}, name) {
			return fmt.Errorf("the header field %q cannot be set", f.Name)
		}
		if f.Value.text == "" || !httpguts.ValidHeaderFieldValue(f.Value.text) || strings.TrimSpace(f.Value.text) != f.Value.text {
			return fmt.Errorf("the secret for the header field %s is empty, or has characters that no field may have", f.Name)
		}
	}
	return nil
}

// permits says why a request may not be made, or nothing if it may.
func (i *Inspect) permits(r *request) *refusal {
	if repeats(r.method) {
		return refuse(RequestNotPermitted)
	}
	if len(i.Requests) == 0 {
		return nil
	}
	for _, f := range r.fields {
		switch f.name {
		case "x-http-method-override", "x-http-method", "x-method-override":
			return refuseFor(RequestNotPermitted, errors.New("a header field names another method"))
		}
	}
	path, _, _ := strings.Cut(r.path, "?")
	for _, p := range i.Requests {
		if slices.Contains(p.Methods, r.method) && (p.Path == "/" || plainPath(path) && beneath(path, p.Path)) {
			return nil
		}
	}
	return refuse(RequestNotPermitted)
}

// repeats reports whether a method asks the server to send the request back, with all
// that is in it.
func repeats(method string) bool { return method == http.MethodTrace || method == "TRACK" }

// beneath reports whether a path is the prefix or lies below it.
func beneath(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(prefix, "/"))
}

// plainPath reports whether all servers read a path alike: nothing in it is escaped
// that could be a dot, a slash or a letter of the prefix, and no part leads up or
// has parameters.
func plainPath(path string) bool {
	if strings.ContainsAny(path, "\\;") {
		return false
	}
	for rest := path; ; {
		_, after, escaped := strings.Cut(rest, "%")
		if !escaped {
			break
		}
		if len(after) < 2 {
			return false
		}
		b, err := strconv.ParseUint(after[:2], 16, 8)
		if err != nil || b < 0x80 && !strings.ContainsRune(harmless, rune(b)) {
			return false
		}
		rest = after[2:]
	}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for n, part := range parts {
		if part == "." || part == ".." || part == "" && n < len(parts)-1 {
			return false
		}
	}
	return true
}

// harmless are the characters that may be escaped in a path: they part nothing, and
// are escaped as a rule.
const harmless = ` "!$&'()*+,:<=>@[]^{|}` + "`"

// set puts the fields in the place of the client's.
func (i *Inspect) set(r *request) {
	for _, f := range i.Set {
		name := strings.ToLower(f.Name)
		r.fields = slices.DeleteFunc(r.fields, func(have field) bool { return have.name == name })
		r.fields = append(r.fields, field{name, f.Value.text})
	}
}
