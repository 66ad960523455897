// Package inet has the words for places on the internet: the one form in which
// the names of hosts and web addresses are compared, and what kind of network an
// address belongs to.
//
// It owns what every part that connects somewhere for somebody else has to see
// alike. It connects and resolves only as the machine would, and decides nothing:
// which hosts and classes are permitted, and that a name is resolved once, is the
// business of whoever dials.
package inet
