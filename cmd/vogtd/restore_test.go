//go:build unix

package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/authoritytest"
	"vogt/internal/config"
	"vogt/internal/grant"
	"vogt/internal/vogtdtest"
)

// restored is an authority whose data were put back to an earlier state: in
// that state a permission waits that was used afterwards.
type restored struct {
	d            *vogtdtest.Daemon
	owner, agent *authoritytest.Principal
	spent        string // the grant
	jwt          string // its token, from before
	remembered   string // the checkpoint that clients saw last
	size         int64  // of the log that it is of
}

// restore lives, copies, goes on, and puts the copy back. vogtd is stopped then.
func restore(t *testing.T) *restored {
	t.Helper()
	r := &restored{d: vogtdtest.Start(t, vogtdtest.Options{Serve: true})}
	r.owner = r.d.Owner()
	r.agent = r.d.API.Agent(r.owner, "helper")
	r.spent = r.agent.Ask("reboot").ID
	r.owner.Approve(r.spent, grant.Once, 0)
	r.jwt = r.agent.Token(r.spent)
	pending := r.agent.Ask("uptime").ID
	r.d.Stop()
	backup := vogtdtest.NewHome(t)
	copyHome(t, r.d.Home, backup)

	r.d.Restart()
	var out api.Consumed
	r.d.API.Consume(r.spent, r.jwt).Into(&out)
	if out.Status != "consumed" {
		t.Fatalf("the first use: %+v", out)
	}
	r.agent.Post(authoritytest.GrantPath(r.spent, "outcome"), api.Outcome{Use: out.Use}).Want(200)
	r.owner.Approve(pending, grant.Once, 0)
	r.agent.Ask("uptime", "--pretty")
	r.remembered = string(r.d.API.Stranger().Get(api.PathAudit + "/checkpoint").Want(200).Body)
	r.size = r.checkpoint(t, r.remembered).Size
	vogtdtest.Await(t, "the last checkpoint is kept beside the data", func() bool {
		text, err := os.ReadFile(r.stateFile())
		return err == nil && r.checkpoint(t, string(text)).Size >= r.size
	})
	r.d.Stop()

	if err := os.RemoveAll(r.d.Data()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(r.d.Data(), 0o700); err != nil {
		t.Fatal(err)
	}
	copyHome(t, filepath.Join(backup, "data"), r.d.Data())
	r.d.API.Forget()
	return r
}

func (r *restored) stateFile() string {
	return checkpointPath(config.Paths{State: filepath.Join(r.d.Home, "state")}, filepath.Join(r.d.Home, "data"))
}

func (r *restored) checkpoint(t *testing.T, text string) audit.Checkpoint {
	t.Helper()
	s, _ := r.d.Status()
	c, err := audit.OpenCheckpoint(text, s.LogKey)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newEpoch checks that nothing of before the restore is of use any more.
func (r *restored) newEpoch(t *testing.T, reason string) {
	t.Helper()
	if s, _ := r.d.Status(); s.Epoch != 2 {
		t.Errorf("the epoch is %d, want 2", s.Epoch)
	}
	if p := r.owner.Get(api.PathWhoAmI).Problem(401); !strings.Contains(p.Title+p.Detail, "restore") {
		t.Errorf("an old login is refused without the reason: %+v", p)
	}
	r.agent.Post(authoritytest.GrantPath(r.spent, "token"), nil).Problem(401)
	r.d.API.Consume(r.spent, r.jwt).Problem(401)

	r.owner.Login()
	r.agent.Login()
	r.agent.Get(api.PathWhoAmI).Want(200)
	if a := r.agent.Post(authoritytest.GrantPath(r.spent, "token"), nil); a.Status != 410 {
		t.Errorf("the spent grant gives a token: %d %s", a.Status, a.Body)
	}
	for id, g := range allGrants(r.owner) {
		if g.Status != grant.Expired {
			t.Errorf("grant %s of before the restore is %s", id, g.Status)
		}
	}
	agree(t, r.d, r.owner)
	var why []string
	for _, rec := range r.d.Records() {
		if b, err := bodyOf(rec); err == nil && rec.Type == "epoch" {
			why = append(why, b.Why)
		}
	}
	if len(why) != 2 || !strings.Contains(why[1], reason) {
		t.Errorf("the log gives as reasons of its epochs %q", why)
	}
	// It still works, and the next start opens no further one.
	id := r.agent.Ask("uptime", "--since").ID
	r.owner.Approve(id, grant.Once, 0)
	r.d.Restart()
	if s, _ := r.d.Status(); s.Epoch != 2 {
		t.Errorf("after another start the epoch is %d", s.Epoch)
	}
	var out api.Consumed
	r.d.API.Consume(id, r.agent.Token(id)).Into(&out)
	if out.Status != "consumed" {
		t.Errorf("a grant of the new epoch: %+v", out)
	}
}

// present shows the remembered checkpoint, as every client does with each call.
func (r *restored) present() authoritytest.Answer {
	return r.agent.Do("GET", api.PathWhoAmI, nil, api.CheckpointHeader, base64.StdEncoding.EncodeToString([]byte(r.remembered)))
}

// TestRestoredBesideCheckpoint: what vogtd itself keeps beside its data tells
// it at the start.
func TestRestoredBesideCheckpoint(t *testing.T) {
	t.Parallel()
	r := restore(t)
	r.d.Restart()
	r.newEpoch(t, "behind a checkpoint")
}

// TestRestoredElsewhere: where that file is lost as well, the first client that
// remembers more than the log has tells it.
func TestRestoredElsewhere(t *testing.T) {
	t.Parallel()
	r := restore(t)
	if err := os.Remove(r.stateFile()); err != nil {
		t.Fatal(err)
	}
	r.d.Restart()
	if s, _ := r.d.Status(); s.Epoch != 1 {
		t.Fatalf("a restore that nobody can know of was noticed: epoch %d", s.Epoch)
	}
	r.present().Problem(401)
	r.newEpoch(t, "behind a checkpoint")
}

// TestRestoredAndGrown: the restored log has meanwhile grown as long as the
// remembered one, with other records.
func TestRestoredAndGrown(t *testing.T) {
	t.Parallel()
	r := restore(t)
	if err := os.Remove(r.stateFile()); err != nil {
		t.Fatal(err)
	}
	r.d.Restart()
	for int64(len(r.d.Records())) <= r.size {
		r.owner.Login()
	}
	r.d.API.Forget()
	r.present().Problem(401)
	r.newEpoch(t, "other records than a checkpoint")
}
