package confine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// maxGuarded bounds how much of the protected files is compared, in bytes and
// in files. More than that is an error, never a guess.
const (
	maxGuarded      = 64 << 20
	maxGuardedFiles = 20_000
)

// snapshot is what protected paths hold: a digest a file.
type snapshot struct {
	files map[string]string
	ids   map[string]fileID
	taken time.Time
}

// look takes a snapshot of paths. What is missing is not in it. A file that is the
// same as in an earlier snapshot, by what the kernel notes of each change, is not
// read again.
func look(paths []string, earlier snapshot) (snapshot, error) {
	s := snapshot{map[string]string{}, map[string]fileID{}, time.Now()}
	left := int64(maxGuarded)
	buffer := make([]byte, 4096)
	for _, root := range paths {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
				return nil
			case err != nil:
				return err
			case len(s.files) > maxGuardedFiles:
				return fmt.Errorf("%s has more than %d protected files", root, maxGuardedFiles)
			}
			size, err := s.add(name, d, earlier, buffer)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if left -= size; left < 0 {
				return fmt.Errorf("the protected files below %s hold more than %d bytes", root, maxGuarded)
			}
			return nil
		})
		if err != nil {
			return snapshot{}, err
		}
	}
	return s, nil
}

// lookAgain is look after a command, which may have left what cannot be compared:
// that differs from whatever was there, and keeps nothing else from being compared.
func lookAgain(paths []string, before snapshot) snapshot {
	s := snapshot{files: map[string]string{}}
	for _, root := range paths {
		seen, err := look([]string{root}, before)
		if err != nil {
			seen.files = map[string]string{root: "it cannot be compared"}
		}
		maps.Copy(s.files, seen.files)
	}
	return s
}

// add adds a file, and returns how much was read for it.
func (s snapshot) add(name string, d fs.DirEntry, earlier snapshot, buffer []byte) (size int64, err error) {
	info, err := d.Info()
	if err != nil {
		return 0, err
	}
	id, known := identify(info)
	if known && earlier.ids[name] == id && id.before(earlier.taken) {
		s.files[name] = earlier.files[name]
		return 0, nil
	}
	digest, size, err := entry(name, info, buffer)
	if err != nil {
		return size, err
	}
	s.files[name] = digest
	if known {
		s.ids[name] = id
	}
	return size, nil
}

// placeDigest is the digest of what stands in the place of a missing name.
const placeDigest = "nothing"

// linkDigest begins the digest of a link; what it leads to follows.
const linkDigest = "link to "

// entry is the digest of one file, and how much was read for it, through a
// buffer that is used for all.
func entry(name string, info fs.FileInfo, buffer []byte) (digest string, size int64, err error) {
	mode := info.Mode()
	switch {
	case mode.IsDir():
		return "folder", 0, nil // its time changes with placeholders; its files are compared
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(name)
		return linkDigest + target, 0, err
	case mode&fs.ModeSticky != 0 && info.Size() == 0:
		return placeDigest, 0, nil
	case !mode.IsRegular():
		return mode.Type().String(), 0, nil
	}
	// Others may put a pipe in its place, which is not waited for.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Sprint(mode, info.Size(), info.ModTime()), 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.CopyBuffer(h, io.LimitReader(f, maxGuarded+1), buffer)
	return fmt.Sprintf("%v %x", mode.Perm(), h.Sum(nil)), n, err
}

// changes are the paths in which two snapshots differ, sorted.
func (s snapshot) changes(after snapshot) []string {
	var out []string
	for name, digest := range s.files {
		if after.files[name] != digest {
			out = append(out, name)
		}
	}
	for name := range after.files {
		if _, ok := s.files[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
