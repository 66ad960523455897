// Package local puts together the catalog of this machine: the entries that
// Vogt brings and those that the machine's owner added.
//
// It owns where the owner's entries lie, which files there are entries, and
// what becomes of one that cannot be read. What makes a file trustworthy is the
// business of config, what an entry says that of catalog.
package local

import (
	"strings"

	"vogt/internal/catalog"
	"vogt/internal/config"
)

// Folder is where the owner of a machine adds entries.
const Folder = "/etc/vogt/catalog"

// LeftOut is a file that is not part of the catalog, and why. Own says that
// Vogt brings an entry of that name, which holds; otherwise the program is
// unknown.
type LeftOut struct {
	Path, Program string
	Reason        string
	Own           bool
}

// Catalog returns the catalog of this machine and the files that are left out
// of it. The error names the file or folder that others than root could have
// written: then nothing there can be believed, not even that a file is missing.
func Catalog() (*catalog.Catalog, []LeftOut, error) { return load(config.ReadRootOwnedFolder) }

func load(read func(string, func(string) bool) ([]config.Named, error)) (*catalog.Catalog, []LeftOut, error) {
	files, err := read(Folder, IsEntry)
	if err != nil {
		return nil, nil, err
	}
	c := catalog.New()
	var left []LeftOut
	leave := func(f config.Named, reason string) {
		_, own := catalog.Source(f.Name)
		c.Withhold(f.Name)
		left = append(left, LeftOut{f.Path, f.Name, reason, own})
	}
	for _, f := range files {
		if _, own := catalog.Source(f.Name); own {
			leave(f, f.Path+": "+f.Name+" is in Vogt's own catalog, which no file changes")
		} else if f.Unusable != nil {
			leave(f, f.Unusable.Reason)
		} else if err := c.Add(f.Path, f.Name, string(f.Content)); err != nil {
			leave(f, err.Error())
		}
	}
	for _, f := range files {
		// Only now all names are known that one can mean.
		if target := c.Alias(f.Name); target != "" && c.Entry(f.Name) == nil {
			leave(f, f.Path+": same-as "+target+", which is not in the catalog")
		}
	}
	return c, left, nil
}

// IsEntry reports whether a file of this name in the folder is an entry.
// Others are what people and their editors and package managers leave there.
func IsEntry(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	if stem == "" || name[0] == '#' || strings.HasSuffix(name, "~") || strings.EqualFold(stem, "readme") {
		return false
	}
	for _, end := range []string{".md", ".bak", ".orig", ".rej", ".swp", ".dpkg-new", ".dpkg-old", ".dpkg-dist", ".rpmnew", ".rpmsave", ".rpmorig"} {
		if len(name) > len(end) && strings.EqualFold(name[len(name)-len(end):], end) {
			return false
		}
	}
	return true
}
