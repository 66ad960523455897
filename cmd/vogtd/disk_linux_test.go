package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

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

	full := func(what string, a authoritytest.Answer) {
		t.Helper()
		if p := a.Problem(507); !strings.Contains(p.Hint, "Free space") || !strings.Contains(p.Detail, "Nothing was recorded") {
			t.Errorf("%s: the answer does not say what to do: %+v", what, p)
		}
	}
	number := 0
	brim := func() (filler string) {
		t.Helper()
		filler = fillUp(t, disk, 300_000)
		for _, size := range []int{20_000, 1} { // until not even a small one fits
			long := strings.Repeat("x", size)
			for end := number + 1000; ; {
				if number++; number > end {
					t.Fatal("1,000 requests fit into 300 kB")
				}
				a := agent.Post(api.PathGrants, authoritytest.Request("uptime", long, strconv.Itoa(number)))
				if a.Status/100 != 2 {
					full("create", a)
					break
				}
			}
		}
		return filler
	}
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
