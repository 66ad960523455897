package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"vogt/internal/api"
)

// LogIn logs in as email with the SSH key in the file keyPath, which must be
// absolute, pins the authority's keys and writes the identity's file. The
// file's other content, such as keys of other programs, is kept.
func (c *Client) LogIn(ctx context.Context, email, keyPath string) error {
	key, err := c.key(keyPath)
	if err != nil {
		return err
	}
	logKey, err := c.greet(ctx)
	if err != nil {
		return err
	}
	answer, err := c.authenticate(ctx, email, key)
	if err != nil {
		return err
	}
	return c.establish(ctx, answer, logKey, keyPath)
}

// LogInWith writes the identity of a login that a page has confirmed. It has
// no key, so it ends with its token.
func (c *Client) LogInWith(ctx context.Context, answer api.Login) error {
	logKey, err := c.greet(ctx)
	if err != nil {
		return err
	}
	return c.establish(ctx, answer, logKey, "")
}

// greet asks the authority who it is, and compares that with what is known
// about the authority at this address.
func (c *Client) greet(ctx context.Context) (logKey string, err error) {
	h, err := c.Health(ctx)
	if err != nil {
		return "", err
	}
	if differs := c.clockDiffers(h); differs != "" {
		c.opts.Warn(Notice{Kind: ClockDiffers, Detail: differs})
	}
	pinned, err := c.seen.pinned(c.wire.base)
	if err != nil {
		return "", err
	}
	// When the authority still has the key of the last login, it is the file
	// that changed.
	if old, err := c.file.Load(); err == nil && old.Authority == c.wire.base && old.LogKey == h.LogKey && pinned != "" && pinned != h.LogKey {
		return "", &Error{Kind: BadFile, Where: c.seen.keyFile(c.wire.base),
			Detail: fmt.Sprintf("it pins another key of the log (%.120q) than %s and the authority have: it was changed by hand", pinned, c.file.path),
			Hint:   "find out who changed it, then remove it and log in again"}
	}
	for _, known := range []string{pinned, c.opts.LogKey} {
		if known != "" && known != h.LogKey {
			return "", c.logKeyChanged(known, h.LogKey)
		}
	}
	return h.LogKey, nil
}

// establish pins the keys and writes the file of a login that is renewed by a
// key, or not at all.
func (c *Client) establish(ctx context.Context, answer api.Login, logKey, keyPath string) error {
	return c.establishWith(ctx, answer, logKey, keyPath, "")
}

func (c *Client) establishWith(ctx context.Context, answer api.Login, logKey, keyPath, refresh string) error {
	old, err := c.file.Load()
	if e, ok := errors.AsType[*Error](err); ok && (e.Kind == NotLoggedIn || e.Kind == BadFile) {
		old, err = Login{}, nil // a new login mends a damaged file
	}
	if err != nil {
		return err
	}
	next := Login{Authority: c.wire.base, LogKey: logKey, KeyPath: keyPath, Refresh: refresh, unknown: old.unknown}
	if old.Authority == c.wire.base {
		next.Keys = old.Keys
	}
	if next, err = c.accept(next, answer); err != nil {
		return err
	}
	published, err := c.publishedKeys(ctx)
	if err != nil {
		return err
	}
	if next.Keys, _, err = c.mergeKeys(next.Keys, published); err != nil {
		return err
	}
	c.login = next
	if _, err := c.memory(); err != nil {
		return err
	}
	if err := c.seen.pin(c.wire.base, logKey); err != nil {
		return err
	}
	return c.file.Save(next)
}

// LogOut ends the login at the authority and here. The local end is made even
// when the authority cannot be reached; the error then tells that the token
// stays valid until it ends by itself.
func (c *Client) LogOut(ctx context.Context) error {
	err := c.giveBack(ctx)
	if err == nil && c.login.Token != "" {
		_, err = c.wire.send(ctx, call{method: http.MethodPost, path: api.PathLogout, bearer: c.login.Token})
		if e, ok := errors.AsType[*Error](err); ok && e.Kind == NotLoggedIn {
			err = nil // it had ended already
		}
	}
	return errors.Join(err, c.file.Remove())
}

// Me asks the authority who the caller is.
func (c *Client) Me(ctx context.Context) (api.Principal, error) {
	var p api.Principal
	err := c.do(ctx, call{method: http.MethodGet, path: api.PathWhoAmI, answer: &p})
	return p, err
}

// RemoveKey takes one of the caller's own SSH keys away; the login suffices.
func (c *Client) RemoveKey(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: api.PathMyKeys + "/" + escape(id)})
}
