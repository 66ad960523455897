// Package confinetest tries to get out of boxes.
//
// It owns the attempts (by the program probe), the scene that they are made in,
// what of it must stay as it is, and the table of what each level must answer.
// It knows nothing about how a box is made: a [Runner] runs a command in one.
// Before an attempt counts, it has succeeded without a box, so that none is
// idle.
//
// As root everything runs in namespaces of its own, in which nothing on the disk
// can be written (see [Main]). It leaves out the proxy.
package confinetest
