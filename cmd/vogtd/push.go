package main

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"vogt/internal/authority"
	"vogt/internal/config"
	"vogt/internal/pages"
	"vogt/internal/push"
)

// pushPatience is how long a request may be answered before browsers are told.
const pushPatience = 3 * time.Second

// newPushes returns what tells browsers, and the key that they subscribe with;
// that is empty where push is off.
func newPushes(ctx context.Context, cfg config.Daemon, a *authority.Authority, words pages.Outside, origin string, log *slog.Logger) (*push.Sender, string, error) {
	c := push.Config{
		Contact: cfg.Push.Contact, Pages: origin, Hosts: cfg.Push.Hosts,
		Source: pushSource{a}, Words: words, Log: log, Patience: pushPatience,
	}
	if len(c.Hosts) == 0 {
		return push.New(c), "", nil
	}
	scalar, err := a.PushKey(ctx)
	if err != nil {
		return nil, "", err
	}
	if c.Public, c.Private, err = push.KeyPair(scalar); err != nil {
		return nil, "", err
	}
	if c.Contact == "" {
		c.Contact = origin
		if !strings.HasPrefix(origin, "https:") {
			u, err := url.Parse(origin)
			if err != nil {
				return nil, "", err
			}
			c.Contact = "vogt@" + u.Hostname()
		}
	}
	return push.New(c), c.Public, nil
}

// pushSource is the authority as package push needs it.
type pushSource struct{ a *authority.Authority }

// Waits implements push.Source.
func (s pushSource) Waits(ctx context.Context, id string) (push.Waiting, bool, error) {
	g, person, agent, waits, err := s.a.WaitsFor(ctx, id)
	return push.Waiting{Person: person, Agent: agent.Name, Risk: g.Risk.String()}, waits, err
}

// Browsers implements push.Source.
func (s pushSource) Browsers(ctx context.Context, person string) (out []push.Subscription, err error) {
	rows, err := s.a.Subscriptions(ctx, person)
	for _, r := range rows {
		out = append(out, push.Subscription{Endpoint: r.Endpoint, P256dh: r.P256dh, Auth: r.Auth, Language: r.Language})
	}
	return out, err
}

// Drop implements push.Source.
func (s pushSource) Drop(ctx context.Context, person, endpoint string) error {
	return s.a.DropSubscription(ctx, person, endpoint)
}
