package push

import (
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"vogt/internal/inet"
)

// decode reads base64 as browsers write it: of either alphabet, with padding or
// without.
func decode(s string) ([]byte, error) {
	s = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(s, "="))
	if strings.ContainsAny(s, "\r\n") { // which DecodeString passes over
		return nil, errors.New("a line break")
	}
	return base64.RawURLEncoding.DecodeString(s)
}

func checkPoint(p256dh string) error {
	b, err := decode(p256dh)
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(b)
	}
	if err != nil {
		return errors.New("p256dh is not a point of P-256 in base64url")
	}
	return nil
}

// KeyPair returns both halves of a P-256 key, from its scalar of 32 bytes, in
// the form that Config and browsers take.
func KeyPair(scalar []byte) (public, private string, err error) {
	key, err := ecdh.P256().NewPrivateKey(scalar)
	if err != nil {
		return "", "", fmt.Errorf("push: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()), base64.RawURLEncoding.EncodeToString(scalar), nil
}

// controlPublic is called with the address that a connection is about to go to,
// after names were resolved: nothing can change between this look and the call.
func controlPublic(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") || inet.Classify(at.Addr().Unmap()) != inet.Public {
		return fmt.Errorf("push: %s is not a public address", address)
	}
	return nil
}
