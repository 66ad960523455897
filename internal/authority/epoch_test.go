package authority_test

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

// remembered is a checkpoint as a client sends it along.
func remembered(text string) []string {
	return []string{api.CheckpointHeader, base64.StdEncoding.EncodeToString([]byte(text))}
}

func latest(t *testing.T, s *authoritytest.Server) string {
	t.Helper()
	return string(s.Stranger().Get(api.PathAudit + "/checkpoint").Want(200).Body)
}

// restored is an authority that was copied, went on, and was put back.
type restored struct {
	s                            *authoritytest.Server
	owner, agent                 *authoritytest.Principal
	always, timed, once, pending string
	jwt                          map[string]string // grant tokens from before the copy
	seen                         string            // checkpoint from after the copy
}

func restore(t *testing.T) *restored {
	t.Helper()
	r := &restored{s: authoritytest.Start(t), jwt: map[string]string{}}
	r.owner = r.s.Owner()
	r.agent = r.s.Agent(r.owner, "helper")
	r.always = approved(r.owner, r.agent, grant.Always, "always").ID
	r.timed = approved(r.owner, r.agent, grant.Timed, "timed").ID
	r.once = approved(r.owner, r.agent, grant.Once, "once").ID
	r.pending = r.agent.Ask("pending").ID
	for _, id := range []string{r.always, r.timed, r.once} {
		r.jwt[id] = r.agent.Token(id)
	}
	backup := r.s.Backup()
	// The once-grant is used after the copy was made.
	if e := consumedError(r.s.Consume(r.once, r.jwt[r.once])); e != "" {
		t.Fatal(e)
	}
	r.seen = latest(t, r.s)
	r.s.Restore(backup)
	return r
}

// TestEpochAfterRestore: the first client that remembers more than the log
// holds begins a new epoch, before its call is answered.
func TestEpochAfterRestore(t *testing.T) {
	t.Parallel()
	r := restore(t)
	if got := r.s.Authority.Epoch(); got != 1 {
		t.Fatalf("epoch %d right after the restore", got)
	}
	// The call itself carries an old login, which the new epoch refuses.
	r.agent.Do("GET", api.PathWhoAmI, nil, remembered(r.seen)...).Problem(401)
	if got := r.s.Authority.Epoch(); got != 2 {
		t.Fatalf("epoch %d after a client showed what it remembers", got)
	}
	if !r.s.HasRecord("epoch", `"epoch":2`, strings.Split(r.seen, "\n")[0]) {
		t.Errorf("the epoch is not on record: %q", r.s.Recorded("epoch"))
	}

	// Logins of before are refused, also by key of the same person.
	r.owner.Get(api.PathWhoAmI).Problem(401)
	old := r.agent.Bearer
	r.owner.Login()
	r.agent.Login()
	(&authoritytest.Client{S: r.s, Bearer: old}).Get(api.PathWhoAmI).Problem(401)

	for id, want := range map[string]grant.Status{
		r.always: grant.Approved, r.timed: grant.Approved, r.once: grant.Expired, r.pending: grant.Expired,
	} {
		if got := r.owner.Grant(id).Status; got != want {
			t.Errorf("grant %s is %s, want %s", id, got, want)
		}
	}
	// The once-grant, which was used in the time that was lost, stays spent;
	// tokens of before are refused for every grant.
	for id, jwt := range r.jwt {
		r.s.Consume(id, jwt).Problem(401)
	}
	r.agent.Post(authoritytest.GrantPath(r.once, "token"), nil).Problem(410)
	// What lasts goes on with new tokens.
	for _, id := range []string{r.always, r.timed} {
		if e := consume(t, r.agent, id).Error; e != "" {
			t.Errorf("a lasting grant after the restore: %s", e)
		}
	}
	if got := r.agent.Ask("always"); got.ID != r.always || !got.Automatic {
		t.Errorf("the lasting answer no longer serves: %+v", got)
	}

	// The same checkpoint again, or an older one, begins no further epoch.
	for range 3 {
		r.owner.Do("GET", api.PathWhoAmI, nil, remembered(r.seen)...).Want(200)
	}
	if got := r.s.Authority.Epoch(); got != 2 {
		t.Errorf("the same checkpoint began epoch %d", got)
	}
	// It outlasts a restart.
	r.s.Restart()
	if got := r.s.Authority.Epoch(); got != 2 {
		t.Errorf("after a restart it is epoch %d", got)
	}
	r.s.Consume(r.always, r.jwt[r.always]).Problem(401)
	r.owner.Get(api.PathWhoAmI).Want(200)
}

// TestEpochAfterTheLogGrewAgain: a restored log may have caught up in length
// before the first client with a memory comes. It is another log all the same.
func TestEpochAfterTheLogGrewAgain(t *testing.T) {
	t.Parallel()
	r := restore(t)
	for range 10 {
		r.owner.Login()
	}
	r.agent.Do("GET", api.PathWhoAmI, nil, remembered(r.seen)...).Problem(401)
	if got := r.s.Authority.Epoch(); got != 2 {
		t.Errorf("epoch %d, though the log forks from what a client remembers", got)
	}
	r.owner.Login()
	r.agent.Login()
	r.agent.Post(authoritytest.GrantPath(r.once, "token"), nil).Problem(410)
	r.owner.Do("GET", api.PathWhoAmI, nil, remembered(r.seen)...).Want(200)
	if got := r.s.Authority.Epoch(); got != 2 {
		t.Errorf("the same checkpoint began epoch %d", got)
	}
}

// TestCheckpointsThatChangeNothing: those of an honest client, and everything
// that this authority did not sign.
func TestCheckpointsThatChangeNothing(t *testing.T) {
	t.Parallel()
	s, other := authoritytest.Start(t), authoritytest.Start(t)
	owner := s.Owner()
	early := latest(t, s)
	agent := s.Agent(owner, "helper")
	agent.Ask("ls")
	now := latest(t, s)
	foreignOwner := other.Owner()
	for range 20 {
		foreignOwner.Login()
	}
	foreign := latest(t, other)
	lines := strings.SplitN(now, "\n", 3)
	for name, text := range map[string]string{
		"an early one":         early,
		"the latest":           now,
		"of another authority": foreign,
		"larger, with our key's signature of less": lines[0] + "\n999999\n" + lines[2],
		"unsigned":       strings.SplitN(now, "\n\n", 2)[0] + "\n",
		"empty":          "",
		"nonsense":       "x",
		"too long":       strings.Repeat("x", 8<<10),
		"foreign origin": strings.Replace(foreign, strings.SplitN(foreign, "\n", 2)[0], lines[0], -1),
	} {
		owner.Do("GET", api.PathWhoAmI, nil, remembered(text)...).Want(200)
		if got := s.Authority.Epoch(); got != 1 {
			t.Fatalf("%s: epoch %d", name, got)
		}
	}
	owner.Do("GET", api.PathWhoAmI, nil, api.CheckpointHeader, "no base64!").Want(200)
	if got := agent.Grant(agent.Ask("ls").ID).Status; got != grant.Pending {
		t.Errorf("the request is %s", got)
	}
}

// TestEpochIsBegunBeforeTheLoginIsRead: whoever remembers more may say so; the checkpoint
// itself is the proof.
func TestEpochIsBegunBeforeTheLoginIsRead(t *testing.T) {
	t.Parallel()
	r := restore(t)
	thief := &authoritytest.Client{S: r.s, Bearer: "no login at all"}
	thief.Do("GET", api.PathWhoAmI, nil, remembered(r.seen)...).Problem(401)
	if got := r.s.Authority.Epoch(); got != 2 {
		t.Errorf("epoch %d", got)
	}
}

// TestCheckpointHeader: every authenticated answer carries the log's head, and
// it never goes back.
func TestCheckpointHeader(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t, authoritytest.WithHousekeeping())
	owner := s.Owner()
	if h := owner.Get(api.PathWhoAmI).Header.Get(api.CheckpointHeader); h == "" {
		t.Error("an authenticated answer carries no checkpoint")
	}
	if h := s.Stranger().Get(api.PathHealth).Header.Get(api.CheckpointHeader); h != "" {
		t.Error("a stranger's answer carries one")
	}
	s.Clock.Advance(time.Second)
	first := latest(t, s)
	owner.Login()
	second := latest(t, s)
	if first == second {
		t.Error("the log's head does not follow the log")
	}
}

// TestLabelsAfterRestore: what an agent has seen after the copy was made is not
// forgotten with it.
func TestLabelsAfterRestore(t *testing.T) {
	t.Parallel()
	s := authoritytest.Start(t)
	owner := s.Owner()
	agent := s.Agent(owner, "helper")
	backup := s.Backup()
	g := agent.AskFor(inProject("cat", "/p/.env"))
	owner.Approve(g.ID, grant.Once, 0)
	consume(t, agent, g.ID)
	seen := latest(t, s)
	s.Restore(backup)
	if began, err := s.Authority.NoteCheckpoint(ctx, seen); err != nil || !began {
		t.Fatalf("a new epoch: %v, %v", began, err)
	}
	owner.Login()
	var out api.Principal
	owner.Get(api.PathMyAgents + "/" + url.PathEscape(agent.Email)).Want(200).Into(&out)
	var names []string
	for _, l := range out.Labels {
		names = append(names, l.Label)
	}
	if !slices.Equal(names, []string{"foreign", "secret", "wrote:*"}) {
		t.Errorf("labels after the restore: %q", names)
	}
}
