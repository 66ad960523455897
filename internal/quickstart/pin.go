package quickstart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vogt/internal/config"
)

// pinned is what a client knows of its authority: the address, and the key that
// its log is signed with.
type pinned struct {
	authority string
	logKey    string
}

// write puts the pin into the user's vogt.toml and returns the address that
// stood there before. Everything else in the file stays. A different log key
// for the same address is refused: the authority's data would have been
// replaced, and only the person can say whether that is right.
func (p pinned) write(paths config.Paths) (before string, err error) {
	path := filepath.Join(paths.Config, "vogt.toml")
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link, as people keep their dotfiles, stays one
	}
	old, err := config.Load[config.Client](path)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if old.Authority == p.authority && old.AuthorityKey == p.logKey {
		return old.Authority, nil
	}
	if old.AuthorityKey != "" && keyMaterial(old.AuthorityKey) != keyMaterial(p.logKey) {
		return "", fmt.Errorf("%s pins another log key than this authority has (%q, not %q): its data was replaced, or this is not the authority that you know.\n"+
			"If you replaced it yourself, remove the line authority_key from that file and run `vogt up` again", path, old.AuthorityKey, p.logKey)
	}
	text := "# Where this user's authority is. `vogt up` keeps the first two lines.\n"
	if exists {
		content, err := config.ReadTrusted(path)
		if err != nil {
			return "", err
		}
		text = string(content)
	} else if err := os.MkdirAll(paths.Config, 0o700); err != nil {
		return "", err
	}
	text = setKeys(text, [][2]string{{"authority", p.authority}, {"authority_key", p.logKey}})
	return old.Authority, p.replace(path, text)
}

// keyMaterial is the part of a verifier key (c2sp.org/signed-note) that stays
// when the authority's address, and with it the log's name, changes.
func keyMaterial(key string) string {
	parts := strings.SplitN(key, "+", 3)
	return parts[len(parts)-1]
}

// replace writes the file after a check that it says what it should.
func (p pinned) replace(path, text string) error {
	draft := path + ".new"
	defer os.Remove(draft)
	if err := config.WriteFile(draft, []byte(text), 0o600); err != nil {
		return err
	}
	got, err := config.Load[config.Client](draft)
	if err == nil && (got.Authority != p.authority || got.AuthorityKey != p.logKey) {
		err = errors.New("its layout is not understood")
	}
	if err != nil {
		return fmt.Errorf("cannot change %s: %w. Write into it by hand, above the first table:\nauthority = %q\nauthority_key = %q", path, err, p.authority, p.logKey)
	}
	if err := os.Rename(draft, path); err != nil {
		return fmt.Errorf("cannot change %s: %w", path, err)
	}
	return nil
}

// setKeys sets string keys of the top level of a TOML text, in place where
// they stand and else before everything but the comment at the top.
func setKeys(text string, pairs [][2]string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	top := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "[") })
	if top < 0 {
		top = len(lines)
	}
	at := slices.IndexFunc(lines, func(l string) bool { return !strings.HasPrefix(strings.TrimSpace(l), "#") })
	if at < 0 {
		at = len(lines)
	}
	for _, pair := range pairs {
		line := pair[0] + " = " + strconv.Quote(pair[1])
		have := slices.IndexFunc(lines[:top], func(l string) bool {
			key, _, ok := strings.Cut(l, "=")
			return ok && strings.Trim(key, " \t\"'") == pair[0]
		})
		if have >= 0 {
			lines[have], at = line, have+1
			continue
		}
		lines = slices.Insert(lines, at, line)
		at, top = at+1, top+1
	}
	return strings.Join(lines, "\n") + "\n"
}
