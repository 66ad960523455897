package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
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

const manyGrants = 100_000

// memory measures the resident memory of the authority's two processes, and
// what a list costs when there are many grants.
func (b *bench) memory() error {
	fmt.Print("\n## Memory and lists\n\n| state | parent MB | worker MB | list of 20, ms |\n|---|---|---|---|\n")
	home := filepath.Join(b.dir, "memory")
	for _, state := range []string{"idle", strconv.Itoa(manyGrants) + " grants"} {
		if state != "idle" {
			if err := b.fill(home); err != nil {
				return err
			}
		}
		in, err := b.start(home)
		if err != nil {
			return err
		}
		err = b.memoryOf(in, state)
		in.stop()
		if err != nil {
			return err
		}
		if state != "idle" {
			continue
		}
		if err := os.RemoveAll(home); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) memoryOf(in *instance, state string) error {
	var times []time.Duration
	for range 200 {
		t := time.Now()
		if err := in.call("GET", api.PathGrants+"?status=approved", in.ownerToken, nil, nil); err != nil {
			return err
		}
		times = append(times, time.Since(t))
	}
	parent, err := resident(in.cmd.Process.Pid)
	if err != nil {
		return err
	}
	worker, err := resident(in.worker)
	if err != nil {
		return err
	}
	fmt.Printf("| %s | %.1f | %.1f | %.2f |\n", state, parent, worker, float64(median(times).Microseconds())/1000)
	return nil
}

// resident reads VmRSS in MB (proc_pid_status(5)).
func resident(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			kb, err := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
			return kb / 1000, err
		}
	}
	return 0, fmt.Errorf("process %d tells no resident size", pid)
}

// fill writes many approved grants of the owner straight into the database.
func (b *bench) fill(home string) error {
	db, err := sqlite.Open(b.ctx, sqlite.Options{Dir: filepath.Join(home, "data"), Migrations: store.Migrations(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer db.Close()
	now := grant.At(time.Now())
	for first := 0; first < manyGrants; first += 1000 {
		err := db.Update(b.ctx, func(tx store.Tx) error {
			for i := first; i < first+1000; i++ {
				key := sha256.Sum256(strconv.AppendInt(nil, int64(i), 10))
				g := grant.Grant{
					ID: fmt.Sprintf("%x-0000-4000-8000-%012d", key[:4], i), Version: 1, Epoch: 1, Nonce: "00", Status: grant.Approved, Type: grant.Always,
					Request: grant.Request{Requester: "filler", Host: "bench", Audience: "shapes", Type: grant.Always, Command: []string{"/bin/true", strconv.Itoa(i)}},
					Owner:   ownerEmail, Approver: ownerEmail, Risk: detail.High, Identity: key, Created: now + grant.Millis(i),
				}
				if err := store.InsertGrant(tx, g, key[:], 100); err != nil {
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
