package client

import "io/fs"

// foreign finds nothing here: access lists say who may change a file, and the
// folder of the profile is closed to others.
func foreign(fs.FileInfo) string { return "" }
