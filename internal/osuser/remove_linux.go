package osuser

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
)

// discardEmpty is for a home that was just made: it goes if nothing is in it.
const discardEmpty HomeChoice = -1

// archiveName is the folder beside the homes for those of removed agents. No
// agent can have that name.
const archiveName = ".archive"

// Remove ends the agent's processes and undoes what Add did, backwards. What
// somebody changed since stays, and is named. For a user that was removed
// already, or whose making was interrupted, it does what is left to do.
func Remove(ctx context.Context, spec Spec, home HomeChoice) (Removal, error) {
	m, err := newHost(spec)
	if err != nil {
		return Removal{}, err
	}
	if home != KeepHome && home != ArchiveHome {
		return Removal{}, errors.New("osuser: say what is to become of the home: keep it where it is, or archive it")
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return Removal{}, err
	}
	defer unlock()
	l, err := m.ledger()
	if err != nil {
		return Removal{}, err
	}
	j, err := m.openJournal(false)
	if err != nil {
		return Removal{}, err
	}
	if j == nil {
		id, known := l.last(m.spec.User)
		if !known {
			return Removal{}, ErrUnknown
		}
		at, err := m.homeNow(id)
		return Removal{Home: at}, err
	}
	defer j.close()
	if len(j.entries) > 0 {
		id := j.entries[0].ID
		if !l.knows(id, m.spec.User) {
			return Removal{}, m.strange(id)
		}
		if err := m.end(ctx, id); err != nil {
			return Removal{}, err
		}
	}
	return m.undo(ctx, j, 0, home)
}

func (m *host) strange(id uint32) error {
	return fmt.Errorf("osuser: the journal %s names the user id %d, which the ledger %s never gave to %s; nothing is done to that id", m.journalPath(), id, m.ledgerPath(), m.spec.User)
}

// end stops what runs, and keeps systemd from starting it again.
func (m *host) end(ctx context.Context, id uint32) error {
	if m.live() {
		// It fails where the slice was never started, which is well.
		if err := m.run(ctx, m.spec.Machine.Tools.Systemctl, "stop", m.spec.slice()); ctx.Err() != nil {
			return err
		}
	}
	return m.kill(ctx, id)
}

// undo undoes the journal's steps from one on, backwards. When all are undone,
// the journal goes, too.
//
// That a step is undone is written down only for tidiness: each looks at what
// is there, and may be repeated. So on a full disk what can be undone is.
func (m *host) undo(ctx context.Context, j *journal, from int, home HomeChoice) (Removal, error) {
	var r Removal
	var reload bool
	for seq := len(j.entries) - 1; seq >= from; seq-- {
		e := j.entries[seq]
		if e.Kind == kindHome && e.state == undone {
			at, err := m.homeNow(e.ID)
			if err != nil {
				return r, err
			}
			r.Home = at
		}
		if e.state == undone {
			continue
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
		choice := home
		if e.state == intended {
			choice = discardEmpty // it was never handed over
		}
		left, err := m.undoOne(ctx, e.step, choice, &r)
		if err != nil {
			return r, fmt.Errorf("osuser: undo %s: %w", e.step, err)
		}
		if left != "" {
			r.Left = append(r.Left, left)
		}
		reload = reload || e.Kind == kindReload
		m.spec.Machine.at("undid " + string(e.Kind))
		if err := j.mark(seq, undone); err == nil {
			m.spec.Machine.at("undone " + string(e.Kind))
		} else if from > 0 {
			return r, err
		}
	}
	if reload {
		if err := m.reload(ctx); err != nil {
			r.Left = append(r.Left, "what was removed may be in force until the next start: "+sentence(err))
		}
	}
	if from > 0 {
		return r, nil
	}
	return r, m.remove(j.path, rootOnly)
}

// undoOne undoes a step that may not have happened.
func (m *host) undoOne(ctx context.Context, s step, home HomeChoice, r *Removal) (left string, err error) {
	switch s.Kind {
	case kindBegin, kindComplete, kindReload:
		return "", nil
	case kindLine:
		return m.dropOwnLine(s)
	case kindFile:
		return m.dropFile(s)
	case kindFolder:
		if err := m.rmdir(s.Path, rootOnly); !errors.Is(err, errNotEmpty) {
			return "", err
		}
		return "", nil // others use it by now
	case kindGroup:
		return m.dropGroup(ctx, s)
	case kindUser:
		return m.dropUser(ctx, s)
	case kindHome:
		r.Home, left, err = m.leaveHome(s, home)
		return left, err
	}
	return "", fmt.Errorf("the step %q is not known to this version", s.Kind)
}

func (m *host) dropOwnLine(s step) (left string, err error) {
	if err := m.remove(beside(s.Path), rootOnly); err != nil {
		return "", err
	}
	if _, _, err := m.read(s.Path); err != nil {
		return sentence(err), nil // a link or a folder by now: not what the line was put into
	}
	list, _, err := m.read(m.ownList())
	if err != nil {
		return "", err
	}
	gone, err := m.dropLine(s, hasLine(list, s.Path))
	if err == nil && gone && hasLine(list, s.Path) {
		// On a full disk the path stays in the list, and does no harm: only a file
		// that is empty without our lines would go.
		_, _ = m.dropLine(step{Path: m.ownList(), Text: s.Path}, true)
	}
	return "", err
}

// beside is the temporary file of a path.
func beside(p string) string { return path.Dir(p) + "/" + temporary(path.Base(p)) }

func (m *host) dropFile(s step) (left string, err error) {
	need := folderTrust(s.Path)
	if err := m.remove(beside(s.Path), need); err != nil {
		return "", err
	}
	data, there, err := m.read(s.Path)
	if err != nil {
		return sentence(err), nil // a link or a folder by now: not what was made
	}
	if !there {
		return "", nil
	}
	if string(data) != s.Text {
		return s.Path + " was changed since it was made", nil
	}
	return "", m.remove(s.Path, need)
}

func (m *host) archived(id uint32) string {
	return m.spec.Base + "/" + archiveName + "/" + m.spec.Name + "-" + strconv.Itoa(int(id))
}

// homeNow is where the home of a removed user is, or "".
func (m *host) homeNow(id uint32) (string, error) {
	for _, p := range []string{m.archived(id), m.spec.home()} {
		stat, there, err := m.lstat(p)
		if err != nil {
			return "", err
		}
		if there && stat.Uid == id {
			return p, nil
		}
	}
	return "", nil
}

// leaveHome does with the home what was chosen, and says where it is then.
func (m *host) leaveHome(s step, choice HomeChoice) (at, left string, err error) {
	stat, there, err := m.lstat(s.Path)
	if err != nil {
		return "", "", err
	}
	if !there {
		at, err := m.homeNow(s.ID)
		return at, "", err
	}
	// Before it was ready it was root's.
	unready := choice == discardEmpty && stat.Uid == 0
	if !isFolder(stat) || stat.Uid != s.ID && !unready {
		return "", fmt.Sprintf("%s is not the folder of user id %d that was made", s.Path, s.ID), nil
	}
	switch choice {
	case discardEmpty:
		for _, p := range []string{s.Path + "/" + keyFolder, s.Path + "/" + path.Dir(keyFolder), s.Path} {
			err := m.rmdir(p, anyOwner)
			if errors.Is(err, errNotEmpty) {
				return s.Path, s.Path + " has something in it already", nil
			}
			if err != nil {
				return "", "", err
			}
		}
		return "", "", nil
	case ArchiveHome:
		folder := path.Dir(m.archived(s.ID))
		if missing, err := m.missing(folder); err != nil {
			return "", "", err
		} else if slices.Contains(missing, folder) {
			if err := m.mkdir(folder, 0o700); err != nil {
				return "", "", err
			}
		}
		return m.archived(s.ID), "", m.move(s.Path, m.archived(s.ID))
	case KeepHome, HomeUndecided:
	}
	return s.Path, "", nil
}
