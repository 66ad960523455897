package osuser

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// kind is what a step makes.
type kind string

const (
	kindBegin    kind = "begin"    // nothing: it says for whom the journal is
	kindLine     kind = "line"     // a line in a file that others use too
	kindFile     kind = "file"     // a file of its own
	kindFolder   kind = "folder"   // a folder for more than this agent
	kindReload   kind = "reload"   // nothing: what runs reads its files again
	kindGroup    kind = "group"    // the user's own group
	kindUser     kind = "user"     // the user
	kindHome     kind = "home"     // the home with its folder for keys
	kindComplete kind = "complete" // nothing: everything before it is done
)

// step is one change of the machine, with all that is needed to undo it.
type step struct {
	Kind  kind   `json:"kind"`
	Path  string `json:"path,omitempty"`
	Name  string `json:"name,omitempty"`
	ID    uint32 `json:"id,omitempty"`
	Text  string `json:"text,omitempty"`  // the file's content, the line, or the shell
	Fresh bool   `json:"fresh,omitempty"` // the line's file is made for it
	Open  bool   `json:"open,omitempty"`  // the line's file did not end with a newline
}

func (s step) String() string {
	switch s.Kind {
	case kindLine:
		return fmt.Sprintf("the line %q in %s", s.Text, s.Path)
	case kindFile, kindFolder, kindHome:
		return fmt.Sprintf("the %s %s", s.Kind, s.Path)
	case kindGroup, kindUser:
		return fmt.Sprintf("the %s %s", s.Kind, s.Name)
	case kindBegin, kindReload, kindComplete:
	}
	return string(s.Kind)
}

// state says how far a step is.
type state string

const (
	intended state = "intended" // it may have happened
	done     state = "done"
	undone   state = "undone"
)

// record is one line of a journal. Its sequence number names the step, which is
// given with the first record of it.
type record struct {
	Seq   int   `json:"seq"`
	State state `json:"state"`
	Step  *step `json:"step,omitempty"`
}

type entry struct {
	step
	state
}

// journal is what was done for one agent. Each step is written down before it
// is taken, so that whatever ends the program, what was done is known.
type journal struct {
	path    string
	f       *os.File
	entries []entry
	size    int64
}

func (m *host) journals() string { return m.spec.Machine.State + "/osusers" }

func (m *host) journalPath() string { return m.journals() + "/" + m.spec.Name }

// parseJournal returns the entries, and how many bytes of the text are whole
// lines: the last one may have been cut off by a crash, in which case its step
// was not taken.
func parseJournal(text []byte) (entries []entry, whole int, err error) {
	for n := 1; ; n++ {
		end := bytes.IndexByte(text[whole:], '\n')
		if end < 0 {
			return entries, whole, nil
		}
		var r record
		dec := json.NewDecoder(bytes.NewReader(text[whole : whole+end]))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case r.State == intended && r.Seq == len(entries) && r.Step != nil:
			entries = append(entries, entry{*r.Step, intended})
		case (r.State == done || r.State == undone) && r.Seq >= 0 && r.Seq < len(entries) && r.Step == nil:
			entries[r.Seq].state = r.State
		default:
			return nil, 0, fmt.Errorf("line %d does not follow from those before it", n)
		}
		whole += end + 1
	}
}

// openJournal opens the agent's journal to write it, and makes it if make is
// set. Without one it returns nil.
func (m *host) openJournal(create bool) (*journal, error) {
	j := &journal{path: m.journalPath()}
	err := m.in(j.path, rootOnly, func(dir *os.File, name string) error {
		flags := unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
		if create {
			flags |= unix.O_CREAT
		}
		fd, err := unix.Openat(int(dir.Fd()), name, flags, 0o600)
		if err != nil {
			return explainOpen(int(dir.Fd()), name, j.path, err)
		}
		j.f = os.NewFile(uintptr(fd), j.path)
		return dir.Sync()
	})
	if errors.Is(err, fs.ErrNotExist) && !create {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := m.readJournal()
	if err != nil {
		j.f.Close()
		return nil, err
	}
	entries, whole, err := m.parse(text)
	if err == nil {
		err = j.f.Truncate(int64(whole))
	}
	if err != nil {
		j.f.Close()
		return nil, err
	}
	j.entries, j.size = entries, int64(whole)
	return j, nil
}

func (m *host) readJournal() ([]byte, error) {
	text, _, err := m.read(m.journalPath())
	return text, err
}

func (m *host) parse(text []byte) ([]entry, int, error) {
	entries, whole, err := parseJournal(text)
	if err == nil && len(entries) > 0 {
		err = belongs(entries[0].step, m.spec)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("osuser: the journal %s cannot be trusted: %w; restore it from a copy, or undo by hand what stands in it and remove it", m.journalPath(), err)
	}
	return entries, whole, nil
}

// belongs reports whether a journal's first step is that of the agent.
func belongs(first step, s Spec) error {
	if first.Kind != kindBegin || first.ID == 0 {
		return errors.New("it does not begin with the user that it is for")
	}
	if first.Name != s.User || first.Path != s.home() {
		return fmt.Errorf("it is for the user %s with the home %s, not %s with %s (give the same names and folders as when it was made)", first.Name, first.Path, s.User, s.home())
	}
	return nil
}

// entries reads the journal without opening it for writing.
func (m *host) entries() ([]entry, error) {
	text, err := m.readJournal()
	if err != nil {
		return nil, err
	}
	entries, _, err := m.parse(text)
	return entries, err
}

// intend writes a step down before it is taken.
func (j *journal) intend(s step) (int, error) {
	seq := len(j.entries)
	if err := j.append(record{seq, intended, &s}); err != nil {
		return 0, err
	}
	j.entries = append(j.entries, entry{s, intended})
	return seq, nil
}

// mark writes down how far a step is.
func (j *journal) mark(seq int, s state) error {
	if err := j.append(record{seq, s, nil}); err != nil {
		return err
	}
	j.entries[seq].state = s
	return nil
}

// append writes a record, or leaves the journal as it was.
func (j *journal) append(r record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("osuser: journal: %w", err)
	}
	line = append(line, '\n')
	_, err = j.f.WriteAt(line, j.size)
	if err == nil {
		err = j.f.Sync()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("osuser: write the journal %s: %w", j.path, err), j.f.Truncate(j.size))
	}
	j.size += int64(len(line))
	return nil
}

func (j *journal) close() { j.f.Close() }

// finished reports whether everything that was begun is there.
func finished(entries []entry) bool {
	return find(entries, kindComplete, func(e entry) bool { return e.state == done }) != nil
}

// find returns the last entry of a kind that is not undone.
func find(entries []entry, k kind, also func(entry) bool) *entry {
	for i := len(entries) - 1; i >= 0; i-- {
		if e := &entries[i]; e.Kind == k && e.state != undone && (also == nil || also(*e)) {
			return e
		}
	}
	return nil
}

// sentence is an error's text without the name of this package.
func sentence(err error) string { return strings.ReplaceAll(err.Error(), "osuser: ", "") }
