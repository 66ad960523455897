// Package spawn starts a program in namespaces of its own without copying the memory
// of the process that starts it.
//
// The standard library copies it where a user namespace is wanted (fork(2)), because
// it writes the maps of users from outside while the child waits. For a program of
// many megabytes that takes longer than the namespaces do, and longer still
// afterwards, as each page that is written to is copied. Here the child shares the
// memory until it executes (vfork(2)), and writes the maps itself, as
// user_namespaces(7) permits for one's own user.
//
// A child that shares memory must not run Go code. It makes a list of system calls,
// and nothing else: a few lines of assembly carry the list out.
//
// It owns the making of that list and the start. It leaves out which namespaces and
// capabilities a program is to have, and what it does.
package spawn
