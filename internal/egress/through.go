package egress

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"vogt/internal/inet"
)

// errNoProxy means that no variable names a proxy.
var errNoProxy = errors.New("no variable names a proxy")

// RefusedError is a proxy's refusal of a connection.
type RefusedError struct {
	Status string // as the proxy said it
	Detail string // why, if the proxy says so
	Remedy string
}

func (e *RefusedError) Error() string {
	text := e.Status
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// ProxyOf returns the proxy for tunnels that the variables name.
func ProxyOf(getenv func(string) string) (*url.URL, error) {
	for _, name := range []string{"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		text := getenv(name)
		if text == "" {
			continue
		}
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			return nil, fmt.Errorf("%s is no address of a proxy", name) // whose text may hold a password
		}
		switch u.Scheme {
		case "http", "socks5", "socks5h":
		default:
			return nil, fmt.Errorf("%s names a proxy with the scheme %s; known are http, socks5 and socks5h", name, u.Scheme)
		}
		if u.Port() == "" {
			u.Host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80"}[u.Scheme])
			if u.Scheme != "http" {
				u.Host = net.JoinHostPort(u.Hostname(), "1080")
			}
		}
		return u, nil
	}
	return nil, errNoProxy
}

// IsNoProxy reports whether ProxyOf found no variable.
func IsNoProxy(err error) bool { return errors.Is(err, errNoProxy) }

// Through is a connection to a host by a proxy. What was read behind the proxy's
// answer comes first.
type Through struct {
	net.Conn
	r io.Reader
}

// Read reads what the host sends.
func (t *Through) Read(b []byte) (int, error) { return t.r.Read(b) }

// CloseWrite ends what is sent, and leaves the other direction open.
func (t *Through) CloseWrite() error {
	half, ok := t.Conn.(interface{ CloseWrite() error })
	if !ok {
		return t.Conn.Close()
	}
	return half.CloseWrite()
}

// DialThrough connects to a host by a proxy, with CONNECT or SOCKS5. The proxy's
// refusal is a *RefusedError. Who waits is up to the context: the proxy may ask a
// person first.
func DialThrough(ctx context.Context, proxy *url.URL, host inet.Host, port uint16) (*Through, error) {
	if host == (inet.Host{}) || port == 0 {
		return nil, errors.New("a host and a port are needed")
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", proxy.Host)
	if err != nil {
		return nil, err
	}
	stop := whenDone(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	br := bufio.NewReader(conn)
	if proxy.Scheme == "http" {
		err = connectHTTP(conn, br, proxy.User, host, port)
	} else {
		err = connectSOCKS(conn, br, proxy.User, host, port)
	}
	stop()
	if err != nil {
		conn.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return &Through{Conn: conn, r: br}, nil
}

func connectHTTP(w io.Writer, br *bufio.Reader, user *url.Userinfo, host inet.Host, port uint16) error {
	address := host.Bracketed() + ":" + strconv.Itoa(int(port))
	text := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n"
	if user != nil {
		password, _ := user.Password()
		text += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(w, text+"\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(br, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return fmt.Errorf("the answer of the proxy is broken: %w", err)
	}
	if response.StatusCode/100 == 2 {
		return nil
	}
	defer response.Body.Close()
	refused := &RefusedError{Status: response.Status}
	var p problem
	if json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&p) == nil {
		refused.Detail, refused.Remedy = p.Detail, p.Remedy
	}
	return refused
}

func connectSOCKS(w io.Writer, br *bufio.Reader, user *url.Userinfo, host inet.Host, port uint16) error {
	method := byte(socksNoAuth)
	if user != nil {
		method = socksPassword
	}
	if _, err := w.Write([]byte{socksVersion, 1, method}); err != nil {
		return err
	}
	var answer [2]byte
	if _, err := io.ReadFull(br, answer[:]); err != nil {
		return fmt.Errorf("the answer of the proxy is broken: %w", err)
	}
	if answer[0] != socksVersion || answer[1] != method {
		return &RefusedError{Status: "the proxy wants another credential"}
	}
	if user != nil {
		password, _ := user.Password()
		if len(user.Username()) > 255 || len(password) > 255 {
			return errors.New("the credential is too long for SOCKS5")
		}
		text := "\x01" + string([]byte{byte(len(user.Username()))}) + user.Username() + string([]byte{byte(len(password))}) + password
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		if _, err := io.ReadFull(br, answer[:]); err != nil {
			return fmt.Errorf("the answer of the proxy is broken: %w", err)
		}
		if answer[1] != socksDone {
			return &RefusedError{Status: "the proxy refuses the credential"}
		}
	}
	request := []byte{socksVersion, socksConnect, 0}
	switch {
	case host.Addr().Is4():
		request = append(append(request, socksIPv4), host.Addr().AsSlice()...)
	case host.Addr().Is6():
		request = append(append(request, socksIPv6), host.Addr().AsSlice()...)
	default:
		request = append(append(request, socksName, byte(len(host.Name()))), host.Name()...)
	}
	if _, err := w.Write(append(request, byte(port>>8), byte(port))); err != nil {
		return err
	}
	var head [4]byte
	if _, err := io.ReadFull(br, head[:]); err != nil {
		return fmt.Errorf("the answer of the proxy is broken: %w", err)
	}
	if head[1] != socksDone {
		return &RefusedError{Status: socksText(head[1])}
	}
	length := map[byte]int64{socksIPv4: 4, socksIPv6: 16}[head[3]]
	if head[3] == socksName {
		n, err := br.ReadByte()
		if err != nil {
			return fmt.Errorf("the answer of the proxy is broken: %w", err)
		}
		length = int64(n)
	}
	if _, err := io.CopyN(io.Discard, br, length+2); err != nil {
		return fmt.Errorf("the answer of the proxy is broken: %w", err)
	}
	return nil
}

// socksText is what the number in a refusal means.
func socksText(code byte) string {
	switch code {
	case socksRefused:
		return "the proxy's rules do not allow the connection"
	case socksNoHost:
		return "the proxy does not find the host"
	case socksNoConnect:
		return "the host does not accept the connection"
	}
	return "the proxy refuses the connection (SOCKS5 code " + strconv.Itoa(int(code)) + ")"
}
