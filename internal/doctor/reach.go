package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vogt/internal/quickstart"
)

// databaseName is the authority's database in its data folder. It holds the
// signing keys too.
const databaseName = "vogt.db"

// dataFolders are where an authority of this machine may keep its data.
func (x *exam) dataFolders() []string {
	return append([]string{x.Paths.Data}, x.Places...)
}

// database tries to open the authority's database, as an agent of this user
// could.
func (x *exam) database(context.Context) Check {
	const name = "database"
	var open, closed []string
	for _, dir := range x.dataFolders() {
		path := filepath.Join(dir, databaseName)
		f, err := os.Open(path)
		switch {
		case err == nil:
			f.Close()
			open = append(open, path)
		case errors.Is(err, fs.ErrPermission):
			closed = append(closed, path)
		}
	}
	switch {
	case len(open) > 0:
		return finding(name, NotInForce, hardened, "%s can open %s, with the keys that sign permissions in it: so can every agent under the same user", whoami(), strings.Join(open, " and "))
	case len(closed) > 0:
		return inForce(name, "%s cannot open %s", whoami(), strings.Join(closed, " and "))
	case !local(x.address):
		return inForce(name, "the authority is on another machine")
	}
	return finding(name, InPart, "", "no database was found where one is expected (%s): there was nothing to try", strings.Join(x.dataFolders(), ", "))
}

// whoami names the user, since root reads everything.
func whoami() string {
	if os.Geteuid() == 0 {
		return "root, who runs this,"
	}
	return "this user"
}

func (x *exam) controlSocket(ctx context.Context) Check {
	const name = "control-socket"
	var reached []string
	for _, dir := range x.dataFolders() {
		if _, err := quickstart.NewControl(dir).Status(ctx); err == nil {
			reached = append(reached, filepath.Join(dir, quickstart.SocketName))
		}
	}
	if len(reached) > 0 {
		return finding(name, NotInForce, hardened, "%s can use %s: stop the authority, start it with other settings and, while nobody owns it, own it. The socket itself decides nothing", whoami(), strings.Join(reached, " and "))
	}
	return inForce(name, "no control socket answers this user")
}

// daemons are the processes of this user's authority or, where that cannot be
// asked, of every authority that is to be seen.
func (x *exam) daemons() []int {
	if x.controlErr == nil {
		return []int{x.status.PID}
	}
	var pids []int
	names, _ := filepath.Glob(filepath.Join(x.Proc, "[0-9]*", "comm")) // the pattern is well formed
	for _, name := range names {
		text, err := os.ReadFile(name)
		pid, perr := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && perr == nil && strings.TrimSpace(string(text)) == "vogtd" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// memory tries to open the authority's memory: the kernel asks for the same
// right as ptrace(2) for an attachment, and nothing is disturbed.
func (x *exam) memory(context.Context) Check {
	const name = "memory"
	if _, err := os.Stat(filepath.Join(x.Proc, "self", "mem")); err != nil {
		return finding(name, InPart, "", "this system has no %s to try it by", x.Proc)
	}
	pids := x.daemons()
	if len(pids) == 0 {
		return finding(name, InPart, "", "no process of an authority is to be seen: there was nothing to try")
	}
	for _, pid := range pids {
		f, err := os.OpenFile(filepath.Join(x.Proc, strconv.Itoa(pid), "mem"), os.O_RDWR, 0)
		if err == nil {
			f.Close()
			return finding(name, NotInForce, hardened, "%s can read and write the memory of the authority (process %d), keys and decisions included", whoami(), pid)
		}
	}
	return inForce(name, "the memory of the authority (process %d) is closed to this user", pids[0])
}

func (x *exam) ptrace(context.Context) Check {
	const name = "ptrace"
	const fix = "echo kernel.yama.ptrace_scope=2 | sudo tee /etc/sysctl.d/60-ptrace.conf && sudo sysctl --system"
	text, err := os.ReadFile(filepath.Join(x.Proc, "sys/kernel/yama/ptrace_scope"))
	if errors.Is(err, fs.ErrNotExist) {
		return finding(name, NotInForce, hardened, "this kernel has no Yama: a process may trace every other one of its user that allows it")
	}
	if err != nil {
		return finding(name, InPart, "", "%v", err)
	}
	switch scope := strings.TrimSpace(string(text)); scope {
	case "0":
		return finding(name, NotInForce, fix, "ptrace_scope is 0: a process may trace every other one of its user")
	case "1":
		return finding(name, InPart, fix, "ptrace_scope is 1: a process may trace those that it started itself, so an agent that starts `vogt up` may trace the authority")
	case "2", "3":
		return inForce(name, "ptrace_scope is %s: only root may trace", scope)
	default:
		return finding(name, InPart, "", "ptrace_scope is %q, which is not known here", scope)
	}
}

// disk looks at the space where the authority of this user, or this client,
// writes.
func (x *exam) disk(context.Context) Check {
	const name = "disk"
	const least, low = 64 << 20, 1 << 30
	dir := x.Paths.Data
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, err := freeSpace(dir)
	switch {
	case err != nil:
		return finding(name, InPart, "", "the free space of %s cannot be told: %v", dir, err)
	case free < least:
		return finding(name, Failed, "free some space: df -h "+dir, "%s has %s left; an authority there records nothing any more, so nothing runs", dir, size(free))
	case free < low:
		return finding(name, InPart, "free some space: df -h "+dir, "%s has %s left", dir, size(free))
	}
	return inForce(name, "%s has %s left", dir, size(free))
}

func size(n uint64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}

// enforcement sums up: what holds a hostile agent, not only a mistaken one.
func (x *exam) enforcement(checks []Check) (string, Check) {
	const name = "enforcement"
	out := func(check string) bool {
		return slices.ContainsFunc(checks, func(c Check) bool { return c.Name == check && c.State == InForce })
	}
	if out("database") && out("control-socket") && (out("memory") || !local(x.address)) {
		return "os-user, in part", finding(name, InPart, "",
			"the authority is out of this user's reach, so nobody here approves by its files. Commands still run as this user, and an agent that starts them without `vogt run` is not held")
	}
	return "advisory", finding(name, InPart, hardened,
		"what runs through `vogt run` waits, runs once and is recorded. That stops mistakes; it does not hold a program of this user that sets out to get around it")
}
