package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"vogt/internal/api"
	"vogt/internal/authority"
	"vogt/internal/grant"
	"vogt/internal/pages"
)

// refusal is translate for what a person has put together: the authority's own
// words about it come along. Nothing of it is closed; a rule is against it.
func refusal(err error) error {
	var e *authority.Error
	if !errors.As(err, &e) {
		return err
	}
	as := map[int]error{400: pages.ErrInvalid, 404: pages.ErrRefused, 409: pages.ErrRefused, 429: pages.ErrBusy}[e.Status]
	if as == nil || e.Kind == "taken" || e.Kind == "statement_changed" {
		return translate(err)
	}
	return &pages.Refusal{As: as, Reason: strings.TrimSpace(fmt.Sprintf("%s. %s", strings.TrimSuffix(e.Title, "."), e.Detail))}
}

// covered says which standing grants cover parts of a request that waits. The names
// of classes are known for the patterns of whoever looks.
func (b *backend) covered(ctx context.Context, a authority.Actor, id string) ([]pages.Covering, error) {
	ids, err := b.a.Covered(ctx, a, id)
	if err != nil || strings.Join(ids, "") == "" {
		return nil, err
	}
	all, err := b.a.Standing(ctx, a)
	if err != nil {
		return nil, err
	}
	classes := make(map[string]grant.Class, len(all))
	for _, s := range all {
		classes[s.ID] = s.Pattern.Class
	}
	out := make([]pages.Covering, len(ids))
	for i, id := range ids {
		out[i] = pages.Covering{ID: id, Class: classes[id]}
	}
	return out, nil
}

// Standing implements pages.Patterns.
func (b *backend) Standing(ctx context.Context, s pages.Session) ([]api.Standing, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return nil, err
	}
	out, err := b.a.Standing(ctx, a)
	return out, translate(err)
}

// RevokeStanding implements pages.Patterns.
func (b *backend) RevokeStanding(ctx context.Context, s pages.Session, id string) error {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	return translate(b.a.RevokeStanding(ctx, a, id))
}

// PreviewStanding implements pages.Previews.
func (b *backend) PreviewStanding(ctx context.Context, s pages.Session, p grant.Pattern) (api.StandingPreview, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return api.StandingPreview{}, err
	}
	out, err := b.a.PreviewStanding(ctx, a, api.PreviewStanding{Pattern: p, Days: pages.HistoryDays})
	return out, refusal(err)
}

// Suggestions implements pages.Previews.
func (b *backend) Suggestions(ctx context.Context, s pages.Session) ([]api.Suggestion, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return nil, err
	}
	out, err := b.a.Suggestions(ctx, a, pages.HistoryDays)
	return out, translate(err)
}

// Safe implements pages.Safes.
func (b *backend) Safe(ctx context.Context, s pages.Session) (api.Safe, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return api.Safe{}, err
	}
	out, err := b.a.Safe(ctx, a)
	return out, translate(err)
}

// SafeOff implements pages.Safes.
func (b *backend) SafeOff(ctx context.Context, s pages.Session, agent string) error {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	return translate(b.a.SafeOff(ctx, a, agent))
}

// Groups implements pages.Groups.
func (b *backend) Groups(ctx context.Context, s pages.Session) ([]api.Group, error) {
	a, err := b.actor(ctx, s, false)
	if err != nil {
		return nil, err
	}
	out, err := b.a.Groups(ctx, a)
	return out, translate(err)
}

// LeaveGroup implements pages.Groups.
func (b *backend) LeaveGroup(ctx context.Context, s pages.Session, group, agent string) error {
	a, err := b.actor(ctx, s, true)
	if err != nil {
		return err
	}
	return translate(b.a.DropMember(ctx, a, group, agent))
}
