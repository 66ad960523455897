package osuser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// account is a line of passwd(5).
type account struct {
	name, home, shell string
	uid, gid          uint32
}

func parseAccounts(text []byte) []account {
	var all []account
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimRight(line, "\n"), ":")
		if len(f) < 7 {
			continue
		}
		uid, err1 := strconv.ParseUint(f[2], 10, 32)
		gid, err2 := strconv.ParseUint(f[3], 10, 32)
		if err1 != nil || err2 != nil {
			continue
		}
		all = append(all, account{name: f[0], home: f[5], shell: f[6], uid: uint32(uid), gid: uint32(gid)})
	}
	return all
}

// group is a line of group(5).
type group struct {
	name    string
	gid     uint32
	members []string
}

func parseGroups(text []byte) []group {
	var all []group
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimRight(line, "\n"), ":")
		if len(f) < 4 {
			continue
		}
		gid, err := strconv.ParseUint(f[2], 10, 32)
		if err != nil {
			continue
		}
		g := group{name: f[0], gid: uint32(gid)}
		for member := range strings.SplitSeq(f[3], ",") {
			if member != "" {
				g.members = append(g.members, member)
			}
		}
		all = append(all, g)
	}
	return all
}

func (m *host) accounts() ([]account, error) {
	text, _, err := m.read("/etc/passwd")
	return parseAccounts(text), err
}

func (m *host) groups() ([]group, error) {
	text, _, err := m.read("/etc/group")
	return parseGroups(text), err
}

// account finds the user's line, and every other with the id.
func (m *host) account(id uint32) (own *account, others []string, err error) {
	all, err := m.accounts()
	for i, a := range all {
		if a.name == m.spec.User {
			own = &all[i]
		} else if a.uid == id {
			others = append(others, a.name)
		}
	}
	return own, others, err
}

// password returns the second field of the user's line in shadow(5).
func (m *host) password() (field string, there bool, err error) {
	text, _, err := m.read("/etc/shadow")
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ":"); len(f) > 2 && f[0] == m.spec.User {
			return f[1], true, nil
		}
	}
	return "", false, err
}

// subordinate is a line of subuid(5) or subgid(5).
type subordinate struct {
	owner string
	Range
}

func (m *host) subordinates(p string) ([]subordinate, error) {
	text, _, err := m.read(p)
	var all []subordinate
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(f[1], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		if err1 != nil || err2 != nil || count == 0 {
			continue
		}
		all = append(all, subordinate{f[0], Range{uint32(first), uint32(min(first+count-1, 1<<32-1))}})
	}
	return all, err
}

// loginRanges are the ranges in login.defs(5) from which others are given ids,
// with what shadow assumes where nothing is written.
var loginRanges = []struct {
	min, max string
	assumed  Range
}{
	{"UID_MIN", "UID_MAX", Range{1000, 60000}}, {"GID_MIN", "GID_MAX", Range{1000, 60000}},
	{"SYS_UID_MIN", "SYS_UID_MAX", Range{101, 999}}, {"SYS_GID_MIN", "SYS_GID_MAX", Range{101, 999}},
	{"SUB_UID_MIN", "SUB_UID_MAX", Range{100000, 600100000}}, {"SUB_GID_MIN", "SUB_GID_MAX", Range{100000, 600100000}},
}

// outside holds a range of ids to login.defs: what it gives to others would be
// given twice.
func outside(r Range, loginDefs []byte) error {
	values := make(map[string]uint32)
	for line := range strings.Lines(string(loginDefs)) {
		words := strings.Fields(line)
		if len(words) < 2 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if n, err := strconv.ParseUint(words[1], 0, 32); err == nil {
			values[words[0]] = uint32(n)
		}
	}
	for _, known := range loginRanges {
		other := known.assumed
		if n, ok := values[known.min]; ok {
			other.First = n
		}
		if n, ok := values[known.max]; ok {
			other.Last = n
		}
		if r.overlaps(other) {
			return fmt.Errorf("osuser: the range of user ids %s touches %s-%s (%s) of /etc/login.defs, from which others are given ids; choose another range", r, known.min, known.max, other)
		}
	}
	return nil
}

// known asks the machine's databases of users or groups for a name or an id:
// its files and, on the real machine, all that nss knows (LDAP, systemd).
func (m *host) known(ctx context.Context, database, key string) (bool, error) {
	var found bool
	switch database {
	case "passwd":
		all, err := m.accounts()
		if err != nil {
			return false, err
		}
		found = slices.ContainsFunc(all, func(a account) bool { return a.name == key || strconv.Itoa(int(a.uid)) == key })
	case "group":
		all, err := m.groups()
		if err != nil {
			return false, err
		}
		found = slices.ContainsFunc(all, func(g group) bool { return g.name == key || strconv.Itoa(int(g.gid)) == key })
	}
	if found || m.root != "" {
		return found, nil
	}
	err := m.run(ctx, m.spec.Machine.Tools.Getent, database, key)
	var exit *exec.ExitError
	const missing = 2 // getent(1)
	if errors.As(err, &exit) && exit.ExitCode() == missing {
		return false, nil
	}
	return err == nil, err
}

// lingering are folders in which something of a removed user may lie. Looking
// through every file of the machine would take too long; the ledger is what
// holds, and this finds ids that others used before there was a ledger.
var lingering = []string{"/home", "/tmp", "/var/tmp", "/dev/shm", "/run/user", "/var/mail", "/var/lib",
	"/var/spool/cron", "/var/spool/cron/crontabs", "/var/spool/cron/atjobs", "/var/spool/at", "/var/lib/systemd/linger"}

// taken says who has an id, or nothing.
func (m *host) taken(ctx context.Context, id uint32) (string, error) {
	key := strconv.Itoa(int(id))
	for _, database := range []string{"passwd", "group"} {
		if known, err := m.known(ctx, database, key); known || err != nil {
			return "the database " + database, err
		}
	}
	for _, p := range []string{"/etc/subuid", "/etc/subgid"} {
		all, err := m.subordinates(p)
		if err != nil {
			return "", err
		}
		for _, s := range all {
			if s.has(id) {
				return s.owner + " in " + p, nil
			}
		}
	}
	running, err := m.processes(id)
	if err != nil {
		return "", err
	}
	if len(running) > 0 {
		return fmt.Sprintf("the process %d", running[0].pid), nil
	}
	for _, p := range append(lingering[:len(lingering):len(lingering)], m.spec.Base) {
		names, err := m.names(p)
		if err != nil {
			continue // behind a link, or not a folder: nothing that could be told apart here
		}
		for _, name := range names {
			if stat, there, err := m.lstat(p + "/" + name); err == nil && there && ownedBy(stat, id) {
				return p + "/" + name, nil
			}
		}
	}
	return "", nil
}

// run starts a program of the machine and waits for it. A program that has been
// started is not interrupted: what it leaves half done could not be undone.
func (m *host) run(ctx context.Context, program string, args ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("osuser: %s is not installed (Debian: apt-get install passwd libc-bin)", program)
	}
	if err != nil {
		const most = 500
		words := strings.Join(strings.Fields(said.String()), " ")
		return fmt.Errorf("osuser: %s: %w: %s", program, err, words[:min(len(words), most)])
	}
	return nil
}

// shadow runs one of the tools that change users and groups.
func (m *host) shadow(ctx context.Context, program string, args ...string) error {
	if m.root != "" {
		args = append([]string{"--prefix", m.root}, args...)
	}
	return m.run(ctx, program, args...)
}

func (m *host) addGroup(ctx context.Context, s step) error {
	return m.shadow(ctx, m.spec.Machine.Tools.Groupadd, "--gid", strconv.Itoa(int(s.ID)), s.Name)
}

// addUser makes the user, and looks whether the tool did what it was asked to:
// hooks and settings of the distribution have a say in it.
func (m *host) addUser(ctx context.Context, s step) error {
	id := strconv.Itoa(int(s.ID))
	err := m.shadow(ctx, m.spec.Machine.Tools.Useradd, "--system", "--no-log-init", "--no-create-home", "--no-user-group",
		"--uid", id, "--gid", id, "--home-dir", s.Path, "--shell", s.Text, "--comment", "Vogt agent "+m.spec.Name,
		"-K", "SUB_UID_COUNT=0", "-K", "SUB_GID_COUNT=0", s.Name)
	if err != nil {
		return err
	}
	own, others, err := m.account(s.ID)
	if err != nil {
		return err
	}
	if own == nil || own.uid != s.ID || own.gid != s.ID || own.home != s.Path || own.shell != s.Text || len(others) > 0 {
		return fmt.Errorf("osuser: %s did not make the user %s as asked; see /etc/passwd and /etc/shadow-maint", m.spec.Machine.Tools.Useradd, s.Name)
	}
	for _, f := range []Finding{m.checkPassword(), m.checkGroups(ctx, s.ID), m.checkSubordinates(s.ID)} {
		if !f.Kept {
			return fmt.Errorf("osuser: %s made the user %s otherwise than asked: %s", m.spec.Machine.Tools.Useradd, s.Name, f.Text)
		}
	}
	return nil
}

// dropUser removes the user if it is still the one that was made.
func (m *host) dropUser(ctx context.Context, s step) (left string, err error) {
	own, _, err := m.account(s.ID)
	if err != nil || own == nil {
		return "", err
	}
	if own.uid != s.ID {
		return fmt.Sprintf("the user %s has the id %d now, not %d", s.Name, own.uid, s.ID), nil
	}
	return "", m.shadow(ctx, m.spec.Machine.Tools.Userdel, s.Name)
}

// dropGroup removes the group if it is still the one that was made. Userdel has
// often done so.
func (m *host) dropGroup(ctx context.Context, s step) (left string, err error) {
	all, err := m.groups()
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(all, func(g group) bool { return g.name == s.Name })
	if i < 0 {
		return "", nil
	}
	if all[i].gid != s.ID {
		return fmt.Sprintf("the group %s has the id %d now, not %d", s.Name, all[i].gid, s.ID), nil
	}
	if len(all[i].members) > 0 {
		return fmt.Sprintf("the group %s has members now: %s", s.Name, strings.Join(all[i].members, ", ")), nil
	}
	users, err := m.accounts()
	if err != nil {
		return "", err
	}
	for _, u := range users {
		if u.gid == s.ID {
			return fmt.Sprintf("the group %s is the primary group of %s now", s.Name, u.name), nil
		}
	}
	return "", m.shadow(ctx, m.spec.Machine.Tools.Groupdel, s.Name)
}
