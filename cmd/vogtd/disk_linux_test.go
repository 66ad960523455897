package main

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
	"vogt/internal/vogtdtest"
)

// fillUp takes the rest of dir's disk but for spare bytes, and returns what to
// remove.
func fillUp(t *testing.T, dir string, spare int64) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(chunk)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Truncate(max(0, info.Size()-spare))
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// smallDisk is the disk of the data, which one agent fills.
type smallDisk struct {
	t      *testing.T
	dir    string
	agent  *authoritytest.Principal
	number int
}

// full expects what a full disk is answered with.
func (s *smallDisk) full(what string, a authoritytest.Answer) {
	s.t.Helper()
	if p := a.Problem(507); !strings.Contains(p.Hint, "Free space") || !strings.Contains(p.Detail, "Nothing was recorded") {
		s.t.Errorf("%s: the answer does not say what to do: %+v", what, p)
	}
}

// brim fills the disk, and what is left of it with requests.
func (s *smallDisk) brim() (filler string) {
	s.t.Helper()
	filler = fillUp(s.t, s.dir, 300_000)
	for _, size := range []int{20_000, 1} { // until not even a small one fits
		long := strings.Repeat("x", size)
		for end := s.number + 1000; ; {
			if s.number++; s.number > end {
				s.t.Fatal("1,000 requests fit into 300 kB")
			}
			a := s.agent.Post(api.PathGrants, authoritytest.Request("uptime", long, strconv.Itoa(s.number)))
			if a.Status/100 != 2 {
				s.full("create", a)
				break
			}
		}
	}
	return filler
}

// TestFullDisk fills the disk of the data under a running vogtd. What permits or
// asks is refused and leaves no trace; what narrows goes on; and with space
// again all goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if !vogtdtest.OwnMounts(t) {
		return
	}
	home := vogtdtest.NewHome(t)
	disk := filepath.Join(home, "data")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	vogtdtest.SmallDisk(t, disk, "32m")
	d := vogtdtest.Start(t, vogtdtest.Options{Home: home, Config: roomy})
	d.Expect("housekeeping failed")
	owner := d.Owner()
	agent := d.API.Agent(owner, "helper")
	ask := func(arg string) string { return agent.Ask("uptime", arg).ID }
	toRevoke, toApprove, toUse, toPanic := ask("1"), ask("2"), ask("3"), ask("4")
	var toDeny []string
	for n := range 20 {
		toDeny = append(toDeny, ask("deny-"+strconv.Itoa(n)))
	}
	owner.Approve(toUse, grant.Once, 0)
	owner.Approve(toPanic, grant.Once, 0)
	jwt := agent.Token(toUse)
	yes := owner.Signed(toApprove, grant.Once, 0)

	small := smallDisk{t: t, dir: disk, agent: agent}
	full, brim := small.full, small.brim
	refusedAll := func() {
		t.Helper()
		full("create", agent.Post(api.PathGrants, authoritytest.Request("uptime", "--new")))
		full("approve", owner.Post(authoritytest.GrantPath(toApprove, "approve"), yes))
		full("consume", d.API.Consume(toUse, jwt))
		full("prepare", owner.Post(api.PathTrust, api.TrustRequest{
			Operation: api.TrustDevice, Params: map[string]string{"name": "laptop"}, Secret: d.API.Secret(),
		}))
		full("login", owner.TryLogin(owner.Key))
	}

	filler := brim()
	agree(t, d, owner)
	for _, id := range toDeny {
		owner.Post(authoritytest.GrantPath(id, "deny"), nil).Want(200)
	}
	// By now it lives on the space that was set aside, for narrowing alone.
	if _, err := os.Stat(filepath.Join(disk, "ballast")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("twenty denials found room on a full disk (%v), so nothing is tried", err)
	}
	refusedAll()
	owner.Post(authoritytest.GrantPath(toRevoke, "revoke"), nil).Want(200)
	refusedAll()
	log, _ := agree(t, d, owner)
	if e := log.grants[toUse]; e.status != grant.Approved || e.uses != 0 {
		t.Errorf("a refused use left its grant %+v", *e)
	}

	// A worker that dies now comes back on the full disk.
	d.AwaitWorker(d.KillWorker())
	refusedAll()
	log, _ = agree(t, d, owner)
	for id, want := range map[string]grant.Status{
		toDeny[0]: grant.Denied, toRevoke: grant.Revoked, toApprove: grant.Pending, toUse: grant.Approved,
	} {
		if got := log.grants[id].status; got != want {
			t.Errorf("on a full disk grant %s is %s, want %s", id, got, want)
		}
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	vogtdtest.Await(t, "requests are taken again", func() bool {
		return agent.Post(api.PathGrants, authoritytest.Request("uptime", "--again")).Status/100 == 2
	})
	owner.Post(authoritytest.GrantPath(toApprove, "approve"), yes).Want(200)
	var out api.Consumed
	d.API.Consume(toUse, jwt).Into(&out)
	if out.Status != "consumed" {
		t.Errorf("with space again the grant that could not be used: %+v", out)
	}

	brim()
	var stopped api.PanicResult
	owner.Post(api.PathPanic, api.Panic{Reason: "full"}).Into(&stopped)
	if stopped.Agents != 1 || stopped.Grants < 2 {
		t.Errorf("panic on a full disk stopped %+v", stopped)
	}
	log, _ = agree(t, d, owner)
	if log.grants[toPanic].status != grant.Revoked || log.grants[toUse].uses != 1 {
		t.Errorf("after panic: %+v, %+v", *log.grants[toPanic], *log.grants[toUse])
	}
	settled(t, d, log)
}

// TestFullDiskTakesBack: on a full disk whatever was given beforehand can be taken
// back or ended, and is over; and nothing is given.
func TestFullDiskTakesBack(t *testing.T) {
	t.Parallel()
	if !vogtdtest.OwnMounts(t) {
		return
	}
	const service, local = "plans.example.com", "example.com"
	home := vogtdtest.NewHome(t)
	disk := filepath.Join(home, "data")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	vogtdtest.SmallDisk(t, disk, "32m")
	d := vogtdtest.Start(t, vogtdtest.Options{Home: home, Config: roomy})
	d.Expect("housekeeping failed")
	owner := d.Owner()
	bob := d.API.Person("bob@example.com")
	agent := d.API.Agent(owner, "helper")
	filling := d.API.Agent(owner, "filling")
	another := d.API.NewKey("another")

	// What is given. Each has its way back, which is taken on the full disk.
	pattern := func(program, name string) string {
		return `{"agent":"` + name + `","programs":["` + program + `"],"does":["read"],"read":["/p/**"],"max_risk":"medium"}`
	}
	standing := owner.Change(api.TrustStandingAdd, map[string]string{"pattern": pattern("cat", agent.Email)}).Standing.ID
	owner.Change(api.TrustGroupSet, map[string]string{"name": "readers", "agents": agent.Email})
	owner.Change(api.TrustStandingAdd, map[string]string{"pattern": pattern("ls", "group:readers")})
	owner.Change(api.TrustSafeOn, map[string]string{"email": agent.Email, "safe": `["/p"]`})
	policy := map[string]string{"policy": `{"agent":"` + agent.Email + `","audience":"*","mode":"allow-list","allow":["touch *"]}`}
	owner.Change(api.TrustPolicySet, policy)
	deputy := map[string]string{"deputy": bob.Email, "agents": "*", "max_risk": "high", "until": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)}
	standsIn := owner.Change(api.TrustDeputyAdd, deputy).Deputy.ID
	lasting := map[string]string{"delegate": agent.Email, "audience": service, "grant_type": "always"}
	delegation := owner.Change(api.TrustDelegationAdd, lasting).Delegation.ID
	byManagement := owner.Change(api.TrustDelegationAdd, lasting).Delegation.ID
	owner.Change(api.TrustKeyAdd, map[string]string{"public_key": another.Line})
	var me struct{ Keys []api.Key }
	owner.Get(api.PathWhoAmI).Into(&me)
	ended, revokedByClient := session(owner), session(owner)
	var sessions struct{ Data []api.ClientSession }
	owner.Get(api.PathMySessions).Into(&sessions)
	if len(me.Keys) != 2 || len(sessions.Data) != 2 {
		t.Fatalf("%+v, %+v", me, sessions)
	}
	first := sessions.Data[1].FamilyID // the older one
	d.API.Manager().Post(api.PathAllowedClients, api.AllowedClient{Domain: local, ClientID: service}).Want(200)
	admin := "/api/admin/users/" + url.PathEscape(bob.Email) + "/admin"
	d.API.Manager().Do("PUT", admin, map[string]bool{"isAdmin": true}).Want(200)
	var link struct{ ID string }
	d.API.Manager().Post("/api/admin/registration-urls", map[string]string{"email": "eve@example.com", "name": "Eve"}).Into(&link)
	waits := agent.Ask("uptime", "--deputy").ID
	covered := func(argv ...string) bool {
		var g api.Grant
		agent.Post(api.PathGrants, askFor(argv...)).Into(&g)
		return g.Status == grant.Approved
	}
	for _, argv := range [][]string{{"cat", "/p/1"}, {"ls", "/p/1"}, {"head", "/p/1"}, {"touch", "/p/1"}} {
		if !covered(argv...) {
			t.Errorf("%q is not covered", argv)
		}
	}
	key := signKey(t, agent)
	proof := func() string {
		text, err := assertion(key, agent.Email, d.API.URL)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	act := func(id string) int {
		a, err := actFor(d.API, proof(), id, service)
		if err != nil {
			t.Fatal(err)
		}
		return a.Status
	}
	renew := func(s api.OAuthToken) int {
		a, err := tryForm(d.API, api.PathToken, "grant_type", "refresh_token", "refresh_token", s.RefreshToken)
		if err != nil {
			t.Fatal(err)
		}
		return a.Status
	}
	if act(delegation) != 200 || act(byManagement) != 200 {
		t.Error("a delegation is of no use")
	}

	small := smallDisk{t: t, dir: disk, agent: filling}
	filler := small.brim()
	if _, err := os.Stat(filepath.Join(disk, "ballast")); err != nil {
		t.Fatal(err)
	}
	agentPath := api.PathUsers + "/" + url.PathEscape(agent.Email) + "/yolo-policy"
	for _, back := range []struct {
		what string
		do   func() authoritytest.Answer
	}{
		{"a request denied by a deputy", func() authoritytest.Answer { return bob.Post(authoritytest.GrantPath(waits, "deny"), nil) }},
		{"a standing grant", func() authoritytest.Answer { return owner.Do("DELETE", api.PathStanding+"/"+standing, nil) }},
		{"an agent of a group", func() authoritytest.Answer {
			return owner.Do("DELETE", api.PathGroups+"/readers/"+url.PathEscape(agent.Email), nil)
		}},
		{"safe commands of one", func() authoritytest.Answer {
			return owner.Do("DELETE", api.PathSafe+"/"+url.PathEscape(agent.Email), nil)
		}},
		{"safe commands of all", func() authoritytest.Answer { return owner.Do("DELETE", api.PathSafe, nil) }},
		{"a policy", func() authoritytest.Answer { return owner.Do("DELETE", agentPath, nil) }},
		{"a deputy", func() authoritytest.Answer { return owner.Do("DELETE", api.PathDeputies+"/"+standsIn, nil) }},
		{"a delegation", func() authoritytest.Answer { return owner.Do("DELETE", api.PathDelegations+"/"+delegation, nil) }},
		{"a delegation by management", func() authoritytest.Answer {
			return d.API.Manager().Do("DELETE", "/api/admin/delegations/"+byManagement, nil)
		}},
		{"a session", func() authoritytest.Answer { return owner.Do("DELETE", api.PathMySessions+"/"+first, nil) }},
		{"a refresh token by its client", func() authoritytest.Answer {
			a, err := tryForm(d.API, api.PathRevoke, "token", revokedByClient.RefreshToken)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}},
		{"a key", func() authoritytest.Answer { return owner.Do("DELETE", api.PathMyKeys+"/"+me.Keys[1].ID, nil) }},
		{"a service of a domain", func() authoritytest.Answer {
			return d.API.Manager().Do("DELETE", api.PathAllowedClients+"/"+local+"/"+service, nil)
		}},
		{"a registration link", func() authoritytest.Answer {
			return d.API.Manager().Do("DELETE", "/api/admin/registration-urls/"+url.PathEscape(link.ID), nil)
		}},
		{"an administrator", func() authoritytest.Answer {
			return d.API.Manager().Do("PUT", admin, map[string]bool{"isAdmin": false})
		}},
	} {
		if a := back.do(); a.Status != 200 {
			t.Errorf("%s: %d %s", back.what, a.Status, a.Body)
		}
	}
	// Many of them need the space that is set aside.
	for n := 0; ; n++ {
		if _, err := os.Stat(filepath.Join(disk, "ballast")); errors.Is(err, os.ErrNotExist) {
			break
		}
		if n == 100 {
			t.Fatal("all of it found room on a full disk, so nothing is tried")
		}
		owner.Do("DELETE", api.PathSafe, nil)
	}
	third := d.API.NewKey("third")
	for _, more := range []struct {
		what string
		a    authoritytest.Answer
	}{
		{"a service of a domain", d.API.Manager().Post(api.PathAllowedClients, api.AllowedClient{Domain: local, ClientID: service})},
		{"an administrator", d.API.Manager().Do("PUT", admin, map[string]bool{"isAdmin": true})},
		{"a registration link", d.API.Manager().Post("/api/admin/registration-urls", map[string]string{"email": "eve@example.com", "name": "Eve"})},
		{"a key by management", d.API.Manager().Post("/api/admin/users/"+url.PathEscape(bob.Email)+"/ssh-keys", map[string]string{"publicKey": third.Line})},
		{"a request", agent.Post(api.PathGrants, askFor("cat", "/p/2"))},
		{"a change of trust", owner.Post(api.PathTrust, api.TrustRequest{Operation: api.TrustDeputyAdd, Params: deputy, Secret: d.API.Secret()})},
	} {
		small.full(more.what, more.a)
	}

	d.AwaitWorker(d.KillWorker())
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	vogtdtest.Await(t, "requests are taken again", func() bool {
		return filling.Post(api.PathGrants, authoritytest.Request("uptime", "--again")).Status/100 == 2
	})
	for _, argv := range [][]string{{"cat", "/p/3"}, {"ls", "/p/3"}, {"head", "/p/3"}, {"touch", "/p/3"}} {
		if covered(argv...) {
			t.Errorf("%q is still covered", argv)
		}
	}
	if a, b := act(delegation), act(byManagement); a != 400 || b != 400 {
		t.Errorf("a delegation that was taken back: %d, %d", a, b)
	}
	if a, b := renew(ended), renew(revokedByClient); a != 400 || b != 400 {
		t.Errorf("a session that was ended: %d, %d", a, b)
	}
	if got := owner.Grant(waits).Status; got != grant.Denied {
		t.Errorf("what the deputy denied is %s", got)
	}
	waits = agent.Ask("uptime", "--again").ID
	if a := bob.Post(authoritytest.GrantPath(waits, "approve"), struct{}{}); a.Status/100 != 4 {
		t.Errorf("who was deputy answers: %d %s", a.Status, a.Body)
	}
	var deputies []api.Deputy
	owner.Get(api.PathDeputies).Into(&deputies)
	if len(deputies) != 1 || deputies[0].Status != "revoked" {
		t.Errorf("the deputies are %+v", deputies)
	}
	if a := (&authoritytest.Principal{Client: authoritytest.Client{S: d.API}, Email: owner.Email}).TryLogin(another); a.Status != 401 {
		t.Errorf("with the key that was taken away: %d %s", a.Status, a.Body)
	}
	log, _ := agree(t, d, owner)
	settled(t, d, log)
}

// TestReadOnlyDisk starts on a disk that cannot be written to.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	if !vogtdtest.OwnMounts(t) {
		return
	}
	home := vogtdtest.NewHome(t)
	disk := filepath.Join(home, "data")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	vogtdtest.SmallDisk(t, disk, "32m")
	d := vogtdtest.Start(t, vogtdtest.Options{Home: home})
	owner := d.Owner()
	d.Stop()
	remount := func(flags uintptr) {
		if err := unix.Mount("", disk, "", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatalf("mounting anew: %v", err)
		}
	}
	remount(unix.MS_RDONLY)
	refused(t, vogtdtest.Refuse(t, vogtdtest.Options{Home: home}), exitConfig, disk, "read-only")
	remount(0)
	d.Restart()
	owner.Get(api.PathWhoAmI).Want(200)
}

// TestUnwritableData starts as a user who may not write to the data directory.
func TestUnwritableData(t *testing.T) {
	home := vogtdtest.NewHome(t)
	data := filepath.Join(home, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	o := vogtdtest.Options{Home: home}
	if os.Getuid() == 0 { // whom nothing is refused
		const nobody = 65534
		o.Command = func(cmd *exec.Cmd) {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
			cmd.Dir = "/"
		}
		if err := errors.Join(os.Chmod(filepath.Dir(home), 0o711), os.Chown(home, nobody, nobody), os.Chown(data, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(data, 0o500); err != nil {
		t.Fatal(err)
	}
	refused(t, vogtdtest.Refuse(t, o), exitConfig, data, "permission")
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
		t.Errorf("it left %v (%v)", left, err)
	}
}
