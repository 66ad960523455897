// Command probe makes one attempt to get out of a box, and prints as a line of
// JSON how it went. `probe list` prints the attempts, their arguments, and what
// each needs.
//
// It is a program for tests. It owns the attempts and knows nothing about what
// should hold: the package confinetest compares what it prints inside of a box
// with what it prints outside. What is changed lies in a folder of the test
// whose name begins with confinetest-; of the machine's own files and switches,
// it tries only whether they could be opened, or it asks for what the kernel
// refuses even to those whom it permits to ask.
package main
