package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/statement"
	"vogt/internal/store"
	"vogt/internal/store/sqlite"
)

// folders is how many patterns of the owner the measured requests fall under, in
// turn, so that no pattern reaches what it may cover in a minute.
const folders = 500

// standing measures requests that a pattern covers, beside many others.
func (b *bench) standing() error {
	fmt.Printf("\n## Requests under standing grants\n\nEach request falls under one of %d patterns of the owner; each figure over about %s.\n\n", folders, b.length)
	fmt.Print("| beside | clients | requests/s | p50 ms | p99 ms | `vogt run --wait -- true` ms |\n|---|---|---|---|---|---|\n")
	for _, c := range []struct {
		name        string
		others, own int
		any         bool
	}{
		{"nothing: every request asks", 0, -1, false},
		{"0 others", 0, 0, false},
		{"1,000 others", 1000, 0, false},
		{"100,000 others", 100_000, 0, false},
		{"1,500 of the same person for any program", 0, 1500, true},
	} {
		home := filepath.Join(b.dir, "standing-"+strconv.Itoa(c.others)+"-"+strconv.Itoa(c.own))
		if c.own >= 0 {
			if err := b.fillStanding(home, c.others, c.own, c.any); err != nil {
				return err
			}
		}
		if err := b.standingBeside(home, c.name, c.own >= 0); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (b *bench) standingBeside(home, name string, covered bool) error {
	in, err := b.start(home)
	if err != nil {
		return err
	}
	defer in.stop()
	most := 1 << 30
	if !covered {
		most = 3000 // no more may wait
	}
	for _, clients := range clientCounts {
		var n atomic.Int64
		ask := func(*work) error {
			req, err := request(grant.Once)
			if err != nil {
				return err
			}
			cwd := fmt.Sprintf("/p/%d", n.Add(1)%folders)
			req.Context = &grant.Context{Cwd: &statement.File{Path: &cwd}}
			var g api.Grant
			if err := in.call("POST", api.PathGrants, in.agentToken, req, &g); err != nil {
				return err
			}
			if covered != (g.Standing != "") {
				return fmt.Errorf("the request is %s, covered by %q", g.Status, g.Standing)
			}
			return nil
		}
		var times []time.Duration
		var took time.Duration
		for begin := time.Now(); time.Since(begin) < b.length && len(times) < most && b.ctx.Err() == nil; {
			t, d, err := drive(clients, fresh(240), ask)
			if err != nil {
				return err
			}
			times, took = append(times, t...), took+d
		}
		run := ""
		if covered && clients == clientCounts[0] {
			d, err := b.runUnder(in)
			if err != nil {
				return err
			}
			run = fmt.Sprintf("%.1f", ms(d))
		}
		rate, p50, p99 := summary(times, took)
		fmt.Printf("| %s | %d | %.0f | %.2f | %.2f | %s |\n", name, clients, rate, p50, p99, run)
	}
	return nil
}

// runUnder is the median time of a whole covered run, from start to exit.
func (b *bench) runUnder(in *instance) (time.Duration, error) {
	vogt := filepath.Join(b.bin, "vogt")
	env := []string{"VOGT_HOME=" + filepath.Join(in.home, "agent-home")}
	if err := b.quiet(env, vogt, "login", in.agentEmail, "--idp", in.issuer, "--key", filepath.Join(b.dir, "agent")); err != nil {
		return 0, err
	}
	var times []time.Duration
	for range b.rounds {
		t := time.Now()
		if err := b.quiet(env, vogt, "run", "--wait", "--", "true"); err != nil {
			return 0, err
		}
		times = append(times, time.Since(t))
	}
	return median(times), nil
}

// fillStanding writes patterns straight into the database: those that the requests
// fall under, some of the owner's for other folders, and those of other people.
func (b *bench) fillStanding(home string, others, own int, any bool) error {
	db, err := sqlite.Open(b.ctx, sqlite.Options{Dir: filepath.Join(home, "data"), Migrations: store.Migrations(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer db.Close()
	now := grant.At(time.Now())
	const batch = 2000
	for first := 0; first <= folders+own+others; first += batch {
		err := db.Update(context.Background(), func(tx store.Tx) error {
			for i := first; i < min(first+batch, folders+own+others+1); i++ {
				author := ownerEmail
				p := grant.Pattern{Agent: "*", Does: []grant.Deed{grant.DeedRead}, MaxRisk: detail.Medium, Limits: grant.Limits{PerMinute: 10_000, Deletes: 50}}
				if !any {
					p.Programs = []string{"true"}
				}
				switch {
				case i < folders:
					p.Read = []string{fmt.Sprintf("/p/%d/**", i)}
				case i == folders:
					p.Read = []string{b.dir + "/**"} // where the whole runs happen
				case i <= folders+own:
					p.Read = []string{fmt.Sprintf("/other/%d/**", i)}
				default:
					author = fmt.Sprintf("person%d@example.com", i/50)
					p.Read = []string{fmt.Sprintf("/p/%d/**", i%folders)}
				}
				err := store.InsertStanding(tx, store.Standing{Generation: 1, Standing: grant.Standing{
					ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Author: author, Pattern: p,
					Created: now, Until: now + 90*24*60*60*1000, Strength: grant.Independent,
				}})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
