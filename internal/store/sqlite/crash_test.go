package sqlite

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// parseAcks reads the lines that a child wrote; a line cut short by the kill
// was not a report.
func parseAcks(t *testing.T, text string) []int64 {
	t.Helper()
	var acked []int64
	for line := range strings.Lines(text) {
		number, ok := strings.CutPrefix(line, "ack ")
		if !ok || !strings.HasSuffix(number, "\n") {
			continue
		}
		id, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil {
			t.Fatalf("child printed %q", line)
		}
		acked = append(acked, id)
	}
	return acked
}

// TestKill kills a writing process again and again, each time at another
// moment, on the same data.
func TestKill(t *testing.T) {
	rounds := 15
	if raceEnabled {
		rounds = 5
	}
	dir := filepath.Join(t.TempDir(), "data")
	random := rand.New(rand.NewPCG(1, 2))
	var acked []int64
	for round := range rounds {
		cmd := childConfig{
			Dir: dir, Checkpoint: 50, Ballast: -1, Callers: 6, Openings: 1,
			First: int64(round+1) * 1_000_000, Count: 1_000_000,
		}.command(t)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		reports := bufio.NewReader(out)
		for range 1 + random.IntN(100) {
			line, err := reports.ReadString('\n')
			if err != nil {
				t.Fatalf("the child ended early: %v", err)
			}
			text.WriteString(line)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		// What it had reported by then counts too.
		if _, err := reports.WriteTo(&text); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
		acked = append(acked, parseAcks(t, text.String())...)
		if err := verifyAndRemove(dir, acked); err != nil {
			t.Fatalf("round %d, %d updates acknowledged: %v", round, len(acked), err)
		}
	}
	t.Logf("%d updates acknowledged in %d rounds, all present", len(acked), rounds)
}

// verifyAndRemove is verifyPairs on data that is used again: the update that
// verifying adds is removed.
func verifyAndRemove(dir string, acked []int64) error {
	if err := verifyPairs(dir, acked); err != nil {
		return err
	}
	return removePair(dir, -1)
}

// TestFaultPoints lets the process die at each of the engine's points.
func TestFaultPoints(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not installed, so no binary with armed fault points can be built")
	}
	exe := filepath.Join(t.TempDir(), "armed.test")
	if runtime.GOOS == "windows" {
		exe += ".exe"
	}
	if out, err := exec.Command("go", "test", "-c", "-tags", "vogtfault", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("building with armed fault points: %v\n%s", err, out)
	}
	for _, tt := range []struct {
		point   string
		durable bool // whether the update at which the process dies is kept
	}{
		{"store.before-commit", false},
		{"store.after-commit", true},
		{"store.before-answer", true},
	} {
		t.Run(tt.point, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			cmd := childConfig{Dir: dir, Ballast: -1, Callers: 1, Openings: 1, First: 1, Count: 10}.command(t)
			cmd.Path = exe
			cmd.Env = append(cmd.Env, "VOGT_FAULT="+tt.point+":4")
			out, err := cmd.Output()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() > 1 {
				t.Fatalf("the child ended with %v, want a kill", err)
			}
			acked := parseAcks(t, string(out))
			if len(acked) != 3 {
				t.Fatalf("%d updates were acknowledged before the fourth met its end, want 3", len(acked))
			}
			kept := acked
			if tt.durable {
				kept = append(kept, 4)
			}
			if err := verifyPairs(dir, kept); err != nil {
				t.Error(err)
			}
			if n := countPairs(t, dir); n != len(kept)+1 { // with verifyPairs' own
				t.Errorf("%d updates are in the database, want %d", n-1, len(kept))
			}
		})
	}
}
