package main

// openFiles is the number of files that this process may open; Windows sets no
// limit of its own.
func openFiles() int { return 1 << 20 }
