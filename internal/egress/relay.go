package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"vogt/internal/inet"
)

// link is the connection to a host. It counts what goes through it, takes what is
// sent from the budget, and tells a timer that something moved.
type link struct {
	net.Conn
	x      *exchange
	budget *budget
	idle   *time.Timer
}

// Write sends all of b or, if the budget is too small for it, nothing.
func (l *link) Write(b []byte) (int, error) {
	if !l.budget.take(int64(len(b))) {
		return 0, refuse(UploadBudget)
	}
	n, err := l.Conn.Write(b)
	l.x.sent.Add(int64(n))
	l.idle.Reset(l.x.p.limits.IdleTime)
	return n, err
}

func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	l.x.received.Add(int64(n))
	l.idle.Reset(l.x.p.limits.IdleTime)
	return n, err
}

// tunnel tells the client that the connection stands and passes bytes on, once
// the first of them are what the grant wants.
func (x *exchange) tunnel(ctx context.Context, upstream net.Conn, g grant) *refusal {
	if refused := x.accept(); refused != nil {
		return refused
	}
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	stop := whenDone(ctx, func() { x.conn.Close(); upstream.Close() })
	defer stop()
	l := &link{Conn: upstream, x: x, budget: g.budget}
	l.idle = time.AfterFunc(x.p.limits.IdleTime, func() { cut(refuse(Idle)) })
	defer l.idle.Stop()

	var up sync.WaitGroup
	up.Go(func() {
		if err := x.upload(l, g.carry.on(x.target.port)); err != nil {
			cut(err)
		}
	})
	if err := x.copy(x.conn, l); err != nil {
		cut(err)
	}
	up.Wait()
	if ctx.Err() == nil {
		return nil
	}
	if cause, ok := errors.AsType[*refusal](context.Cause(ctx)); ok {
		return cause
	}
	if x.sent.Load() == 0 { // nothing has gone through it
		return refuse(ClientGone)
	}
	return nil // one side broke the connection off, as it may
}

// accept tells the client that its tunnel stands.
func (x *exchange) accept() *refusal {
	x.answered = true
	var err error
	switch {
	case x.direct:
		// It believes that it is connected.
	case x.record.Protocol == SOCKS5:
		err = writeSOCKS(x.conn, socksDone)
	default:
		_, err = io.WriteString(x.conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	}
	if err != nil {
		return refuse(ClientGone)
	}
	return nil
}

// upload checks what the client sends first, and passes on that and all else.
func (x *exchange) upload(l *link, carry Carry) error {
	_ = x.conn.SetReadDeadline(time.Now().Add(x.p.limits.HeaderTime))
	first, refused := x.firstBytes(carry)
	if refused != nil {
		return refused
	}
	_ = x.conn.SetReadDeadline(time.Time{})
	if len(first) > 0 {
		if _, err := l.Write(first); err != nil {
			return err
		}
	}
	return x.copy(l, x.br)
}

// firstBytes reads as much as shows that the tunnel carries what it should.
func (x *exchange) firstBytes(carry Carry) ([]byte, *refusal) {
	switch carry {
	case CarryAnything:
		return nil, nil
	case CarrySSH:
		const introduction = "SSH-2.0-"
		first := make([]byte, len(introduction))
		for i := range first { // one by one, since fewer may show that it is something else
			if _, err := io.ReadFull(x.br, first[i:i+1]); err != nil {
				return nil, unread(err)
			}
			if first[i] != introduction[i] {
				return nil, refuse(NoSSH)
			}
		}
		return first, nil
	case CarryDefault, CarryTLS:
		return x.firstTLS()
	}
	return nil, refuse(NoTLS)
}

// firstTLS reads a ClientHello and compares the name in it with the granted
// host. An address has no name there, but nor may it have another's.
func (x *exchange) firstTLS() ([]byte, *refusal) {
	h, raw, err := readHello(x.br)
	switch {
	case errors.Is(err, errNotTLS):
		return nil, refuse(NoTLS)
	case errors.Is(err, errBrokenTLS), errors.Is(err, errLongTLS):
		return nil, refuseFor(BrokenTLS, err)
	case err != nil:
		return nil, unread(err)
	}
	x.record.ECH = h.ech
	if h.name != "" {
		if named, err := inet.ParseHost(h.name); err == nil {
			x.record.SNI = named.String()
		}
	}
	isAddress := x.target.host.Addr().IsValid()
	switch {
	case h.name == "" && !isAddress:
		return nil, refuse(NoServerName)
	case h.name != "" && !strings.EqualFold(h.name, x.target.host.String()):
		return nil, refuse(OtherServerName)
	}
	return raw, nil
}

// copy passes bytes on until the source ends, and then ends the destination. It
// hides what else the two can do, since their own ways of copying take other
// buffers.
func (x *exchange) copy(dst io.Writer, src io.Reader) error {
	buffer := x.p.buffers.Get().(*[]byte)
	defer x.p.buffers.Put(buffer)
	_, err := io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, *buffer)
	if err != nil {
		return err
	}
	if l, ok := dst.(*link); ok {
		dst = l.Conn
	}
	if half, ok := dst.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return io.EOF // there are no halves, so this is the end of both
}

// forward writes a plain request anew to the host, and its response to the
// client.
func (x *exchange) forward(ctx context.Context, upstream net.Conn, g grant, head *request) *refusal {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	stop := whenDone(ctx, func() {
		upstream.Close()
		_ = x.conn.SetDeadline(time.Unix(1, 0)) // wakes who waits for the client; it may still be answered
	})
	defer stop()
	l := &link{Conn: upstream, x: x, budget: g.budget}
	l.idle = time.AfterFunc(x.p.limits.IdleTime, func() { cut(refuse(Idle)) })
	defer l.idle.Stop()

	var up sync.WaitGroup
	up.Go(func() {
		// A host that does not want the whole body says so in its response, so
		// only what the proxy itself refuses ends the exchange.
		if refused, ok := errors.AsType[*refusal](x.sendRequest(l, head)); ok {
			cut(refused)
		}
	})
	refused := x.passResponse(ctx, l, head)
	_ = x.conn.SetReadDeadline(time.Unix(1, 0)) // the rest of the body is not wanted
	upstream.Close()
	up.Wait()
	if refused != nil {
		return cutOr(ctx, refused)
	}
	return nil
}

// sendRequest writes head and body to the host.
func (x *exchange) sendRequest(l *link, head *request) error {
	if _, err := l.Write(head.head()); err != nil {
		return err
	}
	if !head.hasBody() {
		return nil
	}
	if head.expects {
		if _, err := io.WriteString(x.conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return err
		}
	}
	if !head.chunked {
		n, err := x.copyBody(l, io.LimitReader(x.br, head.length))
		if err == nil && n < head.length {
			return refuse(ClientGone)
		}
		return err
	}
	// Extensions of chunks and trailers end here.
	w := bufio.NewWriterSize(l, 32<<10)
	if _, err := x.copyBody(chunks{w}, httputil.NewChunkedReader(x.br)); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return refuse(ClientGone)
		}
		return err
	}
	return chunks{w}.end()
}

func (x *exchange) copyBody(dst io.Writer, src io.Reader) (int64, error) {
	buffer := x.p.buffers.Get().(*[]byte)
	defer x.p.buffers.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, *buffer)
}

// chunks writes each piece as a chunk and sends it at once, so that streams
// stay streams.
type chunks struct{ w *bufio.Writer }

func (c chunks) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	fmt.Fprintf(c.w, "%x\r\n", len(b))
	n, _ := c.w.Write(b)
	_, _ = c.w.WriteString("\r\n")
	return n, c.w.Flush() // returns the first error of all these
}

func (c chunks) end() error {
	_, _ = c.w.WriteString("0\r\n\r\n")
	return c.w.Flush()
}

const (
	maxResponseHead  = 256 << 10
	maxInformational = 8 // responses before the final one
)

// passResponse reads the response and writes it to the client. A refusal before
// the client was answered is answered by the caller.
func (x *exchange) passResponse(ctx context.Context, l *link, head *request) *refusal {
	limited := &io.LimitedReader{R: l, N: maxResponseHead}
	br := bufio.NewReader(limited)
	var response *http.Response
	for range maxInformational {
		var err error
		response, err = http.ReadResponse(br, &http.Request{Method: head.method})
		if err != nil {
			return refuse(BadResponse)
		}
		if response.StatusCode >= 200 || response.StatusCode == http.StatusSwitchingProtocols {
			break
		}
	}
	if response.StatusCode < 200 || response.StatusCode > 999 {
		return refuse(BadResponse) // nobody asked for another protocol
	}
	limited.N = math.MaxInt64
	defer response.Body.Close()
	if ctx.Err() != nil {
		return refuse(BadResponse) // to a request that was cut: the caller knows why
	}
	x.answered = true
	return x.writeResponse(response, head)
}

func (x *exchange) writeResponse(response *http.Response, head *request) *refusal {
	w := bufio.NewWriterSize(x.conn, 32<<10)
	fmt.Fprintf(w, "HTTP/1.1 %03d %s\r\n", response.StatusCode, http.StatusText(response.StatusCode))
	bodiless := head.method == http.MethodHead || response.StatusCode == http.StatusNoContent || response.StatusCode == http.StatusNotModified
	length := response.ContentLength
	chunked := length < 0 && !bodiless && head.minor > 0
	cleanResponse(response.Header)
	_ = response.Header.Write(w)
	switch {
	case length >= 0 && response.StatusCode != http.StatusNoContent:
		_, _ = w.WriteString("Content-Length: " + strconv.FormatInt(length, 10) + "\r\n")
	case chunked:
		_, _ = w.WriteString("Transfer-Encoding: chunked\r\n")
	}
	_, _ = w.WriteString("Connection: close\r\n\r\n")
	if err := w.Flush(); err != nil {
		return refuse(ClientGone)
	}
	if bodiless {
		return nil
	}
	dst := io.Writer(x.conn)
	if chunked {
		dst = chunks{w}
	}
	if _, err := x.copyBody(dst, response.Body); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
			return refuse(BadResponse)
		}
		return refuse(ClientGone)
	}
	if chunked {
		if err := (chunks{w}).end(); err != nil {
			return refuse(ClientGone)
		}
	}
	return nil
}

// cleanResponse removes the fields that are for this hop, or that only the proxy
// may send.
func cleanResponse(header http.Header) {
	var hop []string
	for _, value := range header["Connection"] {
		for option := range strings.SplitSeq(value, ",") {
			hop = append(hop, strings.TrimSpace(option))
		}
	}
	for _, name := range hop {
		header.Del(name)
	}
	header.Del("Content-Length")
	header.Del(refusedHeader)
	for name := range header {
		if hopByHop(strings.ToLower(name)) {
			delete(header, name)
		}
	}
}
