// Package boxtest tests the way out of a box with real programs in a real box: those
// that know of no proxy, ssh through one, and what tries to get past it.
//
// It owns these tests and the program that they start. It leaves out the rules of
// the proxy, which package egress tests by itself, and the other walls of a box
// (confinetest).
package boxtest
