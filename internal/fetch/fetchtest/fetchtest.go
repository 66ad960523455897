// Package fetchtest is an internet for tests of what fetches: names that lead to one
// server in the test's process, with a certificate for all of them.
//
// It owns names, addresses and the certificate; what the server answers is the test's.
package fetchtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vogt/internal/fetch"
)

// Public is an address that may be fetched from.
const Public = "93.184.216.34"

// Network is the internet of one test.
type Network struct {
	secure, plain *httptest.Server
	roots         *x509.CertPool

	mu     sync.Mutex
	names  map[string][]netip.Addr
	dialed []netip.AddrPort
	asked  []string
}

// New starts a server for names, which lead to Public until Point says otherwise.
// Connections to port 443, 5053 and 8443 are answered with TLS, all others without.
func New(t testing.TB, handler http.Handler, names ...string) *Network {
	t.Helper()
	n := &Network{names: make(map[string][]netip.Addr), roots: x509.NewCertPool()}
	n.secure, n.plain = httptest.NewUnstartedServer(n.noting(handler)), httptest.NewServer(n.noting(handler))
	n.secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	n.secure.TLS = &tls.Config{Certificates: []tls.Certificate{n.certificate(t, names)}}
	n.secure.StartTLS()
	t.Cleanup(n.secure.Close)
	t.Cleanup(n.plain.Close)
	for _, name := range names {
		n.Point(name, Public)
	}
	return n
}

// noting keeps the addresses that are asked for.
func (n *Network) noting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		n.asked = append(n.asked, r.Host+r.URL.RequestURI())
		n.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func (n *Network) certificate(t testing.TB, names []string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	n.roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Point lets a name lead to addresses, separated by spaces; to none, it does not
// exist.
func (n *Network) Point(name, addrs string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = nil
	for text := range strings.FieldsSeq(addrs) {
		n.names[name] = append(n.names[name], netip.MustParseAddr(text))
	}
}

// Config reaches this network and nothing else.
func (n *Network) Config() fetch.Config {
	return fetch.Config{
		Roots: n.roots, Limits: fetch.Limits{Time: 5 * time.Second},
		Own: func() ([]netip.Addr, error) { return nil, nil },
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if addrs := n.names[name]; len(addrs) > 0 {
				return slices.Clone(addrs), nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		},
		Dial: func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			n.mu.Lock()
			n.dialed = append(n.dialed, addr)
			n.mu.Unlock()
			to := n.plain
			if slices.Contains([]uint16{443, 5053, 8443}, addr.Port()) {
				to = n.secure
			}
			var d net.Dialer
			return d.DialContext(ctx, "tcp", to.Listener.Addr().String())
		},
	}
}

// Asked are hosts and addresses of the requests that arrived, in their order.
func (n *Network) Asked() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked)
}

// Dialed are the addresses that were connected to, in their order.
func (n *Network) Dialed() []netip.AddrPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dialed)
}
