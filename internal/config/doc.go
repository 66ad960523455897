// Package config finds, checks and reads Vogt's configuration, and writes its
// small files so that a crash leaves the old or the new content.
//
// It owns where things lie (Paths), which files may be believed (those that
// only root and the running user can write), the strict TOML reading, the typed
// settings of vogtd and vogt, atomic writes and file locks. It leaves out what
// the settings mean to the parts that they configure, and it never reads an
// environment variable on its own: a lookup function is passed in, so that
// doors with fixed trust anchors pass none.
package config
