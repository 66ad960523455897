//go:build !unix

package sshkey

import "os"

func openPrivate(path string) (*os.File, error) { return os.Open(path) }

// checkPrivateMode accepts every mode: where access is a matter of ACLs, the
// mode bits that Go reports say nothing about who else can read the file.
func checkPrivateMode(string, os.FileMode) error { return nil }
