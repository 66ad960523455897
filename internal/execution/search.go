package execution

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// search finds programs as execvp(3) does, except that no entry of PATH may
// depend on the working directory.
type search struct {
	path    string   // value of PATH
	cwd     string   // absolute
	environ []string // of the child
}

// program finds and opens the program that name stands for.
func (s search) program(name string) (object, error) {
	if strings.ContainsRune(name, '/') || os.IsPathSeparator(name[0]) || filepath.VolumeName(name) != "" {
		path, err := s.absolute(name)
		if err != nil {
			return object{}, err
		}
		return openFirst(path)
	}
	// As in execvp, a file that may not be executed does not end the search,
	// but it is the better explanation when nothing else is found.
	var explanation error
	for _, dir := range filepath.SplitList(s.path) {
		if !filepath.IsAbs(dir) {
			if s.wouldFind(dir, name) {
				return object{}, &Error{Kind: RelativePath, Path: name}
			}
			continue
		}
		o, err := openFirst(filepath.Join(dir, name))
		if err == nil {
			return o, nil
		}
		if e, ok := errors.AsType[*Error](err); ok && e.Kind != NotFound && e.Kind != IsFolder && explanation == nil {
			explanation = err
		}
	}
	if explanation != nil {
		return object{}, explanation
	}
	return object{}, &Error{Kind: NotFound, Path: name}
}

// wouldFind reports whether a shell would have run name from the relative
// entry dir. Running a later one instead would be another program than the one
// that was meant.
func (s search) wouldFind(dir, name string) bool {
	for _, path := range variants(filepath.Join(s.cwd, dir, name)) {
		info, err := os.Stat(path)
		if err == nil && executable(path, info) == nil {
			return true
		}
	}
	return false
}

// openFirst opens the first file that path may stand for on this system.
func openFirst(path string) (object, error) {
	var err error
	for _, p := range variants(path) {
		var o object
		if o, err = openObject(p); err == nil {
			return o, nil
		}
	}
	return object{}, err
}

// absolute makes a name with a separator absolute. A ".." is resolved by the
// file system, since a lexical answer differs behind a symbolic link.
func (s search) absolute(name string) (string, error) {
	if !filepath.IsAbs(name) {
		name = s.cwd + string(filepath.Separator) + name
	}
	cut := len(name)
	for cut > 0 && !os.IsPathSeparator(name[cut-1]) {
		cut--
	}
	dir, base := name[:cut], name[cut:]
	if base == "" || base == "." || base == ".." {
		return "", &Error{Kind: IsFolder, Path: name}
	}
	if !strings.Contains(dir, "..") {
		return filepath.Join(dir, base), nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", notThere(name, err)
	}
	return filepath.Join(real, base), nil
}
