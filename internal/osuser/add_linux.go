package osuser

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"vogt/internal/config"
)

// host is a machine and the agent that it is about.
type host struct {
	tree
	spec Spec
}

func newHost(spec Spec) (*host, error) {
	spec, err := spec.complete()
	if err != nil {
		return nil, err
	}
	return &host{tree{spec.Machine.Root}, spec}, nil
}

// Add makes the agent's user with all that belongs to it, or nothing. Called
// again for a user that is there, it makes what is missing of the files that
// deny it other services, and changes nothing else. What an Add that was killed
// left is undone first.
//
// A user id is used up by every attempt, also one that fails.
func Add(ctx context.Context, spec Spec) (User, error) {
	m, err := newHost(spec)
	if err != nil {
		return User{}, err
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return User{}, err
	}
	defer unlock()
	j, err := m.openJournal(false)
	if err != nil {
		return User{}, err
	}
	if j != nil {
		defer j.close()
		if finished(j.entries) {
			return m.repair(ctx, j)
		}
		if _, err := m.undo(ctx, j, 0, discardEmpty); err != nil {
			return User{}, fmt.Errorf("osuser: an earlier attempt to add %s was interrupted, and could not be undone: %w", m.spec.Name, err)
		}
	}
	return m.add(ctx)
}

// lock makes the folder for ledger and journals, and excludes every other Add
// and Remove on this machine.
func (m *host) lock(ctx context.Context) (unlock func(), err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("osuser: users are made and removed by root; run the command with sudo")
	}
	missing, err := m.missing(m.journals())
	if err != nil {
		return nil, err
	}
	for _, p := range missing {
		mode := uint32(0o755) // agents pass through to their homes
		if p == m.journals() {
			mode = 0o700
		}
		if err := m.mkdir(p, mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	dir, err := m.folder(m.spec.Machine.State, rootOnly) // nobody else can put a link there
	if err != nil {
		return nil, err
	}
	dir.Close()
	l, err := config.AcquireLock(ctx, m.root+m.spec.Machine.State+"/osusers.lock")
	if err != nil {
		return nil, err
	}
	return l.Unlock, nil
}

// missing returns the folders on the way to p, and p, that are not there.
func (m *host) missing(p string) ([]string, error) {
	var list []string
	for ; p != "/"; p = path.Dir(p) {
		stat, there, err := m.lstat(p)
		if err != nil {
			return nil, err
		}
		if there && !isFolder(stat) {
			return nil, fmt.Errorf("osuser: %s is not a folder (links are not followed here)", p)
		}
		if there {
			break
		}
		list = append([]string{p}, list...)
	}
	return list, nil
}

func (m *host) add(ctx context.Context) (User, error) {
	if err := m.possible(ctx); err != nil {
		return User{}, err
	}
	steps, err := m.protections()
	if err != nil {
		return User{}, err
	}
	folders, err := m.missing(m.spec.Base)
	if err != nil {
		return User{}, err
	}
	uid, err := m.allot(func(id uint32) (string, error) { return m.taken(ctx, id) })
	if err != nil {
		return User{}, err
	}
	m.spec.Machine.at("ledger")
	// The user is made after everything that denies it something.
	steps = append([]step{{Kind: kindBegin, Name: m.spec.User, ID: uid, Path: m.spec.home()}}, steps...)
	steps = append(steps,
		step{Kind: kindGroup, Name: m.spec.User, ID: uid},
		step{Kind: kindUser, Name: m.spec.User, ID: uid, Path: m.spec.home(), Text: m.spec.Shell})
	for _, p := range folders {
		steps = append(steps, step{Kind: kindFolder, Path: p})
	}
	steps = append(steps, step{Kind: kindHome, Path: m.spec.home(), ID: uid}, step{Kind: kindComplete})

	j, err := m.openJournal(true)
	if err != nil {
		return User{}, err
	}
	defer j.close()
	if err := m.take(ctx, j, steps); err != nil {
		return User{}, err
	}
	return m.made(j), nil
}

// take takes steps, and if one fails, undoes those before it and its own.
func (m *host) take(ctx context.Context, j *journal, steps []step) error {
	from := len(j.entries)
	for _, s := range steps {
		err := ctx.Err()
		if err == nil {
			err = m.takeOne(ctx, j, s)
		}
		if err != nil {
			// A context that has ended must not leave half a user.
			if _, failed := m.undo(context.WithoutCancel(ctx), j, from, discardEmpty); failed != nil {
				return fmt.Errorf("%w; undoing the steps before it failed too (run the same command again to undo them): %w", err, failed)
			}
			return err
		}
	}
	return nil
}

func (m *host) takeOne(ctx context.Context, j *journal, s step) error {
	seq, err := j.intend(s)
	if err != nil {
		return err
	}
	m.spec.Machine.at("intended " + string(s.Kind))
	if err := m.do(ctx, s); err != nil {
		return err
	}
	m.spec.Machine.at("did " + string(s.Kind))
	if err := j.mark(seq, done); err != nil {
		return err
	}
	m.spec.Machine.at("done " + string(s.Kind))
	return nil
}

func (m *host) do(ctx context.Context, s step) error {
	switch s.Kind {
	case kindBegin, kindComplete:
		return nil
	case kindLine:
		if s.Fresh {
			if err := m.addLine(m.ownList(), s.Path); err != nil {
				return err
			}
		}
		return m.addLine(s.Path, s.Text)
	case kindFile:
		return m.create(s.Path, s.Text, 0o644, folderTrust(s.Path))
	case kindFolder:
		return m.mkdir(s.Path, 0o755)
	case kindReload:
		return m.reload(ctx)
	case kindGroup:
		return m.addGroup(ctx, s)
	case kindUser:
		return m.addUser(ctx, s)
	case kindHome:
		return m.makeHome(s)
	}
	return fmt.Errorf("osuser: the step %q is not known to this version", s.Kind)
}

// ownList is the file with the paths of files that were made for a line. They are
// not the agent's for whom they were made: others get lines in them too, and
// whoever is removed last takes the file away.
func (m *host) ownList() string { return m.spec.Machine.State + "/osusers.made" }

// folderTrust is what the folder of a file must be. That of polkit belongs to
// polkit's own user on some systems, who may do there as it likes anyway.
func folderTrust(p string) trust {
	if path.Dir(p) == polkitFolder {
		return anyOwner
	}
	return rootOnly
}

// possible looks for everything that must not be there yet.
func (m *host) possible(ctx context.Context) error {
	loginDefs, _, err := m.read("/etc/login.defs")
	if err != nil {
		return err
	}
	if err := outside(m.spec.Range, loginDefs); err != nil {
		return err
	}
	for _, database := range []string{"passwd", "group"} {
		known, err := m.known(ctx, database, m.spec.User)
		if err != nil {
			return err
		}
		if known {
			return fmt.Errorf("osuser: %s exists already in the database %s (getent %s %s), and was not made for this agent; choose another name", m.spec.User, database, database, m.spec.User)
		}
	}
	for _, p := range append(m.leftovers(), m.spec.home()) {
		_, there, err := m.lstat(p)
		if err != nil {
			return err
		}
		if there {
			return fmt.Errorf("osuser: %s is there already, perhaps from an earlier user of that name; look at it and move it away", p)
		}
	}
	for p := m.spec.Base; p != "/"; p = path.Dir(p) {
		stat, there, err := m.lstat(p)
		if err != nil {
			return err
		}
		if there && isFolder(stat) && stat.Mode&0o001 == 0 {
			return fmt.Errorf("osuser: the agent could not reach its home, because %s is closed to others (mode %04o); choose another folder, or run: chmod o+x %s", p, stat.Mode&0o7777, p)
		}
	}
	return nil
}

// makeHome makes the home with its folder for keys. It is root's until it is
// ready, so that nobody can interfere.
func (m *host) makeHome(s step) error {
	return m.in(s.Path, rootOnly, func(dir *os.File, name string) error {
		err := makeFolder(dir, name, file{mode: 0o700})
		if err == nil {
			err = furnish(dir, name, s.ID)
		}
		if err != nil {
			return fmt.Errorf("osuser: make the home %s: %w", s.Path, err)
		}
		return dir.Sync()
	})
}

func furnish(dir *os.File, name string, id uint32) error {
	own := file{mode: 0o700, uid: id, gid: id}
	open := func(at *os.File, name string) (*os.File, error) {
		fd, err := unix.Openat(int(at.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return os.NewFile(uintptr(fd), name), err
	}
	home, err := open(dir, name)
	if err != nil {
		return err
	}
	defer home.Close()
	if err := makeFolder(home, path.Dir(keyFolder), own); err != nil {
		return err
	}
	config, err := open(home, path.Dir(keyFolder))
	if err != nil {
		return err
	}
	defer config.Close()
	if err := makeFolder(config, path.Base(keyFolder), own); err != nil {
		return err
	}
	return errors.Join(config.Sync(), home.Sync(), unix.Fchown(int(home.Fd()), int(id), int(id)))
}

// repair is Add for a user that is there.
func (m *host) repair(ctx context.Context, j *journal) (User, error) {
	made := find(j.entries, kindUser, nil)
	if made == nil || made.Text != m.spec.Shell {
		return User{}, fmt.Errorf("osuser: %s was added with other settings; remove it first: vogt agent user remove %s", m.spec.Name, m.spec.Name)
	}
	own, _, err := m.account(made.ID)
	if err != nil {
		return User{}, err
	}
	if own == nil || own.uid != made.ID {
		return User{}, fmt.Errorf("osuser: the user %s with the id %d was made, but is not there any more; clean up with: vogt agent user remove %s", m.spec.User, made.ID, m.spec.Name)
	}
	steps, err := m.protections()
	if err != nil {
		return User{}, err
	}
	if err := m.take(ctx, j, steps); err != nil {
		return User{}, err
	}
	return m.made(j), nil
}

// made is the user of a journal.
func (m *host) made(j *journal) User {
	u := m.spec.user(j.entries[0].ID)
	slice, unit := unitFolder+"/"+m.spec.slice(), unitFolder+"/"+m.spec.unit()
	for _, e := range j.entries {
		switch {
		case e.Kind != kindFile || e.state == undone:
		case e.Path == slice:
			u.Slice = path.Base(slice)
		case e.Path == unit:
			u.Unit = path.Base(unit)
		}
	}
	return u
}
