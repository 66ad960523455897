//go:build vogtfault

package fault

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// trigger is the point at which this process dies: at its n-th hit.
type trigger struct {
	name string
	n    int64
	hits atomic.Int64
}

// armed reads VOGT_FAULT once: NAME, or NAME:N for the N-th hit, N from 1.
// A value that cannot be read stops the process, so that a crash test with a
// slip in it does not pass for want of a crash.
var armed = sync.OnceValue(func() *trigger {
	name, count, counted := strings.Cut(os.Getenv("VOGT_FAULT"), ":")
	t := &trigger{name: name, n: 1}
	if counted {
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "fault: VOGT_FAULT=%q: want NAME or NAME:N with N from 1\n", os.Getenv("VOGT_FAULT"))
			os.Exit(2)
		}
		t.n = n
	}
	return t
})

// Point kills this process if VOGT_FAULT names this point and this hit.
func Point(name string) {
	t := armed()
	if t.name != name || t.hits.Add(1) != t.n {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "fault: killing this process at %s: %v\n", name, err)
		os.Exit(2)
	}
	select {} // the signal ends every thread; run no further
}
