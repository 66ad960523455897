package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// onlyReader is a connection that ends after some bytes.
type onlyReader struct {
	net.Conn
	r io.Reader
	w bytes.Buffer
}

func (c *onlyReader) Read(b []byte) (int, error)  { return c.r.Read(b) }
func (c *onlyReader) Write(b []byte) (int, error) { return c.w.Write(b) }
func (c *onlyReader) Close() error                { return nil }
func (*onlyReader) SetDeadline(time.Time) error   { return nil }

// realHello returns what crypto/tls sends first.
func realHello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	config.InsecureSkipVerify = true // there is no server
	conn := &onlyReader{r: strings.NewReader("")}
	_ = tls.Client(conn, config).HandshakeContext(context.Background())
	if conn.w.Len() == 0 {
		t.Fatal("no ClientHello was sent")
	}
	// An alert may follow, since the server never answers.
	length := int(binary.BigEndian.Uint16(conn.w.Bytes()[3:]))
	return conn.w.Bytes()[:5+length]
}

// rerecord spreads a record's content over records of n bytes.
func rerecord(hello []byte, n int) []byte {
	var out []byte
	for part := range slices.Chunk(hello[5:], n) {
		out = append(out, hello[0], hello[1], hello[2], byte(len(part)>>8), byte(len(part)))
		out = append(out, part...)
	}
	return out
}

// makeHello builds a ClientHello with the given extensions.
func makeHello(extensions ...[]byte) []byte {
	exts := slices.Concat(extensions...)
	body := slices.Concat([]byte{3, 3}, make([]byte, 32), []byte{0, 0, 2, 0x13, 0x01, 1, 0})
	if exts != nil {
		body = slices.Concat(body, length16(exts), exts)
	}
	message := slices.Concat([]byte{typeClientHello, 0}, length16(body), body)
	return slices.Concat([]byte{recordHandshake, 3, 1}, length16(message), message)
}

func length16(b []byte) []byte { return binary.BigEndian.AppendUint16(nil, uint16(len(b))) }

func extension(kind uint16, data []byte) []byte {
	return slices.Concat(binary.BigEndian.AppendUint16(nil, kind), length16(data), data)
}

// sni builds the extension; each name is one entry of the list.
func sni(names ...string) []byte {
	var list []byte
	for _, name := range names {
		list = slices.Concat(list, []byte{0}, length16([]byte(name)), []byte(name))
	}
	return extension(extServerName, slices.Concat(length16(list), list))
}

func TestReadHello(t *testing.T) {
	modern := realHello(t, &tls.Config{ServerName: "example.com"})
	for _, tt := range []struct {
		name string
		raw  []byte
		sni  string
		ech  bool
		err  error
	}{
		{"of crypto/tls", modern, "example.com", false, nil},
		{"of TLS 1.2", realHello(t, &tls.Config{ServerName: "example.com", MaxVersion: tls.VersionTLS12}), "example.com", false, nil},
		{"without a name", realHello(t, &tls.Config{}), "", false, nil},
		{"for an address", realHello(t, &tls.Config{ServerName: "192.0.2.1"}), "", false, nil},
		{"in small records", rerecord(modern, 40), "example.com", false, nil},
		{"in too many records", rerecord(modern, 4), "", false, errLongTLS},
		{"made here", makeHello(sni("a.test")), "a.test", false, nil},
		{"without extensions", makeHello(), "", false, nil},
		{"with a part that is encrypted", makeHello(sni("outer.test"), extension(extEncryptedName, []byte{0})), "outer.test", true, nil},
		{"a name in capitals", makeHello(sni("A.Test")), "A.Test", false, nil},
		{"two names in one extension", makeHello(sni("a.test", "b.test")), "", false, errBrokenTLS},
		{"two extensions with names", makeHello(sni("a.test"), sni("b.test")), "", false, errBrokenTLS},
		{"the same extension twice", makeHello(extension(7, nil), extension(7, nil)), "", false, errBrokenTLS},
		{"an empty name", makeHello(sni("")), "", false, errBrokenTLS},
		{"no name in the list", makeHello(sni()), "", false, errBrokenTLS},
		{"an empty extension", makeHello(extension(extServerName, nil)), "", false, errBrokenTLS},
		{"something behind the list", makeHello(extension(extServerName, append(sni("a.test")[4:], 0))), "", false, errBrokenTLS},
		{"a name of another kind", makeHello(extension(extServerName, []byte{0, 4, 1, 0, 1, 'a'})), "", false, errBrokenTLS},
		{"more extensions than anybody has", makeHello(manyExtensions(200)), "", false, errBrokenTLS},
		{"something behind the message", slices.Concat([]byte{22, 3, 1}, length16(append(makeHello()[5:], 0)), makeHello()[5:], []byte{0}), "", false, errBrokenTLS},
		{"an empty record", slices.Concat([]byte{22, 3, 1, 0, 0}, modern), "", false, errBrokenTLS},
		{"a record that is too long", []byte{22, 3, 1, 0x40, 1}, "", false, errBrokenTLS},
		{"a message that is too long", []byte{22, 3, 1, 0, 4, 1, 0, 0x40, 0}, "", false, errLongTLS},
		{"another message", slices.Concat([]byte{22, 3, 1, 0, 4, 2, 0, 0, 0}), "", false, errNotTLS},
		{"an alert", []byte{21, 3, 1, 0, 2, 1, 0}, "", false, errNotTLS},
		{"data", []byte{23, 3, 3, 0, 1, 0}, "", false, errNotTLS},
		{"SSL 2", []byte{0x80, 0x2e, 1, 3, 1}, "", false, errNotTLS},
		{"SSL 3's number and beyond", []byte{22, 2, 0, 0, 4}, "", false, errNotTLS},
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), "", false, errNotTLS},
		{"SSH", []byte("SSH-2.0-x\r\n"), "", false, errNotTLS},
		{"nothing", nil, "", false, io.EOF},
		{"half of it", modern[:len(modern)/2], "", false, io.ErrUnexpectedEOF},
	} {
		const after = "what follows"
		r := io.MultiReader(iotest.OneByteReader(bytes.NewReader(tt.raw)), strings.NewReader(after))
		if errors.Is(tt.err, io.EOF) || errors.Is(tt.err, io.ErrUnexpectedEOF) {
			r = bytes.NewReader(tt.raw)
		}
		h, raw, err := readHello(r)
		if !errors.Is(err, tt.err) || h.name != tt.sni || h.ech != tt.ech {
			t.Errorf("%s: %+v, %v; want %q, %v", tt.name, h, err, tt.sni, tt.err)
		}
		if err != nil {
			continue
		}
		rest, _ := io.ReadAll(r)
		if !bytes.Equal(raw, tt.raw) || string(rest) != after {
			t.Errorf("%s: %d of %d bytes are passed on, and %q stays unread", tt.name, len(raw), len(tt.raw), rest)
		}
	}
}

func manyExtensions(n int) []byte {
	var all []byte
	for i := range n {
		all = append(all, extension(uint16(1000+i), nil)...)
	}
	return all
}

// tlsReads returns what name crypto/tls takes from the bytes.
func tlsReads(raw []byte) (name string, ok bool) {
	conn := &onlyReader{r: bytes.NewReader(raw)}
	config := &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name, ok = h.ServerName, true
		return nil, io.EOF
	}}
	_ = tls.Server(conn, config).HandshakeContext(context.Background())
	return name, ok
}

// If both understand a ClientHello, both read the same name in it.
func FuzzClientHello(f *testing.F) {
	modern := realHello(f, &tls.Config{ServerName: "example.com"})
	f.Add(modern)
	f.Add(rerecord(modern, 100))
	f.Add(realHello(f, &tls.Config{MaxVersion: tls.VersionTLS12}))
	f.Add(makeHello(sni("a.test"), extension(extEncryptedName, []byte{0})))
	f.Add(makeHello(sni("a.test", "b.test")))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, read, err := readHello(bytes.NewReader(raw))
		if !bytes.HasPrefix(raw, read) && err == nil {
			t.Error("what is passed on is not what came")
		}
		if err != nil {
			return
		}
		if name, ok := tlsReads(read); ok && name != strings.TrimSuffix(h.name, ".") && name != h.name {
			t.Errorf("the name is %q here and %q for crypto/tls", h.name, name)
		}
	})
}
