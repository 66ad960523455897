package client

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"vogt/internal/api"
	"vogt/internal/token"
)

// The built-in client of every authority, and the one address at which it is
// answered.
const (
	browserClient   = token.CLIAudience
	browserPort     = "9876"
	browserRedirect = "http://localhost:" + browserPort + "/callback"
	browserScope    = "openid email profile offline_access"

	// BrowserLimit is how long a login by browser waits for the person.
	BrowserLimit = 10 * time.Minute
)

// LogInByBrowser logs in as email through a browser of this machine, by an
// authorization code with PKCE (RFC 6749, RFC 7636, RFC 8252), and writes the
// identity's file. Show is given the address that the browser has to open. The
// login renews itself by refresh tokens for as long as the authority permits.
func (c *Client) LogInByBrowser(ctx context.Context, email string, show func(address string) error) error {
	logKey, err := c.greet(ctx)
	if err != nil {
		return err
	}
	secrets := make([]string, 3)
	for i := range secrets {
		b := make([]byte, 32)
		if _, err := io.ReadFull(c.opts.Random, b); err != nil {
			return err
		}
		secrets[i] = base64.RawURLEncoding.EncodeToString(b)
	}
	state, nonce, verifier := secrets[0], secrets[1], secrets[2]
	sum := sha256.Sum256([]byte(verifier))
	address := c.wire.base + api.PathAuthorize + "?" + url.Values{
		"response_type": {"code"}, "client_id": {browserClient}, "redirect_uri": {browserRedirect}, "scope": {browserScope},
		"state": {state}, "nonce": {nonce}, "login_hint": {email},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode()
	code, err := c.awaitCode(ctx, state, func() error { return show(address) })
	if err != nil {
		return err
	}
	var given api.OAuthToken
	_, err = c.wire.send(ctx, call{method: http.MethodPost, path: api.PathToken, answer: &given, body: map[string]string{
		"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": browserRedirect, "client_id": browserClient,
	}})
	if err != nil {
		return err
	}
	keys, err := c.publishedKeys(ctx)
	if err != nil {
		return err
	}
	claims, err := keys.VerifyLogin(given.AccessToken, c.wire.base, c.opts.Now())
	if err == nil && subtle.ConstantTimeCompare([]byte(claims.Nonce), []byte(nonce)) != 1 {
		err = errors.New("it is the answer to another login")
	}
	if err != nil {
		return &Error{Kind: Distrusted, Where: c.wire.base, Detail: "the login's token does not hold", Err: err}
	}
	if claims.Subject != email {
		return &Error{Kind: Refused, Where: c.wire.base, Detail: fmt.Sprintf("%.200q is logged in there, not %s", claims.Subject, email),
			Hint: "sign out on the page, and sign in as " + email}
	}
	answer := loginOf(given, claims)
	answer.LogKey = logKey
	return c.establishWith(ctx, answer, logKey, "", given.RefreshToken)
}

// loginOf is what a token of the code flow says, in the form of other logins.
func loginOf(given api.OAuthToken, claims token.Login) api.Login {
	return api.Login{Token: given.AccessToken, ID: claims.Subject, Email: claims.Subject, Name: claims.Name, Act: claims.Act, ExpiresIn: given.ExpiresIn}
}

// awaitCode listens at the redirect address until the authority's answer to this
// very login arrives. Whatever else comes there is turned away and changes
// nothing: any page can send a browser to an address of this machine.
func (c *Client) awaitCode(ctx context.Context, state string, ready func() error) (string, error) {
	type outcome struct {
		code string
		err  error
	}
	done := make(chan outcome, 1)
	server := &http.Server{
		ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			code, err, ours := c.callback(r, state)
			h := w.Header()
			h.Set("Content-Type", "text/plain; charset=utf-8")
			h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("Cache-Control", "no-store")
			h.Set("Connection", "close")
			switch {
			case !ours:
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, "This is not the answer that is waited for here.\n") // the browser may be gone
				return
			case err != nil:
				_, _ = io.WriteString(w, "Not logged in. The terminal says more; this page can be closed.\n")
			default:
				_, _ = io.WriteString(w, "Go on in the terminal; this page can be closed.\n")
			}
			select {
			case done <- outcome{code, err}:
			default: // somebody was first
			}
		}),
	}
	listeners, err := listenForBrowser(ctx)
	if err != nil {
		return "", err
	}
	var serving sync.WaitGroup
	for _, l := range listeners {
		serving.Go(func() { _ = server.Serve(l) }) // it ends with the server
	}
	defer func() {
		// The page that says so is still to be delivered.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(ending)
		_ = server.Close()
		serving.Wait() // the port is free again
	}()
	if err := ready(); err != nil {
		return "", err
	}
	limit := time.NewTimer(BrowserLimit)
	defer limit.Stop()
	select {
	case out := <-done:
		return out.code, out.err
	case <-limit.C:
		return "", &Error{Kind: NotConfirmed, Where: c.wire.base, Detail: "nobody logged in on the page", Hint: "give the command again"}
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// listenForBrowser listens where browsers look for "localhost": on the one or
// the other loopback address, if not on both.
func listenForBrowser(ctx context.Context) ([]net.Listener, error) {
	var all []net.Listener
	var first error
	for _, ip := range []string{"127.0.0.1", "::1"} {
		var config net.ListenConfig
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(ip, browserPort))
		if err == nil {
			all = append(all, l)
		} else if first == nil {
			first = err
		}
	}
	if len(all) == 0 {
		return nil, &Error{Kind: Invalid, Where: "localhost:" + browserPort, Detail: "the browser's answer could not be received there", Err: first,
			Hint: "end the program that uses this port, or log in with a key, or without --browser"}
	}
	return all, nil
}

// callback reads an answer. Ours is one that carries this login's state and the
// authority's name (RFC 9207).
func (c *Client) callback(r *http.Request, state string) (code string, err error, ours bool) {
	q := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != "/callback" || r.Host != "localhost:"+browserPort ||
		subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 || q.Get("iss") != c.wire.base {
		return "", nil, false
	}
	if why := q.Get("error"); why != "" {
		return "", &Error{Kind: NotConfirmed, Where: c.wire.base, Detail: fmt.Sprintf("%.40q: %.200q", why, q.Get("error_description"))}, true
	}
	code = q.Get("code")
	return code, nil, code != ""
}

// refresh gets the next token of a login by browser. It is called by one process
// at a time, since a refresh token that is shown twice ends the login.
func (c *Client) refresh(ctx context.Context, now Login) (Login, error) {
	var given api.OAuthToken
	_, err := c.wire.send(ctx, call{method: http.MethodPost, path: api.PathToken, answer: &given, body: map[string]string{
		"grant_type": "refresh_token", "refresh_token": now.Refresh, "client_id": browserClient,
	}})
	if e, ok := errors.AsType[*Error](err); ok && e.Status >= 400 && e.Status < 500 && e.Status != http.StatusTooManyRequests {
		return now, &Error{Kind: NotLoggedIn, Where: c.wire.base, Detail: "the login of " + now.Email + " has ended", Err: err}
	}
	if err != nil {
		return now, err
	}
	if given.RefreshToken == "" {
		return now, &Error{Kind: Malformed, Where: c.wire.base, Detail: "the renewed login lacks refresh_token"}
	}
	// Who is logged in does not change by it.
	next, err := c.accept(now, api.Login{
		Token: given.AccessToken, Email: now.Email, Name: now.Name, Act: now.Act, Owner: now.Owner, ExpiresIn: given.ExpiresIn, LogKey: now.LogKey,
	})
	next.Refresh = given.RefreshToken
	return next, err
}

// giveBack ends a login by browser at the authority, whatever became of its
// latest token (RFC 7009).
func (c *Client) giveBack(ctx context.Context) error {
	if c.login.Refresh == "" {
		return nil
	}
	_, err := c.wire.send(ctx, call{method: http.MethodPost, path: api.PathRevoke, body: map[string]string{
		"token": c.login.Refresh, "token_type_hint": "refresh_token", "client_id": browserClient,
	}})
	return err
}
