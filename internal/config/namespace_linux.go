package config

import (
	"os"
	"strconv"
	"strings"
)

// unmappedOwner reports whether uid stands for "an owner who has no id in this
// user namespace" (user_namespaces(7)). In a box that maps one user only, root's
// files look so. Such an owner is outside of the box, so nothing in it can
// write as that user.
func unmappedOwner(uid uint32) bool {
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return false
	}
	idMap, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	return unmapped(uid, string(overflow), string(idMap))
}

func unmapped(uid uint32, overflow, idMap string) bool {
	if strings.TrimSpace(overflow) != strconv.FormatUint(uint64(uid), 10) {
		return false
	}
	for line := range strings.Lines(idMap) {
		field := strings.Fields(line) // first id inside, first id outside, length
		if len(field) != 3 {
			return false
		}
		first, err1 := strconv.ParseUint(field[0], 10, 32)
		length, err2 := strconv.ParseUint(field[2], 10, 32)
		if err1 != nil || err2 != nil {
			return false
		}
		if first <= uint64(uid) && uint64(uid) < first+length {
			return false // a real user has this id
		}
	}
	return true
}
