package osuser

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ledger is every user id that was ever given, in the order of giving. Each line
// is an id, the user's name, and when. An id that stands here is never given
// again: files, messages and processes of a removed agent may outlive it, and
// would belong to whoever got the id.
type ledger []given

type given struct {
	id         uint32
	name, when string
}

// ledgerName is the ledger's file in the state folder.
const ledgerName = "uids"

func parseLedger(text string) (ledger, error) {
	var l ledger
	seen := make(map[uint32]bool)
	n := 0
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) != 3 || !strings.HasSuffix(line, "\n") {
			return nil, fmt.Errorf("line %d is not an id, a name and a time", n)
		}
		id, err := strconv.ParseUint(words[0], 10, 32)
		if err != nil || id == 0 {
			return nil, fmt.Errorf("line %d: %q is not a user id", n, words[0])
		}
		if seen[uint32(id)] {
			return nil, fmt.Errorf("line %d: the id %d stands here for the second time", n, id)
		}
		seen[uint32(id)] = true
		l = append(l, given{uint32(id), words[1], words[2]})
	}
	return l, nil
}

func (l ledger) String() string {
	var b strings.Builder
	for _, g := range l {
		fmt.Fprintf(&b, "%d %s %s\n", g.id, g.name, g.when)
	}
	return b.String()
}

// next is the first id in the range after all of the range that were given.
func (l ledger) next(r Range) (uint32, bool) {
	id := uint64(r.First)
	for _, g := range l {
		if r.has(g.id) {
			id = max(id, uint64(g.id)+1)
		}
	}
	return uint32(id), id <= uint64(r.Last)
}

// last is the id that the name was given last.
func (l ledger) last(name string) (uint32, bool) {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].name == name {
			return l[i].id, true
		}
	}
	return 0, false
}

func (l ledger) knows(id uint32, name string) bool {
	for _, g := range l {
		if g.id == id {
			return g.name == name
		}
	}
	return false
}

func (m *host) ledgerPath() string { return m.spec.Machine.State + "/" + ledgerName }

// ledger reads the ledger. One that others can change is refused, since ids
// could have been taken out of it.
func (m *host) ledger() (ledger, error) {
	p := m.ledgerPath()
	var text []byte
	err := m.in(p, rootOnly, func(dir *os.File, name string) error {
		data, stat, err := readAt(dir, name, p)
		if err != nil {
			return err
		}
		if stat.Uid != 0 || stat.Mode&0o077 != 0 {
			return fmt.Errorf("osuser: the ledger of user ids %s is not root's alone (owner %d, mode %04o); look at it, then run: chown root %s && chmod 0600 %s", p, stat.Uid, stat.Mode&0o7777, p, p)
		}
		text = data
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		names, err := m.names(m.journals())
		if err != nil {
			return nil, err
		}
		if len(names) > 0 {
			return nil, fmt.Errorf("osuser: the ledger of user ids %s is gone, but users were made (%s); restore it from a copy, or ids would be given twice", p, m.journals())
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l, err := parseLedger(string(text))
	if err != nil {
		return nil, fmt.Errorf("osuser: the ledger of user ids %s cannot be trusted: %w; restore it from a copy", p, err)
	}
	return l, nil
}

// enter writes an id into the ledger. When it returns nil, the id is on the disk.
func (m *host) enter(l ledger, g given) error {
	p := m.ledgerPath()
	return m.in(p, rootOnly, func(dir *os.File, name string) error {
		return put(dir, name, p, append(l[:len(l):len(l)], g).String(), file{mode: 0o600})
	})
}

// allot gives an id that nobody ever had, as far as this machine knows.
func (m *host) allot(free func(uint32) (string, error)) (uint32, error) {
	l, err := m.ledger()
	if err != nil {
		return 0, err
	}
	r := m.spec.Range
	id, ok := l.next(r)
	for ; ok; id, ok = id+1, id < r.Last {
		why, err := free(id)
		if err != nil {
			return 0, err
		}
		if why != "" {
			continue
		}
		return id, m.enter(l, given{id, m.spec.User, m.spec.Machine.Now().UTC().Format("2006-01-02T15:04:05Z")})
	}
	return 0, fmt.Errorf("osuser: no user id is left in %s: ids are never given twice; choose another range", r)
}

// ownedBy reports whether a file belongs to the id as user or group.
func ownedBy(stat unix.Stat_t, id uint32) bool { return stat.Uid == id || stat.Gid == id }
