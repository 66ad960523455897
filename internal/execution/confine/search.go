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
	dirs    []string // what git may take for a repository
	links   []string // .git that are files or links: they lead to one
	hidden  []string // what the profile hides wherever it is
	sockets []string // somebody outside listens there
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
				out.sockets = append(out.sockets, name)
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

// named is a path that settings of git name as hooks or as further settings.
type named struct {
	path  string
	hooks bool // relative to the top of the worktree; else to the file of the settings
}

// readNamed reads what a file of settings names.
func readNamed(config string) []named {
	data, err := readSmall(config)
	if err != nil {
		return nil
	}
	var out []named
	section := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section, line, _ = strings.Cut(line[1:], "]")
			section, _, _ = strings.Cut(strings.ToLower(section), " ")
			line = strings.TrimSpace(line)
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(value), `"`)
		switch {
		case value == "":
		case section == "core" && key == "hookspath":
			out = append(out, named{value, true})
		case (section == "include" || section == "includeif") && key == "path":
			out = append(out, named{value, false})
		}
	}
	return out
}

// namedFiles are the files that the settings of repositories, and the user's own
// for each of them, name as hooks or as further settings.
func (s *resolver) namedFiles(dirs []string) []string {
	var out []string
	add := func(config, dir string, list []named) {
		for _, n := range list {
			base := filepath.Dir(config)
			if n.hooks {
				base = filepath.Dir(dir) // of the worktree, if the repository is .git
			}
			switch {
			case strings.HasPrefix(n.path, "~/"):
				out = append(out, filepath.Join(s.home, n.path[2:]))
			case filepath.IsAbs(n.path):
				out = append(out, filepath.Clean(n.path))
			default:
				out = append(out, filepath.Join(base, n.path))
			}
		}
	}
	users := map[string][]named{}
	for _, name := range []string{".gitconfig", ".config/git/config"} {
		config := filepath.Join(s.home, name)
		users[config] = readNamed(config)
	}
	for _, dir := range dirs {
		for _, name := range []string{"config", "config.worktree"} {
			config := filepath.Join(dir, name)
			add(config, dir, readNamed(config))
		}
		for config, list := range users {
			add(config, dir, list)
		}
	}
	return out
}
