package client

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"vogt/internal/api"
	"vogt/internal/sshkey"
)

// Options are the surroundings of a Client.
type Options struct {
	// Memory is the folder where checkpoints and evidence are kept; identities
	// of one home share it.
	Memory string
	// LogKey is the key of the log that the configuration pins for the
	// authority; empty for none.
	LogKey string
	// Passphrase asks a person for the passphrase of a key file. It may be nil
	// when there is nobody to ask.
	Passphrase func(path string) ([]byte, error)
	// Warn is told what a person should know although the call went well. It
	// may be nil.
	Warn func(Notice)

	Now    func() time.Time                           // time.Now when nil
	Sleep  func(context.Context, time.Duration) error // waits when nil
	Random io.Reader                                  // crypto/rand when nil
}

// Notice is something that a person should know although a call went well.
type Notice struct {
	Kind   Notable
	Detail string
}

// Notable are the kinds of notices.
type Notable uint8

// The kinds of notices.
const (
	ClockDiffers Notable = iota // Detail says by how much
)

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Warn == nil {
		o.Warn = func(Notice) {}
	}
	return o
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Client speaks to one authority as one identity. It is for one goroutine.
type Client struct {
	opts    Options
	wire    *wire
	file    File
	login   Login
	outbox  outbox
	seen    checkpoints
	flushed bool // the outbox was tried
}

// Open reads the identity of file and returns a client that speaks as it. It
// makes no request.
func Open(file File, opts Options) (*Client, error) {
	login, err := file.Load()
	if err != nil {
		return nil, err
	}
	return newClient(file, login, opts)
}

// Contact returns a client for the authority at address whose identity, once
// it has logged in, will lie in file. It makes no request.
func Contact(address string, file File, opts Options) (*Client, error) {
	return newClient(file, Login{Authority: address}, opts)
}

func newClient(file File, login Login, opts Options) (*Client, error) {
	opts = opts.withDefaults()
	w, err := newWire(login.Authority, opts.Sleep)
	if err != nil {
		return nil, err
	}
	return &Client{
		opts: opts, wire: w, file: file, login: login,
		outbox: outbox{folder: filepath.Join(filepath.Dir(file.path), "outbox")},
		seen:   checkpoints{folder: opts.Memory},
	}, nil
}

// Login is the identity as it stands in its file.
func (c *Client) Login() Login { return c.login }

// Authority is the address that the client speaks to.
func (c *Client) Authority() string { return c.wire.base }

// Close drops the connection.
func (c *Client) Close() { c.wire.http.CloseIdleConnections() }

// Health asks how the authority is. It needs no login. An authority that calls
// itself by another address than the one it was asked at is an error: tokens
// and statements name the issuer, and would not fit.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	var h api.Health
	if _, err := c.wire.send(ctx, call{method: http.MethodGet, path: api.PathHealth, answer: &h}); err != nil {
		return h, err
	}
	if h.Issuer != c.wire.base {
		return h, &Error{Kind: WrongIssuer, Where: c.wire.base, Detail: fmt.Sprintf("%.200q", h.Issuer),
			Hint: "use that address, or correct the authority's issuer setting"}
	}
	return h, nil
}

// clockTolerance is how far clocks may differ before it is worth a word.
const clockTolerance = time.Minute

// clockDiffers says by how much the authority's clock differs from ours, or
// nothing when it does not.
func (c *Client) clockDiffers(h api.Health) string {
	ahead := time.UnixMilli(h.Time).Sub(c.opts.Now()).Round(time.Second)
	switch {
	case h.Time == 0 || ahead.Abs() <= clockTolerance:
		return ""
	case ahead > 0:
		return fmt.Sprintf("this machine's clock is %s behind the authority's", ahead)
	}
	return fmt.Sprintf("this machine's clock is %s ahead of the authority's", -ahead)
}

// do makes an exchange as the identity. The login is renewed shortly before it
// ends, and once when the authority does not accept it; the log's checkpoint
// goes out with the request and comes back checked.
func (c *Client) do(ctx context.Context, ex call) error {
	if err := c.renew(ctx, false); err != nil {
		return err
	}
	header, err := c.sendAs(ctx, ex)
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusUnauthorized && c.login.Renews() {
		if err := c.renew(ctx, true); err != nil {
			return err
		}
		header, err = c.sendAs(ctx, ex)
	}
	if err != nil {
		return err
	}
	if err := c.checkHeader(ctx, header); err != nil {
		return err
	}
	c.flush(ctx)
	return nil
}

func (c *Client) sendAs(ctx context.Context, ex call) (http.Header, error) {
	ex.bearer = c.login.Token
	last, err := c.remembered()
	if err != nil {
		return nil, err
	}
	if last != "" {
		ex.header = withHeader(ex.header, api.CheckpointHeader, base64.StdEncoding.EncodeToString([]byte(last)))
	}
	return c.wire.send(ctx, ex)
}

func withHeader(header map[string]string, name, value string) map[string]string {
	all := map[string]string{name: value}
	for k, v := range header {
		all[k] = v
	}
	return all
}

// checkHeader checks the checkpoint that came with an answer.
func (c *Client) checkHeader(ctx context.Context, header http.Header) error {
	encoded := header.Get(api.CheckpointHeader)
	if encoded == "" {
		return &Error{Kind: Distrusted, Where: c.wire.base, Detail: "an answer came without the log's checkpoint",
			Hint: "a proxy in between may drop the header " + api.CheckpointHeader}
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return &Error{Kind: Distrusted, Where: c.wire.base, Detail: "the log's checkpoint is not base64"}
	}
	return c.observe(ctx, string(text))
}

// renewal is how long before its end a login is renewed.
const renewal = 30 * time.Second

// renew makes sure that there is a token which has not ended, or gets a new one
// although it has not when force is set. Processes that share the identity take
// turns, and the second one takes what the first one got.
func (c *Client) renew(ctx context.Context, force bool) error {
	if !force && c.fresh(c.login) {
		return nil
	}
	if !c.login.Renews() {
		return &Error{Kind: NotLoggedIn, Where: c.wire.base, Detail: "the login of " + c.login.Email + " has ended"}
	}
	refused := c.login.Token
	login, err := c.file.Locked(ctx, func(now Login) (Login, error) {
		if now.Email != c.login.Email || now.Authority != c.login.Authority {
			return now, &Error{Kind: NotLoggedIn, Where: c.file.path, Detail: "meanwhile " + now.Email + " has logged in here"}
		}
		if now.Token != refused && c.fresh(now) {
			return now, nil
		}
		if now.KeyPath == "" && now.Refresh != "" {
			return c.refresh(ctx, now)
		}
		key, err := c.key(now.KeyPath)
		if err != nil {
			return now, err
		}
		answer, err := c.authenticate(ctx, now.Email, key)
		if err != nil {
			return now, err
		}
		return c.accept(now, answer)
	})
	if err != nil {
		return err
	}
	c.login = login
	return nil
}

// fresh reports whether a login's token can still be used.
func (c *Client) fresh(l Login) bool {
	return l.Token != "" && c.opts.Now().Add(renewal).Before(time.Unix(l.Expires, 0))
}

func (c *Client) key(path string) (*sshkey.Private, error) {
	if err := CheckKeyFile(path); err != nil {
		return nil, err
	}
	key, err := sshkey.LoadPrivate(path, c.opts.Passphrase)
	if err != nil {
		return nil, &Error{Kind: KeyLocked, Where: path, Err: err}
	}
	return key, nil
}

// authenticate answers a login challenge. The challenge is signed only in its
// own form, so that the authority cannot have anything else signed by it.
func (c *Client) authenticate(ctx context.Context, email string, key *sshkey.Private) (api.Login, error) {
	var challenge api.Challenge
	_, err := c.wire.send(ctx, call{method: http.MethodPost, path: api.PathChallenge, body: api.ChallengeRequest{ID: email}, answer: &challenge})
	if err != nil {
		return api.Login{}, err
	}
	signature, err := sshkey.SignLogin(key, challenge.Challenge)
	if err != nil {
		return api.Login{}, &Error{Kind: Distrusted, Where: c.wire.base, Err: err}
	}
	var answer api.Login
	_, err = c.wire.send(ctx, call{method: http.MethodPost, path: api.PathAuthenticate, answer: &answer,
		body: api.Authenticate{ID: email, Challenge: challenge.Challenge, Signature: signature}})
	if err != nil {
		return api.Login{}, err
	}
	if answer.Email != email {
		return api.Login{}, &Error{Kind: Distrusted, Where: c.wire.base, Detail: fmt.Sprintf("it logged in %.100q instead of %s", answer.Email, email)}
	}
	return answer, nil
}

// accept puts the authority's answer to a login into l.
func (c *Client) accept(l Login, answer api.Login) (Login, error) {
	switch {
	case answer.Token == "" || answer.Email == "" || answer.ExpiresIn <= 0:
		return l, &Error{Kind: Malformed, Where: c.wire.base, Detail: "the login lacks token, email or expires_in"}
	case answer.Act != "human" && answer.Act != "agent":
		return l, &Error{Kind: Malformed, Where: c.wire.base, Detail: fmt.Sprintf("the login is for neither a person nor an agent but %.40q", answer.Act)}
	case l.LogKey != "" && answer.LogKey != l.LogKey:
		return l, c.logKeyChanged(l.LogKey, answer.LogKey)
	}
	l.Authority = c.wire.base
	l.Token, l.Email, l.Name, l.Act, l.Owner = answer.Token, answer.Email, answer.Name, answer.Act, answer.Owner
	l.Expires = c.opts.Now().Add(time.Duration(answer.ExpiresIn) * time.Second).Unix()
	l.LogKey = answer.LogKey
	return l, nil
}

func (c *Client) logKeyChanged(was, is string) error {
	return &Error{Kind: KeyChanged, Where: c.wire.base,
		Detail: fmt.Sprintf("its log was signed with %.120q until now, and shall be with %.120q", was, is),
		Hint: "if the authority was set up anew on purpose, remove " + c.file.path + ", " + c.seen.folderOf(c.wire.base) +
			" and authority_key in vogt.toml, and log in again; else somebody has put another in its place",
	}
}

// escape makes a value one segment of a path.
func escape(segment string) string { return url.PathEscape(segment) }
