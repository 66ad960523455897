package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// prover is an authority's answer to the demand for proofs.
func prover(l *memLog) func(context.Context, int64, int64) (Consistency, error) {
	return func(_ context.Context, old, new int64) (Consistency, error) {
		return ProveConsistency(old, new, l)
	}
}

// noProof fails the test when a proof is asked for.
func noProof(t *testing.T) func(context.Context, int64, int64) (Consistency, error) {
	return func(_ context.Context, old, new int64) (Consistency, error) {
		t.Errorf("a proof from %d to %d was asked for", old, new)
		return Consistency{}, errors.New("not here")
	}
}

func openMemory(t testing.TB, dir, key string) *Memory {
	t.Helper()
	m, err := OpenMemory(dir, key)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func remembered(t testing.TB, m *Memory) int64 {
	t.Helper()
	c, ok, err := m.Last()
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return -1
	}
	return c.Size
}

func evidence(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	entries, err := os.ReadDir(filepath.Join(dir, "evidence"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, "evidence", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func TestMemoryGoesForward(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	a := newAuthority(t, "vogt/x/log", 1)
	l := newLog(t, 100)
	m := openMemory(t, filepath.Join(dir, "deep", "memory"), a.key)
	if got := remembered(t, m); got != -1 {
		t.Fatalf("a new memory remembers %d", got)
	}
	for _, size := range []int64{0, 40, 0} { // to and from nothing there is nothing to prove
		if err := m.Observe(ctx, a.sign(t, l, size).Text, noProof(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Observe(ctx, a.sign(t, l, 90).Text, prover(l)); err != nil {
		t.Fatal(err)
	}
	if got := remembered(t, m); got != 90 {
		t.Errorf("after 40 and 90, %d is remembered", got)
	}
	// An earlier state that is proven to be one: another process was faster.
	if err := m.Observe(ctx, a.sign(t, l, 60).Text, prover(l)); err != nil {
		t.Errorf("a proven earlier checkpoint: %v", err)
	}
	if got := remembered(t, openMemory(t, filepath.Join(dir, "deep", "memory"), a.key)); got != 90 {
		t.Errorf("after 60, another process remembers %d", got)
	}
	if e := evidence(t, filepath.Join(dir, "deep", "memory")); len(e) != 0 {
		t.Errorf("without a contradiction there is evidence: %q", e)
	}
}

func TestMemoryWritesOnlyWhatIsNew(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	a, witness := newAuthority(t, "vogt/x/log", 1), newAuthority(t, "witness", 2)
	l := newLog(t, 100)
	m := openMemory(t, dir, a.key)
	c := a.sign(t, l, 100)
	if err := m.Observe(ctx, c.Text, noProof(t)); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(filepath.Join(dir, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	if perm := before.Mode().Perm(); perm&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("the memory has permissions %v", perm)
	}
	// The same again, and the same with another signature.
	cosigned := c.Text + strings.SplitAfter(witness.sign(t, l, 100).Text, "\n\n")[1]
	for _, text := range []string{c.Text, cosigned} {
		if err := m.Observe(ctx, text, noProof(t)); err != nil {
			t.Fatal(err)
		}
	}
	after, err := os.Stat(filepath.Join(dir, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("the file was written again")
	}
}

func TestMemoryRefusesNonsense(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	a, b := newAuthority(t, "vogt/x/log", 1), newAuthority(t, "vogt/x/log", 2)
	l := newLog(t, 10)
	m := openMemory(t, dir, a.key)
	for _, text := range []string{"", "x", b.sign(t, l, 5).Text, a.sign(t, l, 5).Text + "x"} {
		if err := m.Observe(ctx, text, noProof(t)); err == nil {
			t.Errorf("%q was observed", text)
		}
		if err := m.Accept(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	if got := remembered(t, m); got != -1 {
		t.Errorf("%d is remembered", got)
	}
	if _, err := OpenMemory(dir, "x"); err == nil {
		t.Error("opened without a key")
	}
}

func TestMemoryBehind(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	a := newAuthority(t, "vogt/x/log", 1)
	l, restored := newLog(t, 100), newLog(t, 60)
	m := openMemory(t, dir, a.key)
	if err := m.Observe(ctx, a.sign(t, l, 100).Text, noProof(t)); err != nil {
		t.Fatal(err)
	}
	old := a.sign(t, restored, 60)
	var behind *ErrBehind
	for range 2 {
		err := m.Observe(ctx, old.Text, prover(restored))
		if !errors.As(err, &behind) {
			t.Fatalf("a restored authority: %v", err)
		}
	}
	if behind.Remembered.Size != 100 || behind.Seen.Size != 60 || !errors.Is(behind, errNoHash) {
		t.Errorf("the error is %+v", behind)
	}
	for _, want := range []string{"60 records", "100", "restored", behind.Evidence} {
		if !strings.Contains(behind.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, behind)
		}
	}
	if e := evidence(t, dir); len(e) != 1 || !strings.Contains(e[0], old.Text) || !strings.Contains(e[0], behind.Remembered.Text) {
		t.Errorf("the evidence is %q", e)
	}
	if got := remembered(t, m); got != 100 {
		t.Errorf("%d is remembered", got)
	}

	// The restored log goes on, past what was remembered.
	for n := 60; n < 120; n++ {
		if _, err := Append(restored, testRecord(1000+n)); err != nil {
			t.Fatal(err)
		}
	}
	var fork *ErrFork
	now := a.sign(t, restored, 120)
	if err := m.Observe(ctx, now.Text, prover(restored)); !errors.As(err, &fork) {
		t.Fatalf("a restored authority that went on: %v", err)
	}
	if err := m.Accept(now.Text); err != nil {
		t.Fatal(err)
	}
	if got := remembered(t, m); got != 120 {
		t.Errorf("after Accept, %d is remembered", got)
	}
	found := false
	for _, e := range evidence(t, dir) {
		found = found || strings.Contains(e, "\n100\n") && strings.Contains(e, now.Text)
	}
	if !found {
		t.Error("Accept kept nothing of what was remembered before")
	}
	if err := m.Observe(ctx, now.Text, noProof(t)); err != nil {
		t.Errorf("what was accepted is not observed: %v", err)
	}
	if err := m.Accept(now.Text); err != nil {
		t.Errorf("accepted twice: %v", err)
	}
}

func TestMemoryFork(t *testing.T) {
	a := newAuthority(t, "vogt/x/log", 1)
	l, other := newLog(t, 100), newLog(t, 49)
	for n := 49; n < 120; n++ {
		if _, err := Append(other, testRecord(1000+n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		size  int64
		fetch func(context.Context, int64, int64) (Consistency, error)
	}{
		{"same size", 100, noProof(t)},
		{"longer", 120, prover(other)},
		{"longer, proof of nothing", 120, func(context.Context, int64, int64) (Consistency, error) { return Consistency{}, nil }},
		{"shorter, proof of the true log", 90, prover(l)},
		{"shorter, proof of the other log", 90, prover(other)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			m := openMemory(t, dir, a.key)
			if err := m.Observe(t.Context(), a.sign(t, l, 100).Text, noProof(t)); err != nil {
				t.Fatal(err)
			}
			shown := a.sign(t, other, tt.size)
			var fork *ErrFork
			if err := m.Observe(t.Context(), shown.Text, tt.fetch); !errors.As(err, &fork) {
				t.Fatalf("Observe: %v", err)
			}
			if fork.Remembered.Size != 100 || fork.Seen != shown || !strings.Contains(fork.Error(), "two histories") {
				t.Errorf("the error is %v", fork)
			}
			b, err := os.ReadFile(fork.Evidence)
			if err != nil || !strings.Contains(string(b), shown.Text) || !strings.Contains(string(b), fork.Remembered.Text) {
				t.Errorf("the evidence is %q, %v", b, err)
			}
			if got := remembered(t, m); got != 100 {
				t.Errorf("%d is remembered", got)
			}
		})
	}
}

func TestMemoryWithoutAnAnswer(t *testing.T) {
	a := newAuthority(t, "vogt/x/log", 1)
	l := newLog(t, 100)
	dir := t.TempDir()
	m := openMemory(t, dir, a.key)
	if err := m.Observe(t.Context(), a.sign(t, l, 50).Text, noProof(t)); err != nil {
		t.Fatal(err)
	}
	down := errors.New("connection refused")
	var fork *ErrFork
	var behind *ErrBehind
	err := m.Observe(t.Context(), a.sign(t, l, 90).Text, func(context.Context, int64, int64) (Consistency, error) { return Consistency{}, down })
	if !errors.Is(err, down) || errors.As(err, &fork) || errors.As(err, &behind) {
		t.Errorf("no proof for a longer log: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = m.Observe(ctx, a.sign(t, l, 30).Text, func(ctx context.Context, _, _ int64) (Consistency, error) {
		cancel()
		return Consistency{}, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || errors.As(err, &behind) {
		t.Errorf("cancelled: %v", err)
	}
	if got := remembered(t, m); got != 50 {
		t.Errorf("%d is remembered", got)
	}
}

func TestMemoryDamaged(t *testing.T) {
	a, other := newAuthority(t, "vogt/x/log", 1), newAuthority(t, "vogt/x/log", 2)
	l := newLog(t, 100)
	good := a.sign(t, l, 50).Text
	for name, content := range map[string]string{
		"empty":       "",
		"cut off":     good[:len(good)/2],
		"overwritten": strings.Replace(good, "50", "10", 1),
		"other key":   other.sign(t, l, 50).Text,
		"zeros":       strings.Repeat("\x00", len(good)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "checkpoint")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			m := openMemory(t, dir, a.key)
			_, ok, err := m.Last()
			if ok || err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "remove the file") {
				t.Errorf("Last = %v, %v", ok, err)
			}
			if err := m.Observe(t.Context(), good, prover(l)); err == nil {
				t.Error("a damaged memory observes")
			}
			if b, err := os.ReadFile(file); err != nil || string(b) != content {
				t.Errorf("the file was changed to %q, %v", b, err)
			}
			if err := m.Accept(good); err != nil {
				t.Fatal(err)
			}
			if got := remembered(t, m); got != 50 {
				t.Errorf("after Accept, %d is remembered", got)
			}
			if e := evidence(t, dir); len(e) != 1 || !strings.Contains(e[0], content) {
				t.Errorf("the damaged content was not kept: %q", e)
			}
		})
	}
}

func TestMemoryEvidenceIsBounded(t *testing.T) {
	a := newAuthority(t, "vogt/x/log", 1)
	dir := t.TempDir()
	m := openMemory(t, dir, a.key)
	for n := range maxEvidence + 3 {
		_, err := m.keep("fork", "one", fmt.Sprint(n))
		if (err == nil) != (n < maxEvidence) {
			t.Fatalf("evidence %d: %v", n, err)
		}
		if n == 20 { // the rest is only counted
			for i := n; i < maxEvidence; i++ {
				if err := os.WriteFile(filepath.Join(dir, "evidence", fmt.Sprint(i)), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			break
		}
	}
	if _, err := m.keep("fork", "one", "more"); err == nil {
		t.Error("there is no end to evidence")
	}
	if path, err := m.keep("fork", "one", "0"); err != nil || path == "" {
		t.Errorf("evidence that is there already: %q, %v", path, err)
	}
	l, other := newLog(t, 5), newLog(t, 6)
	if err := m.Observe(t.Context(), a.sign(t, l, 5).Text, noProof(t)); err != nil {
		t.Fatal(err)
	}
	other.records[0].Leaf[0] ^= 1
	other.rebuild(t)
	var fork *ErrFork
	if err := m.Observe(t.Context(), a.sign(t, other, 5).Text, noProof(t)); !errors.As(err, &fork) || fork.Evidence != "" {
		t.Errorf("the alarm without room for evidence: %v", err)
	}
}

// observeAll observes all sizes from first on in steps and reports failures.
func observeAll(m *Memory, a authority, l *memLog, first, step int) error {
	for size := first; size <= len(l.records); size += step {
		text, err := SignCheckpoint(int64(size), l, a.signer)
		if err != nil {
			return err
		}
		if err := m.Observe(context.Background(), text, prover(l)); err != nil {
			return err
		}
		if c, ok, err := m.Last(); err != nil || !ok || c.Size < int64(size) {
			return fmt.Errorf("after %d, %d is remembered: %v, %v", size, c.Size, ok, err)
		}
	}
	return nil
}

const (
	racers    = 4
	raceSize  = 200
	raceDir   = "VOGT_TEST_MEMORY_DIR"
	raceFirst = "VOGT_TEST_MEMORY_FIRST"
)

// TestMain makes this binary one of the processes of TestMemoryInManyProcesses
// if it was started as one.
func TestMain(m *testing.M) {
	dir := os.Getenv(raceDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := race(dir, os.Getenv(raceFirst)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func race(dir, firstSize string) error {
	first, err := strconv.Atoi(firstSize)
	if err != nil {
		return err
	}
	signer, key, err := NewSigner("vogt/x/log", bytes.Repeat([]byte{1}, 32))
	if err != nil {
		return err
	}
	l := &memLog{}
	for n := range raceSize {
		if _, err := Append(l, testRecord(n)); err != nil {
			return err
		}
	}
	m, err := OpenMemory(dir, key)
	if err != nil {
		return err
	}
	return observeAll(m, authority{signer, key}, l, first, racers)
}

func TestMemoryInManyProcesses(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t, "vogt/x/log", 1)
	l := newLog(t, raceSize)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := openMemory(t, dir, a.key)
	var wg sync.WaitGroup
	for first := 1; first <= racers; first++ {
		wg.Go(func() {
			if first > racers/2 { // half of them are goroutines of this process
				if err := observeAll(m, a, l, first, racers); err != nil {
					t.Error(err)
				}
				return
			}
			cmd := exec.CommandContext(t.Context(), exe)
			cmd.Env = append(os.Environ(), raceDir+"="+dir, raceFirst+"="+fmt.Sprint(first))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if got := remembered(t, openMemory(t, dir, a.key)); got != raceSize {
		t.Errorf("in the end %d is remembered", got)
	}
	if e := evidence(t, dir); len(e) != 0 {
		t.Errorf("a false alarm: %q", e)
	}
}
