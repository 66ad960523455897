package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

// opened is the client's end of a connection whose first bytes were read already.
type opened struct {
	net.Conn
	r io.Reader
}

func (o *opened) Read(b []byte) (int, error) { return o.r.Read(b) }

// intercept takes the host's place for the client, reads one request, and makes it
// to the host over a connection of its own. As with plain HTTP each connection
// serves one request, so that none can hide behind another. HTTP/2 is not offered:
// its requests would have to be read in another form.
func (x *exchange) intercept(ctx context.Context, g grant) *refusal {
	head, refused := x.open(ctx, g)
	if refused != nil {
		return cutOr(ctx, refused)
	}
	if refused := g.inspect.permits(head); refused != nil {
		return refused
	}
	if !g.budget.has(head.length) {
		return refuse(UploadBudget)
	}
	if refused := x.begin(g); refused != nil {
		return refused
	}
	g.inspect.set(head)
	conn, refused := x.connect(ctx, g)
	if refused != nil {
		return refused
	}
	defer conn.Close()
	upstream := tls.Client(conn, &tls.Config{
		ServerName: x.target.host.Name(), RootCAs: x.p.config.Roots, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
	})
	shaking, cancel := context.WithTimeoutCause(ctx, x.p.limits.ConnectTime, refuse(CannotConnect))
	defer cancel()
	if err := upstream.HandshakeContext(shaking); err != nil {
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			return refuse(BadCertificate)
		}
		return cutOr(shaking, refuse(CannotConnect))
	}
	return x.forward(ctx, upstream, g, head)
}

// open makes the client's connection one of TLS that ends here, and reads the head
// of the request. What is told to the client from then on is told inside.
func (x *exchange) open(ctx context.Context, g grant) (*request, *refusal) {
	p := x.p
	certificate, err := p.authority.leaf(x.target.host.Name())
	if err != nil {
		return nil, refuseFor(NotInspected, err)
	}
	if refused := x.accept(); refused != nil {
		return nil, refused
	}
	outer := x.conn
	stop := whenDone(ctx, func() { _ = outer.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = outer.SetDeadline(time.Now().Add(p.limits.HeaderTime))
	first, refused := x.firstBytes(g.carry.on(x.target.port))
	if refused != nil {
		return nil, refused
	}
	inner := tls.Server(&opened{outer, io.MultiReader(bytes.NewReader(first), x.br)}, &tls.Config{
		Certificates: []tls.Certificate{*certificate}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true,
	})
	if err := inner.HandshakeContext(ctx); err != nil {
		return nil, unopened(err)
	}
	x.conn, x.br, x.inside, x.answered = inner, bufio.NewReader(inner), true, false
	head, refused := readDirectRequest(x.br, p.limits.HeaderBytes, x.target)
	if refused != nil {
		return nil, refused
	}
	path, _, _ := strings.Cut(head.path, "?")
	x.record.Request = head.method + " " + path[:min(len(path), maxRecordedPath)]
	_ = outer.SetDeadline(time.Time{})
	return head, x.alone(head)
}

// maxRecordedPath is how much of a path is recorded, in bytes.
const maxRecordedPath = 512

// unopened says why the handshake with the client failed.
func unopened(err error) *refusal {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return refuse(TooSlow)
	}
	if errors.Is(err, io.EOF) {
		return refuse(ClientGone)
	}
	return refuse(NotTrusted)
}
