package confine

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Change is a protected file that is not what it was before the command.
type Change struct {
	Path string
	// Aside is where it was put, so that nothing runs it. It is empty for a file
	// that was left alone: in a full box, the box cannot have changed it.
	Aside string
}

// asideSuffix marks what was put aside. git and editors know no such name.
const asideSuffix = ".vogt-quarantine"

// planted puts aside what repositories that a box has made would run: hooks,
// and settings that can name programs. known are the files that were guarded
// when it started. An error keeps nothing else from being put aside.
func planted(dirs []string, known snapshot, guarded []string) ([]Change, error) {
	var out []Change
	var failed []error
	for _, dir := range dirs {
		for _, root := range gitFiles(dir) {
			if covered(root, guarded) {
				continue
			}
			err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
				if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
					return nil
				}
				if err != nil {
					failed = append(failed, err)
					return nil
				}
				if d.IsDir() || known.covers(name) || harmless(name, d) {
					return nil
				}
				aside, err := putAside(name)
				if err != nil {
					// Then nothing of the repository stays where it is.
					aside, err = putAside(dir)
				}
				if err != nil {
					failed = append(failed, err)
				}
				out = append(out, Change{name, aside})
				return nil
			})
			if err != nil {
				failed = append(failed, err)
			}
		}
	}
	return out, errors.Join(failed...)
}

// covers reports whether a path was compared before and after.
func (s snapshot) covers(name string) bool { _, ok := s.files[name]; return ok }

// harmless reports whether a file of a new repository starts nothing: git's
// samples of hooks, and settings that name no program.
func harmless(name string, d fs.DirEntry) bool {
	if !d.Type().IsRegular() {
		return false
	}
	if filepath.Base(filepath.Dir(name)) == "hooks" {
		return strings.HasSuffix(name, ".sample") || strings.Contains(filepath.Base(name), asideSuffix)
	}
	data, err := readSmall(name)
	if err != nil {
		return false
	}
	if len(data) == 0 {
		return filepath.Base(name) != "commondir" // another box may have put it in the place of a missing name
	}
	switch filepath.Base(name) {
	case "commondir":
		// Git makes one for each worktree, and strips the end of the line only.
		return filepath.Base(filepath.Dir(filepath.Dir(name))) == "worktrees" && string(data) == "../..\n"
	case "config", "config.worktree":
		return plainSettings(data)
	case "attributes":
		// Attributes choose among drivers that settings define.
		return true
	}
	return false
}

// plain reports whether a setting of git holds no program's name, as far as git
// itself writes it into a new repository (git-config(1)).
func plain(section, key string) bool {
	switch section {
	case "core":
		return slices.Contains([]string{"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks"}, key)
	case "user":
		return key == "name" || key == "email"
	case "init":
		return key == "defaultbranch"
	case "remote":
		return key == "url" || key == "fetch"
	case "branch":
		return key == "remote" || key == "merge" || key == "rebase"
	case "submodule":
		return key == "url" || key == "active"
	}
	return false
}

// plainSettings reports whether a file of settings holds only plain ones, in the
// form in which git writes them.
func plainSettings(data []byte) bool {
	section := ""
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			inner, ok := strings.CutSuffix(line[1:], "]")
			if !ok || strings.ContainsAny(inner, "[]#;\\") {
				return false
			}
			section, _, _ = strings.Cut(strings.ToLower(inner), " ")
		default:
			key, value, ok := strings.Cut(line, "=")
			key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
			if !ok || !plain(section, key) || strings.HasSuffix(value, "\\") || strings.Contains(value, "::") {
				return false
			}
		}
	}
	return lines.Err() == nil
}

// putAside renames a file or folder so that nothing takes it up, and overwrites
// nothing.
func putAside(name string) (string, error) {
	aside := name + asideSuffix
	var err error
	for range 5 {
		if err = renameBeside(name, aside); err == nil {
			return aside, nil
		}
		switch {
		case errors.Is(err, fs.ErrExist):
			aside = name + asideSuffix + "-" + rand.Text()[:8]
		case errors.Is(err, fs.ErrPermission):
			// The folder was closed to writing.
			if os.Chmod(filepath.Dir(name), 0o700) != nil {
				return "", err
			}
		default:
			return "", err
		}
	}
	return "", err
}
