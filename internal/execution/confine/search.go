package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"vogt/internal/execution/confine/plan"
)

// maxFolders bounds how many folders are searched before a box starts. What a
// box has made is searched without a bound.
const maxFolders = 1_000_000

// seen is what a search finds in the folders that a box may write.
type seen struct {
	dirs   []string // what git may take for a repository
	links  []string // .git that are files or links: they lead to one
	hidden []string // what the profile hides wherever it is, and others' sockets
}

// search looks through folders. For git, a repository is what has a HEAD
// (gitrepository-layout(5)); whatever else it asks for can be had by links, files
// in the place of folders, and names that end in blanks, so that nothing else is
// asked for here. afterwards means that a box has been there: a folder that it
// has locked is opened, and an error ends nothing.
func (s *resolver) search(roots []string, afterwards bool) (seen, error) {
	var out seen
	var failed []error
	folders := 0
	var walk func(root string) error
	walk = func(root string) error {
		return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil && d != nil && d.IsDir() && afterwards:
				// Whoever has made it may open it, and then git may go there.
				if err := s.unlock(name, d); err != nil {
					failed = append(failed, err)
					return fs.SkipDir
				}
				if err := walk(name); err != nil {
					failed = append(failed, err)
				}
				return fs.SkipDir
			case err != nil && d != nil && d.IsDir():
				return fs.SkipDir // nobody goes there now
			case err != nil:
				failed = append(failed, err)
				return nil
			case d.Name() == "HEAD" && !d.IsDir():
				out.dirs = append(out.dirs, filepath.Dir(name))
			case d.Name() == ".git" && !d.IsDir():
				out.links = append(out.links, name)
			case d.Type()&fs.ModeSocket != 0 && s.profile.Sockets == plan.OwnSockets:
				out.hidden = append(out.hidden, name) // somebody outside listens there
			case d.IsDir():
				if d.Name() == ".git" {
					out.dirs = append(out.dirs, name) // git init takes what is there
				}
				if folders++; folders > maxFolders && !afterwards {
					return fmt.Errorf("%s has more than %d folders to look for repositories in: start the box in a part of it", root, maxFolders)
				}
			}
			if s.hiddenAnywhere(d.Name()) && name != root {
				out.hidden = append(out.hidden, name)
			}
			return nil
		})
	}
	for _, root := range roots {
		if err := walk(root); err != nil {
			failed = append(failed, err)
		}
	}
	slices.Sort(out.dirs)
	out.dirs = slices.Compact(out.dirs)
	return out, errors.Join(failed...)
}

// unlock lets this user list a folder that a box has closed to everybody.
func (s *resolver) unlock(name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o700 == 0o700 {
		return fmt.Errorf("%s cannot be listed", name)
	}
	return os.Chmod(name, info.Mode().Perm()|0o700)
}

// anywhere begins a path of a profile that stands for a name in every folder of
// the workspace.
const anywhere = "./**/"

// hiddenAnywhere reports whether the profile hides a name in every folder.
func (s *resolver) hiddenAnywhere(name string) bool {
	for _, h := range s.profile.Hidden {
		if pattern, ok := strings.CutPrefix(h, anywhere); ok {
			if match, err := path.Match(pattern, name); err == nil && match {
				return true
			}
		}
	}
	return false
}

// gitFiles are the files and folders of a repository that git runs or obeys, or
// that lead it to others.
func gitFiles(dir string) []string {
	names := [...]string{"hooks", "config", "config.worktree", "commondir", "info/attributes", "remotes", "branches"}
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, filepath.Join(dir, name))
	}
	return out
}

// named are the files that a repository's settings name as hooks or as further
// settings. The user's own settings may do so too.
func (s *resolver) named(dir string) []string {
	var out []string
	top := filepath.Dir(dir) // of the worktree, if the repository is .git
	for _, config := range []string{filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree"), filepath.Join(s.home, ".gitconfig"), filepath.Join(s.home, ".config/git/config")} {
		data, err := readSmall(config)
		if err != nil {
			continue
		}
		section := ""
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "[") {
				section, line, _ = strings.Cut(line[1:], "]")
				section, _, _ = strings.Cut(strings.ToLower(section), " ")
				line = strings.TrimSpace(line)
			}
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				continue
			}
			key, value = strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(value), `"`)
			base := ""
			switch {
			case section == "core" && key == "hookspath":
				base = top
			case (section == "include" || section == "includeif") && key == "path":
				base = filepath.Dir(config)
			default:
				continue
			}
			switch {
			case value == "":
				continue
			case strings.HasPrefix(value, "~/"):
				value = filepath.Join(s.home, value[2:])
			case !filepath.IsAbs(value):
				value = filepath.Join(base, value)
			}
			out = append(out, filepath.Clean(value))
		}
	}
	return out
}
