package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/store"
	"vogt/internal/store/sqlite"
)

const million = 1_000_000

// million measures lists, the inbox and new requests in a database that a
// million grants have gone through, and what a grant takes on the disk.
func (b *bench) million() error {
	home := filepath.Join(b.dir, "million")
	begin := time.Now()
	first := grant.At(begin) + 60*60*1000
	if err := b.fillMillion(home, first); err != nil {
		return err
	}
	file := filepath.Join(home, "data", sqlite.FileName)
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	fmt.Printf("\n## A million grants\n\nStored in %.0f s. A grant with its decision takes %.0f bytes of the database, indexes included.\n\n",
		time.Since(begin).Seconds(), float64(info.Size())/million)
	if err := b.inbox(home); err != nil {
		return err
	}
	in, err := b.start(home)
	if err != nil {
		return err
	}
	defer in.stop()
	fmt.Print("\n| list over HTTP, one client | p50 ms | p99 ms |\n|---|---|---|\n")
	middle := api.PathGrants + "?cursor=" + cursorAt(first, million/2)
	for _, query := range []string{
		"", "?limit=100", "?status=pending", "?status=approved", "?status=used", "?status=denied", "?status=expired", "?status=revoked",
		"?requester=" + url.QueryEscape("agent7@example.com"), "?status=approved&requester=" + url.QueryEscape("agent7@example.com"),
	} {
		if err := b.timed(in, query, api.PathGrants+query); err != nil {
			return err
		}
	}
	for _, query := range []string{"", "&status=approved", "&status=denied", "&limit=100"} {
		if err := b.timed(in, "from the middle"+query, middle+query); err != nil {
			return err
		}
	}
	resident, err := resident(in.worker)
	if err != nil {
		return err
	}
	fmt.Printf("\nMemory of the worker after the lists: %.1f MB.\n", resident)
	fmt.Print("\n| operation beside a million | clients | requests/s | p50 ms | p99 ms |\n|---|---|---|---|---|\n")
	if err := b.loadWith(in, 8); err != nil {
		return err
	}
	return nil
}

func (b *bench) timed(in *instance, name, path string) error {
	var times []time.Duration
	for range 200 {
		t := time.Now()
		if err := in.call("GET", path, in.ownerToken, nil, nil); err != nil {
			return err
		}
		times = append(times, time.Since(t))
	}
	_, p50, p99 := summary(times, time.Second)
	fmt.Printf("| `%s` | %.2f | %.2f |\n", name, p50, p99)
	return nil
}

// inbox measures what the page of waiting cards reads.
func (b *bench) inbox(home string) error {
	db, err := sqlite.Open(b.ctx, sqlite.Options{Dir: filepath.Join(home, "data"), Migrations: store.Migrations(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer db.Close()
	var times []time.Duration
	var rows, total int
	for range 200 {
		t := time.Now()
		err := db.View(b.ctx, func(tx store.Tx) error {
			waiting, err := store.ListGrants(tx, store.Filter{Viewer: ownerEmail, Status: grant.Pending, Limit: 50, OldFirst: true, Now: 1})
			if err != nil {
				return err
			}
			rows = len(waiting)
			total, err = store.CountPending(tx, ownerEmail, 0, 1)
			return err
		})
		if err != nil {
			return err
		}
		times = append(times, time.Since(t))
	}
	_, p50, p99 := summary(times, time.Second)
	fmt.Printf("The inbox, %d of %d waiting: p50 %.2f ms, p99 %.2f ms in process.\n", rows, total, p50, p99)
	return nil
}

// cursorAt is the cursor of the page that begins at one of them. They are newer
// than the owner, who is enrolled later, since nobody sees what is older.
func cursorAt(begin grant.Millis, i int) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.x", begin+grant.Millis(i)))
}

// fillMillion writes grants of a hundred agents, half of which are still there, in
// all states straight into the database, with the decisions that most of them had.
func (b *bench) fillMillion(home string, begin grant.Millis) error {
	db, err := sqlite.Open(b.ctx, sqlite.Options{Dir: filepath.Join(home, "data"), Migrations: store.Migrations(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer db.Close()
	err = db.Update(b.ctx, func(tx store.Tx) error {
		for i := range 50 {
			p := store.Principal{Email: fmt.Sprintf("agent%d@example.com", i), Kind: "agent", Name: fmt.Sprint("agent", i), Owner: ownerEmail, Approver: ownerEmail, Created: 1}
			if err := store.InsertPrincipal(tx, &p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	const batch = 10_000
	for first := 0; first < million; first += batch {
		err := db.Update(context.Background(), func(tx store.Tx) error {
			for i := first; i < first+batch; i++ {
				if err := millionth(tx, begin, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if b.ctx.Err() != nil {
			return b.ctx.Err()
		}
	}
	return nil
}

func millionth(tx store.Tx, begin grant.Millis, i int) error {
	key := sha256.Sum256(strconv.AppendInt(nil, int64(i), 10))
	agent := fmt.Sprintf("agent%d@example.com", i%100)
	g := grant.Grant{
		ID: fmt.Sprintf("%x-0000-4000-8000-%012d", key[:4], i), Version: 1, Epoch: 1, Nonce: fmt.Sprintf("%x", key[:16]), Status: grant.Pending, Type: grant.Once,
		Request: grant.Request{
			Requester: agent, Host: "bench", Audience: "shapes", Type: grant.Once, Command: []string{"/usr/bin/make", "-C", "/home/me/project", "target" + strconv.Itoa(i)},
			Reason: "build a part of the project", CmdHash: fmt.Sprintf("%x", key),
		},
		Requester: grant.Requester{KeyID: fmt.Sprintf("%x", key), Generation: 1},
		Owner:     ownerEmail, Approver: ownerEmail, Risk: detail.High, Identity: key, Created: begin + grant.Millis(i),
	}
	switch {
	case i%10 == 3: // somebody else's, to be answered here
		g.Owner = "other@example.com"
	case i%10 == 4:
		g.Approver = "approver@example.com"
	}
	status := grant.Used
	switch n := i / 100 % 1000; {
	case n < 15:
		status = grant.Approved
	case n < 35:
		status = grant.Denied
	case n < 85:
		status = grant.Expired
	case n < 95:
		status = grant.Revoked
	case n == 999 && i%100 < 3:
		status = grant.Pending
	}
	if status == grant.Pending {
		return store.InsertGrant(tx, g, key[:], 300)
	}
	g.Version, g.Status = 2, status
	if status == grant.Approved {
		g.Type = grant.Always
	}
	if status != grant.Expired {
		g.Decision = &grant.Decision{By: ownerEmail, At: g.Created + 1000, Strength: grant.Independent, Digest: key}
	}
	return store.InsertDecided(tx, g, key[:], 300, int64(i))
}
