package osuser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Check tests every promise about the agent's user against the machine. It
// changes nothing. Without the right to read what only root can, the promises
// that need it are reported as broken, with that reason.
func Check(ctx context.Context, spec Spec) []Finding {
	m, err := newHost(spec)
	if err != nil {
		return []Finding{broken("user", err, "")}
	}
	l, err := m.ledger()
	if err != nil {
		return []Finding{broken("ledger", err, "run vogt doctor as root")}
	}
	entries, err := m.entries()
	if err != nil {
		return []Finding{broken("journal", err, "run vogt doctor as root")}
	}
	if len(entries) == 0 {
		return m.checkRemoved(l)
	}
	id := entries[0].ID
	findings := []Finding{m.checkLedger(l, id)}
	if !findings[0].Kept {
		return findings
	}
	if !finished(entries) {
		return append(findings, Finding{"journal", false,
			fmt.Sprintf("Adding or removing the user %s was interrupted.", m.spec.User),
			fmt.Sprintf("finish it: vogt agent user add %s, or vogt agent user remove %s", m.spec.Name, m.spec.Name)})
	}
	return append(findings,
		m.checkUser(entries), m.checkGroup(id), m.checkPassword(), m.checkGroups(ctx, id), m.checkSubordinates(id),
		m.checkHome("home", m.spec.home(), id), m.checkHome("keys", m.spec.home()+"/"+keyFolder, id), m.checkForeign(ctx, id),
		m.checkScheduler(schedulers[0], id), m.checkScheduler(schedulers[1], id), m.checkLinger(), m.checkSSH(),
		m.checkFiles(entries), m.checkProcesses(id))
}

// broken is a promise that could not be tested, or is broken for a reason.
func broken(promise string, err error, remedy string) Finding {
	return Finding{promise, false, sentence(err), remedy}
}

// result is kept, unless something is wrong.
func result(promise, kept, wrong, remedy string) Finding {
	if wrong == "" {
		return Finding{Promise: promise, Kept: true, Text: kept}
	}
	return Finding{promise, false, wrong, remedy}
}

func (m *host) checkLedger(l ledger, id uint32) Finding {
	var wrong string
	if !l.knows(id, m.spec.User) {
		wrong = sentence(m.strange(id))
	}
	return result("ledger", fmt.Sprintf("The user id %d was given to %s and to nobody else.", id, m.spec.User), wrong,
		"restore ledger and journal from a copy of the same time")
}

// checkRemoved is for an agent without a user, who may have had one.
func (m *host) checkRemoved(l ledger) []Finding {
	id, known := l.last(m.spec.User)
	if !known {
		return []Finding{broken("user", ErrUnknown, "vogt agent user add "+m.spec.Name+"")}
	}
	running, err := m.processes(id)
	if err != nil {
		return []Finding{broken("removed", err, "")}
	}
	own, others, err := m.account(id)
	if err != nil {
		return []Finding{broken("removed", err, "")}
	}
	if own != nil && own.uid == id {
		others = append(others, own.name)
	}
	var wrong, remedy string
	switch {
	case len(others) > 0:
		wrong = fmt.Sprintf("The user id %d of the removed user belongs to %s now, with all that the agent left.", id, strings.Join(others, " and "))
		remedy = "give them another id: usermod --uid ID " + others[0]
	case len(running) > 0:
		wrong = fmt.Sprintf("%d processes of the removed user still run, among them %d.", len(running), running[0].pid)
		remedy = "vogt agent user remove " + m.spec.Name
	}
	return []Finding{result("removed", fmt.Sprintf("The user %s was removed, and its id %d belongs to nobody.", m.spec.User, id), wrong, remedy)}
}

func (m *host) checkUser(entries []entry) Finding {
	made := find(entries, kindUser, nil)
	if made == nil {
		return Finding{"user", false, "The user was removed, but not all that belongs to it.", "vogt agent user remove " + m.spec.Name}
	}
	id := made.ID
	own, others, err := m.account(id)
	if err != nil {
		return broken("user", err, "")
	}
	var wrong string
	switch {
	case own == nil:
		wrong = "The user is not there any more."
	case own.uid != id || own.gid != id:
		wrong = fmt.Sprintf("The user has the ids %d and %d, but was made with %d.", own.uid, own.gid, id)
	case own.home != made.Path:
		wrong = fmt.Sprintf("The user's home is %s, but %s was made.", own.home, made.Path)
	case own.shell != made.Text:
		wrong = fmt.Sprintf("The user's shell is %s, but it was made with %s.", own.shell, made.Text)
	case len(others) > 0:
		wrong = fmt.Sprintf("The user id %d belongs to %s, too.", id, strings.Join(others, " and "))
	}
	return result("user", fmt.Sprintf("The user %s has the id %d, which only it has.", m.spec.User, id), wrong,
		fmt.Sprintf("look at the line in /etc/passwd; to begin anew: vogt agent user remove %s && vogt agent user add %s", m.spec.Name, m.spec.Name))
}

func (m *host) checkGroup(id uint32) Finding {
	all, err := m.groups()
	if err != nil {
		return broken("group", err, "")
	}
	users, err := m.accounts()
	if err != nil {
		return broken("group", err, "")
	}
	wrong, remedy := fmt.Sprintf("The user's own group %s with the id %d is not there.", m.spec.User, id), fmt.Sprintf("groupadd --gid %d %s", id, m.spec.User)
	for _, g := range all {
		if g.name != m.spec.User || g.gid != id {
			continue
		}
		wrong = ""
		members := g.members
		for _, u := range users {
			if u.gid == id && u.name != m.spec.User {
				members = append(members, u.name)
			}
		}
		if len(members) > 0 {
			wrong = fmt.Sprintf("The user's own group has other members: %s.", strings.Join(members, ", "))
			remedy = fmt.Sprintf("gpasswd --delete %s %s", members[0], m.spec.User)
		}
	}
	return result("group", "Its group belongs to it alone.", wrong, remedy)
}

func (m *host) checkPassword() Finding {
	const promise = "password"
	lock := "passwd --lock " + m.spec.User
	field, there, err := m.password()
	switch {
	case err != nil:
		return broken(promise, err, "run vogt doctor as root")
	case !there:
		return Finding{promise, false, "The user has no line in /etc/shadow, so its password may be in /etc/passwd or empty.", lock}
	case field == "" || field[0] != '!' && field[0] != '*':
		return Finding{promise, false, "The user has a password that is not locked.", lock}
	}
	return Finding{Promise: promise, Kept: true, Text: "The user has no password that anybody could give."}
}

func (m *host) checkGroups(ctx context.Context, id uint32) Finding {
	all, err := m.groups()
	if err != nil {
		return broken("groups", err, "")
	}
	var in []string
	for _, g := range all {
		if slices.Contains(g.members, m.spec.User) {
			in = append(in, g.name)
		}
	}
	// Others than the files may put users into groups (nss).
	if m.root == "" && len(in) == 0 {
		out, err := exec.CommandContext(ctx, m.spec.Machine.Tools.ID, "-G", m.spec.User).Output()
		if err != nil {
			return broken("groups", fmt.Errorf("%s -G %s: %w", m.spec.Machine.Tools.ID, m.spec.User, err), "")
		}
		for _, gid := range strings.Fields(string(out)) {
			if gid != strconv.Itoa(int(id)) {
				in = append(in, gid)
			}
		}
	}
	var wrong, remedy string
	if len(in) > 0 {
		wrong = fmt.Sprintf("The user is in other groups: %s.", strings.Join(in, ", "))
		remedy = fmt.Sprintf("gpasswd --delete %s %s", m.spec.User, in[0])
	}
	return result("groups", "The user is in no group but its own.", wrong, remedy)
}

func (m *host) checkSubordinates(id uint32) Finding {
	var wrong, remedy string
	for _, p := range []string{"/etc/subuid", "/etc/subgid"} {
		all, err := m.subordinates(p)
		if err != nil {
			return broken("subordinate-ids", err, "")
		}
		for _, s := range all {
			switch {
			case s.owner == m.spec.User || s.owner == strconv.Itoa(int(id)):
				wrong = fmt.Sprintf("The user has ids of its own for namespaces (%s in %s), under which it could hide files and processes.", s.Range, p)
			case s.has(id):
				wrong = fmt.Sprintf("The user %s may act as the id %d in namespaces (%s).", s.owner, id, p)
			default:
				continue
			}
			remedy = fmt.Sprintf("take the line of %s out of %s", s.owner, p)
		}
	}
	return result("subordinate-ids", "The user has no subordinate ids, and nobody has its id as one.", wrong, remedy)
}

func (m *host) checkHome(promise, p string, id uint32) Finding {
	stat, there, err := m.lstat(p)
	if err != nil {
		return broken(promise, err, "run vogt doctor as root")
	}
	var wrong string
	remedy := fmt.Sprintf("chown %d:%d %s && chmod 0700 %s", id, id, p, p)
	switch {
	case !there:
		wrong = p + " is not there."
		remedy = fmt.Sprintf("install -d -m 0700 -o %d -g %d %s", id, id, p)
	case !isFolder(stat):
		wrong, remedy = p+" is not a folder.", "look at it and put the folder back"
	case stat.Uid != id || stat.Gid != id:
		wrong = fmt.Sprintf("%s belongs to the ids %d and %d.", p, stat.Uid, stat.Gid)
	case stat.Mode&0o7777 != 0o700:
		wrong = fmt.Sprintf("%s has the mode %04o, not 0700.", p, stat.Mode&0o7777)
	}
	return result(promise, p+" is closed to everybody else.", wrong, remedy)
}

// mostFiles bounds how much of a home is looked at.
const mostFiles = 200_000

// checkForeign looks for files of others in the home: they may be left from what
// ran as another user, and root's are a way to be deceived.
func (m *host) checkForeign(ctx context.Context, id uint32) Finding {
	const promise = "foreign-files"
	home, err := m.folder(m.spec.home(), anyOwner)
	if err != nil {
		return broken(promise, err, "run vogt doctor as root")
	}
	w := &walk{ctx: ctx, id: id}
	err = w.folder(home, m.spec.home(), 0)
	switch {
	case err != nil:
		return broken(promise, err, "look through the home by hand: find "+m.spec.home()+" ! -uid "+strconv.Itoa(int(id)))
	case w.first != "":
		return Finding{promise, false, fmt.Sprintf("%d files in the home belong to others, among them %q.", w.foreign, w.first),
			fmt.Sprintf("look at them: find %s ! -uid %d -ls", m.spec.home(), id)}
	case w.seen >= mostFiles:
		return Finding{Promise: promise, Kept: true, Text: fmt.Sprintf("The first %d files in the home belong to the user; the others were not looked at.", mostFiles)}
	}
	return Finding{Promise: promise, Kept: true, Text: "Everything in the home belongs to the user."}
}

// walk goes through a folder whose owner may change it meanwhile: each step is
// taken from an open folder, and none through a link.
type walk struct {
	ctx           context.Context
	id            uint32
	seen, foreign int
	first         string
}

func (w *walk) folder(dir *os.File, p string, depth int) error {
	defer dir.Close()
	const deepest = 100 // each level holds a descriptor
	for w.seen < mostFiles {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		const some = 256
		names, err := dir.Readdirnames(some)
		for _, name := range names {
			w.seen++
			var stat unix.Stat_t
			if unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // it is gone
			}
			if stat.Uid != w.id {
				w.foreign++
				if w.first == "" {
					w.first = p + "/" + name
				}
			}
			if !isFolder(stat) {
				continue
			}
			if depth == deepest {
				return fmt.Errorf("%s is nested too deeply to look through", p)
			}
			fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				continue // it is gone, or something else by now
			}
			if err := w.folder(os.NewFile(uintptr(fd), name), p+"/"+name, depth+1); err != nil {
				return err
			}
		}
		if err != nil {
			return nil // the end of the folder
		}
	}
	return nil
}

func (m *host) checkScheduler(s scheduler, id uint32) Finding {
	yes, _, remedy, err := m.denied(s)
	if err != nil {
		return broken(s.name, err, "")
	}
	if !yes {
		return Finding{s.name, false, fmt.Sprintf("%s would run commands for the user later.", s.name), remedy}
	}
	var found []string
	switch s.name {
	case "cron":
		for _, p := range m.leftovers() {
			if _, there, err := m.lstat(p); err != nil {
				return broken(s.name, err, "run vogt doctor as root")
			} else if there && path.Dir(p) != "/var/lib/systemd/linger" {
				found = append(found, p)
			}
		}
	case "at":
		for _, folder := range []string{"/var/spool/cron/atjobs", "/var/spool/at"} {
			names, err := m.names(folder)
			if err != nil {
				return broken(s.name, err, "run vogt doctor as root")
			}
			for _, name := range names {
				if stat, there, err := m.lstat(folder + "/" + name); err == nil && there && stat.Uid == id {
					found = append(found, folder+"/"+name)
				}
			}
		}
	}
	if len(found) > 0 {
		return Finding{s.name, false, fmt.Sprintf("The user has commands that %s runs later: %s.", s.name, strings.Join(found, ", ")), "look at it, then: rm " + found[0]}
	}
	return Finding{Promise: s.name, Kept: true, Text: s.name + " runs nothing for the user."}
}

func (m *host) checkLinger() Finding {
	p := "/var/lib/systemd/linger/" + m.spec.User
	_, there, err := m.lstat(p)
	if err != nil {
		return broken("linger", err, "")
	}
	var wrong string
	if there {
		wrong = "The user's services start at boot and stay after its last session."
	}
	return result("linger", "The user's services end with its last session.", wrong, "loginctl disable-linger "+m.spec.User)
}

// checkSSH tests two things: that sshd refuses the user, and that there are no
// keys to log in with, should it not.
func (m *host) checkSSH() Finding {
	for _, name := range []string{"authorized_keys", "authorized_keys2"} {
		p := m.spec.home() + "/.ssh/" + name
		if _, there, err := m.lstat(p); err != nil {
			return broken("ssh", err, "look at it: "+m.spec.home()+"/.ssh")
		} else if there {
			return Finding{"ssh", false, p + " is there, with keys that may log in as the user.", "look at it, then: rm " + p}
		}
	}
	_, sshd, err := m.lstat(sshdConfig)
	if err != nil {
		return broken("ssh", err, "")
	}
	if !sshd {
		return Finding{Promise: "ssh", Kept: true, Text: "There is no sshd here, and no key to log in with."}
	}
	f := m.sshdFile()
	if err := m.sshdReads(f); err != nil {
		return broken("ssh", err, "put the line that is named there")
	}
	text, _, err := m.read(sshdConfig)
	if err != nil {
		return broken("ssh", err, "")
	}
	denied := false
	for _, p := range []string{sshdConfig, f.Path} {
		if p != sshdConfig {
			if text, _, err = m.read(p); err != nil {
				return broken("ssh", err, "")
			}
		}
		_, names := sshdGlobal(string(text))
		denied = denied || slices.Contains(names, m.spec.User)
	}
	var wrong string
	if !denied {
		wrong = "sshd would let the user log in, and use sftp, if it had a key."
	}
	return result("ssh", "sshd refuses the user, for sftp too, and there is no key to log in with.", wrong, m.again())
}

// again is the remedy for what Add makes anew.
func (m *host) again() string { return "vogt agent user add " + m.spec.Name + "" }

// checkFiles compares the files that were made with what they were.
func (m *host) checkFiles(entries []entry) Finding {
	for _, e := range entries {
		if e.Kind != kindFile || e.state == undone {
			continue
		}
		data, there, err := m.read(e.Path)
		switch {
		case err != nil:
			return broken("files", err, "look at it, and move it away")
		case !there:
			return Finding{"files", false, e.Path + " is not there any more.", m.again()}
		case string(data) != e.Text:
			return Finding{"files", false, e.Path + " was changed since it was made.", "look at it; to have it anew, move it away, then: " + m.again()}
		}
	}
	missing, err := m.ownFiles()
	if err != nil {
		return broken("files", err, "")
	}
	for _, f := range missing {
		if find(entries, kindFile, func(e entry) bool { return e.Path == f.Path }) == nil {
			return Finding{"files", false, f.Path + " was not made, since what reads it was installed later.", m.again()}
		}
	}
	return Finding{Promise: "files", Kept: true, Text: "What denies and limits the user is as it was made."}
}

// checkProcesses looks whether the user's processes are in its slice, if there
// is one: only there its limits hold.
func (m *host) checkProcesses(id uint32) Finding {
	const promise = "processes"
	all, err := m.processes(id)
	if err != nil {
		return broken(promise, err, "")
	}
	slice, err := m.cgroup()
	if err != nil {
		return broken(promise, err, "")
	}
	inside, err := members(slice)
	if err != nil {
		return broken(promise, err, "")
	}
	var stopped int
	var outside []int
	for _, p := range all {
		if p.stopped {
			stopped++
		}
		if !inside[p.pid] {
			outside = append(outside, p.pid)
		}
	}
	var wrong, remedy string
	if slice != "" && len(outside) > 0 {
		wrong = fmt.Sprintf("%d of %d processes of the user run outside of its slice, where its limits do not hold, among them %d.", len(outside), len(all), outside[0])
		remedy = "end them, and start the agent by its unit: kill " + strconv.Itoa(outside[0])
	}
	return result(promise, fmt.Sprintf("%d processes of the user are there; %d are stopped.", len(all), stopped), wrong, remedy)
}
