// Package local puts together the catalog of this machine: the entries that
// Vogt brings and those that the machine's owner added.
//
// It owns where the owner's entries lie. What makes a file trustworthy is the
// business of config, what an entry says that of catalog.
package local

import (
	"vogt/internal/catalog"
	"vogt/internal/config"
)

// Folder is where the owner of a machine adds entries.
const Folder = "/etc/vogt/catalog"

// Catalog returns the catalog of this machine. The error names the file that
// others than root could have written, or what is wrong in it.
func Catalog() (*catalog.Catalog, error) { return load(config.ReadRootOwnedFolder) }

func load(read func(string) ([]config.Named, error)) (*catalog.Catalog, error) {
	files, err := read(Folder)
	if err != nil {
		return nil, err
	}
	c := catalog.New()
	for _, f := range files {
		if err := c.Add(f.Path, f.Name, string(f.Content)); err != nil {
			return nil, err
		}
	}
	return c, nil
}
