//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/vogtdtest"
)

// roomy are limits that do not stop many clients.
const roomy = `
[limits]
pending_per_agent = 10000
stored_per_agent = 1073741824
creations_per_second = 10000
owner_factor = 1000
`

// heard is what clients were told, by id of the grant.
type heard struct {
	owner *authoritytest.Principal

	stop   atomic.Bool
	done   atomic.Int64 // grants that went all the way
	broken atomic.Int64 // calls that got no answer

	mu       sync.Mutex
	created  map[string]bool
	approved map[string]bool
	consumed map[string]int
	ended    map[string]bool
	mayEnd   map[string]bool // grants that may be taken back before they are used
	trouble  []string        // answers that no crash explains
}

func (h *heard) note(write func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	write()
}

// ends reports whether the call is for a grant that may have been taken back.
func (h *heard) ends(path string) (may bool) {
	h.note(func() {
		for id := range h.mayEnd {
			may = may || strings.HasPrefix(path, authoritytest.GrantPath(id))
		}
	})
	return may
}

// call makes one call and reports whether it was answered with success.
func (h *heard) call(c *authoritytest.Client, method, path string, body, out any) bool {
	a, err := c.Try(method, path, body)
	if err != nil {
		h.broken.Add(1)
		return false
	}
	if a.Status/100 == 2 {
		err = json.Unmarshal(a.Body, out)
	}
	if a.Status/100 != 2 || err != nil {
		if h.ends(path) && a.Status == 403 {
			return false
		}
		h.note(func() { h.trouble = append(h.trouble, fmt.Sprintf("%s: %d %s %v", a.Call, a.Status, a.Body, err)) })
		return false
	}
	return true
}

// whole takes one new request as far as it goes: asked, approved by signature,
// and consumed by two at once, of whom one may start.
func (h *heard) whole(agent *authoritytest.Principal, argv ...string) {
	var g api.Grant
	if !h.call(&agent.Client, "POST", api.PathGrants, authoritytest.Request(argv...), &g) {
		return
	}
	h.note(func() { h.created[g.ID] = true })
	var offer api.Offer
	if !h.call(&h.owner.Client, "GET", authoritytest.GrantPath(g.ID, "statement"), nil, &offer) {
		return
	}
	digest := offer.Statement.Digest()
	signature, err := h.owner.Key.SignDecision(digest)
	if err != nil {
		h.note(func() { h.trouble = append(h.trouble, err.Error()) })
		return
	}
	yes := api.Decide{GrantType: grant.Once, Digest: &digest, Signature: signature}
	if !h.call(&h.owner.Client, "POST", authoritytest.GrantPath(g.ID, "approve"), yes, new(api.Decided)) {
		return
	}
	h.note(func() { h.approved[g.ID] = true })
	h.spend(agent, g.ID)
}

// spend has two at once consume what is approved.
func (h *heard) spend(agent *authoritytest.Principal, id string) {
	var token api.Token
	if !h.call(&agent.Client, "POST", authoritytest.GrantPath(id, "token"), nil, &token) {
		return
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { h.consume(agent, id, token.AuthzJWT) })
	}
	both.Wait()
	h.done.Add(1)
}

// consume asks until there is an answer, as a client does that does not give up.
func (h *heard) consume(agent *authoritytest.Principal, id, jwt string) {
	var out api.Consumed
	bearer := &authoritytest.Client{S: agent.S, Bearer: jwt}
	for !h.call(bearer, "POST", authoritytest.GrantPath(id, "consume"), nil, &out) {
		if h.stop.Load() {
			return
		}
	}
	if out.Status != "consumed" {
		if out.Error != "already_consumed" && !(h.ends(authoritytest.GrantPath(id)) && out.Error == "revoked") {
			h.note(func() { h.trouble = append(h.trouble, fmt.Sprintf("consume %s: %+v", id, out)) })
		}
		return
	}
	h.note(func() { h.consumed[id]++ })
	if h.call(&agent.Client, "POST", authoritytest.GrantPath(id, "outcome"), api.Outcome{Use: out.Use}, new(struct{})) {
		h.note(func() { h.ended[id] = true })
	}
}

// TestKilledUnderLoad kills the worker again and again while many clients ask,
// approve and consume, each at its own pace. Everything that a client was told
// is there in the end, and no permission was used twice.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const (
		clients = 64
		agents  = 8
		rounds  = 5
		between = 60 // grants that go all the way between two kills
	)
	d := vogtdtest.Start(t, vogtdtest.Options{Config: roomy})
	h := &heard{
		owner:   d.Owner(),
		created: map[string]bool{}, approved: map[string]bool{}, consumed: map[string]int{}, ended: map[string]bool{},
	}
	var askers []*authoritytest.Principal
	for i := range agents {
		askers = append(askers, d.API.Agent(h.owner, fmt.Sprintf("helper-%d", i)))
	}
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for n := 0; !h.stop.Load(); n++ {
				h.whole(askers[i%agents], "uptime", fmt.Sprintf("--%d-%d", i, n))
			}
		})
	}
	defer all.Wait()
	defer h.stop.Store(true)
	for range rounds {
		enough := h.done.Load() + between
		vogtdtest.Await(t, "clients get on", func() bool { return h.done.Load() >= enough })
		d.AwaitWorker(d.KillWorker())
	}
	enough := h.done.Load() + between
	vogtdtest.Await(t, "clients get on after the last kill", func() bool { return h.done.Load() >= enough })
	h.stop.Store(true)
	all.Wait()

	log := h.check(t, d)
	t.Logf("%d grants created, %d consumed, %d calls cut off", len(log.grants), len(h.consumed), h.broken.Load())
	settled(t, d, log)
}

// check compares what clients were told with what there is.
func (h *heard) check(t *testing.T, d *vogtdtest.Daemon) *ledger {
	t.Helper()
	log, grants := agree(t, d, h.owner)
	for id := range h.created {
		if log.grants[id] == nil {
			t.Errorf("grant %s was answered and is lost", id)
		}
	}
	for id := range h.approved {
		if log.grants[id].kind != grant.Once {
			t.Errorf("the approval of %s was answered and is lost", id)
		}
	}
	for id, n := range h.consumed {
		if n != 1 || grants[id].Status != grant.Used {
			t.Errorf("grant %s was started %d times and is %s", id, n, grants[id].Status)
		}
	}
	for id := range h.ended {
		if log.grants[id].ended != 1 {
			t.Errorf("the outcome of %s was answered and is recorded %d times", id, log.grants[id].ended)
		}
	}
	for _, what := range h.trouble {
		t.Error(what)
	}
	if h.broken.Load() == 0 {
		t.Error("no call was cut off by a kill, so nothing was tried")
	}
	return log
}
