//go:build !linux

package inside

// Main refuses: the walls of a box are those of the Linux kernel.
func Main() int { return 126 }

// Limit refuses too.
func Limit([]string) int { return 126 }

// Within refuses too.
func Within([]string) int { return 126 }

// Through refuses too.
func Through([]string) int { return 126 }
