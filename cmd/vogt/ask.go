package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/egress"
	"vogt/internal/execution/confine"
	"vogt/internal/execution/confine/running"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/terminal"
)

// Limits of asking people about hosts: how long a connection is held, and how many
// hosts of a box wait for an answer at once.
const (
	hostWait  = 5 * time.Minute
	openHosts = 8
)

// hostAsker asks a person, through the authority, about hosts that no rule of a box
// covers. It speaks as the identity that the box is about.
type hostAsker struct {
	e       *env
	file    client.File
	options client.Options
	machine string
	box     string       // as it stands in the requests
	first   atomic.Int64 // the first process of the box, once it has begun
	// deny takes a host away again. It is set before anything is asked.
	deny func(egress.Question)
	work sync.WaitGroup
	over context.Context // ends when the proxy does
}

// newHostAsker prepares for a box that may ask. The box gets a name of its own, so
// that an answer holds for no other.
func (e *env) newHostAsker(p *confine.Profile, workspace string) (*hostAsker, error) {
	paths, err := e.paths()
	if err != nil {
		return nil, err
	}
	file, err := e.identity(paths)
	if err != nil {
		return nil, err
	}
	if _, err := file.Load(); err != nil {
		return nil, err
	}
	machine, err := hostname()
	if err != nil {
		return nil, err
	}
	name := make([]byte, 8)
	if _, err := rand.Read(name); err != nil {
		return nil, err
	}
	return &hostAsker{
		e: e, file: file, options: e.options(context.Background(), paths), machine: machine,
		box: grant.Confinement{Profile: p.Name, Digest: p.Digest(), Workspace: workspace}.String() + ", box " + hex.EncodeToString(name),
	}, nil
}

// ask implements egress.Config.Ask.
func (a *hostAsker) ask(ctx context.Context, q egress.Question) egress.Answer {
	c, err := client.Open(a.file, a.options) // for this question alone: a client serves one caller
	if err != nil {
		a.e.say(messages.AskNeedsLogin, err)
		return egress.Answer{}
	}
	defer c.Close()
	where := net.JoinHostPort(q.Host, strconv.Itoa(int(q.Port)))
	door := flow.Door{Authority: c, Ledger: c, Announce: func(g api.Grant) {
		a.e.say(messages.HostAsked, where, terminal.Visible(g.ID), terminal.Visible(g.ApproveURL))
	}}
	result, err := flow.Connect(ctx, door, flow.Connection{
		To: grant.Connect{Host: q.Host, Port: q.Port}, Box: a.box, Program: a.program(q.Client), Machine: a.machine, Wait: hostWait,
	})
	g := result.Grant
	if (err != nil || result.Ending == flow.Unanswered) && g.ID != "" && g.Status == grant.Pending {
		// Nobody waits any more. The card goes by itself, if this fails.
		leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
		defer cancel()
		_, _ = c.Revoke(leave, g.ID)
	}
	switch {
	case err != nil && ctx.Err() == nil:
		a.e.say(messages.AskNeedsLogin, err)
		return egress.Answer{}
	case err != nil:
		return egress.Answer{}
	case result.Ending == flow.Denied:
		return egress.Answer{Decision: egress.Deny, By: g.DecidedBy}
	case result.Ending != flow.Ran:
		return egress.Answer{}
	}
	answer := permission(g)
	if answer.Session {
		a.work.Go(func() { a.follow(g.ID, q) })
	}
	return answer
}

// follow takes a host away when its permission is revoked while the box runs.
func (a *hostAsker) follow(id string, q egress.Question) {
	look := time.NewTicker(followTime)
	defer look.Stop()
	for {
		select {
		case <-a.over.Done():
			return
		case <-look.C:
		}
		c, err := client.Open(a.file, a.options)
		if err != nil {
			continue // it is looked again
		}
		g, err := c.Grant(a.over, id)
		c.Close()
		if err == nil && g.Status == grant.Revoked {
			a.deny(q)
			return
		}
	}
}

// permission is what an approved grant opens. Request.Type is what was approved.
func permission(g api.Grant) egress.Answer {
	answer := egress.Answer{Decision: egress.Permit, By: terminal.Visible(g.DecidedBy)}
	if g.Request == nil {
		return answer
	}
	switch g.Request.Type {
	case grant.Once:
	case grant.Always:
		answer.Session = true
	case grant.Timed:
		answer.Session, answer.Until = true, time.Unix(g.ExpiresAt, 0)
	}
	return answer
}

// program is the program in the box that holds its end of a connection.
func (a *hostAsker) program(client net.Addr) string {
	addr, ok := client.(*net.TCPAddr)
	if first := a.first.Load(); ok && first != 0 {
		return running.Program(int(first), uint16(addr.Port))
	}
	return ""
}
