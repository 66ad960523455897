package inside

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"vogt/internal/execution/confine/plan"
)

func TestWakes(t *testing.T) {
	signals := func() string {
		out, err := exec.Command("sed", "-n", "/Sig[BIC]../p", "/proc/self/status").CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return string(out)
	}
	before := signals() // with what whoever started this ignores
	w, err := newWakes()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.listen(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGTSTP, syscall.SIGCONT, plan.StopSignal, plan.ContinueSignal} {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		if got := w.next(buf); !bytes.Equal(got, []byte{byte(s)}) {
			t.Errorf("signal %d: got %v", s, got)
		}
	}

	// What is executed has no handler and no signal held back.
	if after := signals(); after != before || strings.Count(before, "\n") != 3 {
		t.Errorf("what is executed has\n%s\nand would have had\n%s", after, before)
	}
	if got := w.next(buf); !bytes.Contains(got, []byte{byte(syscall.SIGCHLD)}) {
		t.Errorf("a child has ended: got %v", got)
	}

	// More than the pipe holds keep neither the handler nor who sends from going on.
	size, err := unix.FcntlInt(wakeFD, unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	for full := 0; full < size; {
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		if full, err = unix.IoctlGetInt(w.from, unix.TIOCINQ); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR2); err != nil { // it is lost
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		w.send(overByte)
	}()
	for n := 0; ; {
		got := w.next(buf)
		if n += len(got); bytes.IndexByte(got, overByte) >= 0 {
			if n < size {
				t.Errorf("%d bytes came before the last one, want %d", n, size)
			}
			break
		}
	}
	<-sent
}
