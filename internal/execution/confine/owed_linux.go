package confine

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
)

// debt is what a comparison needs that comes after the command. It lies in the
// state folder while a box runs, locked by its starter: if that is killed, the
// next box makes the comparison.
type debt struct {
	Write, Guarded, Watched, Missing [][]byte // paths
	Before                           []digestOf
}

// digestOf is one entry of a snapshot.
type digestOf struct {
	Name   []byte
	Digest string
}

// owedEnding ends the names of the files of debts, and maxDebt bounds one, in
// bytes.
const (
	owedEnding = ".owed"
	maxDebt    = 64 << 20
)

// note is a debt on the disk.
type note struct{ f *os.File }

// paid takes the note back, once the comparison has been made.
func (n note) paid() {
	if n.f == nil {
		return
	}
	_ = os.Remove(n.f.Name()) // else the comparison is made once more
	n.f.Close()
}

// owe notes that a comparison is to be made.
func (h *held) owe(p *plan.Plan, s *resolver, before snapshot) (note, error) {
	d := debt{Write: toBytes(p.Write), Guarded: toBytes(p.Guarded), Watched: toBytes(s.watched), Missing: toBytes(s.missing)}
	for name, digest := range before.files {
		d.Before = append(d.Before, digestOf{[]byte(name), digest})
	}
	data, err := json.Marshal(d)
	if err != nil {
		return note{}, err
	}
	f, err := openLock(filepath.Join(h.dir, rand.Text()+owedEnding), unix.O_EXCL)
	if err != nil {
		return note{}, err
	}
	if err = flock(f, unix.LOCK_EX); err == nil {
		_, err = f.Write(data)
	}
	if err != nil {
		f.Close()
		return note{}, errors.Join(err, os.Remove(f.Name()))
	}
	return note{f}, nil
}

// settle makes the comparisons that killed boxes have left. The gate is locked.
func (h *held) settle(profile *Profile) (out []Change) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != owedEnding {
			continue
		}
		f, err := os.OpenFile(filepath.Join(h.dir, e.Name()), os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			var d debt
			if data, err := io.ReadAll(io.LimitReader(f, maxDebt)); err == nil && json.Unmarshal(data, &d) == nil {
				s := &resolver{profile: profile, watched: toStrings(d.Watched), missing: toStrings(d.Missing)}
				before := snapshot{files: map[string]string{}}
				for _, entry := range d.Before {
					before.files[string(entry.Name)] = entry.Digest
				}
				// What is gone meanwhile cannot be compared, and does no harm.
				changes, _ := s.compare(&plan.Plan{Write: toStrings(d.Write), Guarded: toStrings(d.Guarded)}, before)
				out = append(out, changes...)
			}
			_ = os.Remove(f.Name())
		}
		f.Close()
	}
	return out
}

func toBytes(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, text := range list {
		out[i] = []byte(text)
	}
	return out
}

func toStrings(list [][]byte) []string {
	out := make([]string, len(list))
	for i, data := range list {
		out[i] = string(data)
	}
	return out
}
