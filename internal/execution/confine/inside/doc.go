// Package inside is the helper's side of a box: it turns its own process into
// the first one of the box and starts the command there.
//
// It owns the order in which the walls go up (mounts, network, Landlock,
// capabilities, seccomp) and the report before the command starts. It leaves
// out every decision about what may be read or written (confine makes the plan)
// and the seccomp filter itself (filter). What cannot be done as the plan says
// is an error, and then nothing is started: there is no best effort.
package inside
