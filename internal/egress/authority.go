package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"sync"
	"time"
)

// How long the certificates hold that clients are shown. The key of the authority
// is in memory only and ends with the session, so the time bounds what nobody can
// use any more.
const (
	authorityTime = 7 * 24 * time.Hour
	leafTime      = 24 * time.Hour
	clockSlack    = 5 * time.Minute
)

// authority makes the certificates that clients of one session are shown in the
// place of those of inspected hosts. Its own says for which names it stands, so that
// who trusts it is lied to about no other.
type authority struct {
	hosts       []string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         func() time.Time

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

func newAuthority(hosts []string, now func() time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	at := now()
	everything := func(bits int) *net.IPNet { return &net.IPNet{IP: make(net.IP, bits/8), Mask: net.CIDRMask(0, bits)} }
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Vogt, one session"},
		NotBefore: at.Add(-clockSlack), NotAfter: at.Add(authorityTime),
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: hosts,
		ExcludedIPRanges: []*net.IPNet{everything(32), everything(128)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the session's certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{hosts: hosts, certificate: certificate, key: key, now: now, leaves: make(map[string]*tls.Certificate)}, nil
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

// leaf returns a certificate for a host.
func (a *authority) leaf(host string) (*tls.Certificate, error) {
	if !slices.Contains(a.hosts, host) {
		return nil, errors.New("the session's certificate does not stand for this host")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.now()
	if c := a.leaves[host]; c != nil && at.Before(c.Leaf.NotAfter.Add(-leafTime/2)) {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		// Not the name of the issuer, which would make it signed by itself for some.
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Vogt, inspected host"}, DNSNames: []string{host},
		NotBefore: at.Add(-clockSlack), NotAfter: at.Add(leafTime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	a.leaves[host] = c
	return c, nil
}

// Authority returns the certificate that clients of this session have to trust for
// inspected hosts, in PEM, or nothing if no host is inspected.
func (p *Proxy) Authority() []byte {
	if p.authority == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.authority.certificate.Raw})
}

// inspected are the hosts of the rules that inspect.
func inspected(rules []rule) []string {
	var hosts []string
	for _, r := range rules {
		if r.Inspect != nil {
			hosts = append(hosts, r.host.Name())
		}
	}
	return hosts
}

// TrustVariables are the variables that have programs trust the authorities in a file
// besides, or in the place of, those that they know: OpenSSL, Go and Python; node;
// requests; curl; git.
func TrustVariables(file string) []string {
	var out []string
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"} {
		out = append(out, name+"="+file)
	}
	return out
}
