package witness

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"vogt/internal/audit"
)

const origin = "vogt/x/log"

// tree is a log's hashes in memory.
type tree []tlog.Hash

func (t tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index >= int64(len(t)) {
			return nil, fmt.Errorf("no hash %d", index)
		}
		out[i] = t[index]
	}
	return out, nil
}

// newTree has the records 0 to size-1; those from fork on are another log's.
func newTree(tb testing.TB, size, fork int) tree {
	tb.Helper()
	var t tree
	for n := range size {
		text := fmt.Sprint(n, n >= fork)
		h, err := tlog.StoredHashes(int64(n), []byte(text), t)
		if err != nil {
			tb.Fatal(err)
		}
		t = append(t, h...)
	}
	return t
}

func logKey(tb testing.TB, name string, seed byte) (note.Signer, string) {
	tb.Helper()
	s, key, err := audit.NewSigner(name, bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		tb.Fatal(err)
	}
	return s, key
}

func sign(tb testing.TB, t tree, size int64, s note.Signer) string {
	tb.Helper()
	text, err := audit.SignCheckpoint(size, t, s)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func prove(tb testing.TB, t tree, old, new int64) audit.Consistency {
	tb.Helper()
	p, err := audit.ProveConsistency(old, new, t)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// server is a witness on a local port.
type server struct {
	*httptest.Server
	key   string
	dir   string
	clock *atomic.Int64 // Unix seconds
	logs  *bytes.Buffer
}

const firstSecond = 1_700_000_000

func newServer(tb testing.TB, store Store, logs ...Log) *server {
	tb.Helper()
	s := &server{clock: &atomic.Int64{}, logs: &bytes.Buffer{}}
	s.clock.Store(firstSecond)
	if store == nil {
		s.dir = tb.TempDir()
		files, err := OpenFiles(s.dir)
		if err != nil {
			tb.Fatal(err)
		}
		store = files
	}
	key, err := NewKey("witness.example/w1", bytes.Repeat([]byte{9}, 32))
	if err != nil {
		tb.Fatal(err)
	}
	h, err := New(Config{Key: key, Logs: logs, Store: store,
		Now: func() time.Time { return time.Unix(s.clock.Load(), 999) },
		Log: slog.New(slog.NewTextHandler(s.logs, nil))})
	if err != nil {
		tb.Fatal(err)
	}
	s.key = key.VerifierKey()
	s.Server = httptest.NewServer(h)
	tb.Cleanup(s.Close)
	return s
}

func (s *server) post(tb testing.TB, body string) (status int, kind, answer string) {
	tb.Helper()
	resp, err := s.Client().Post(s.URL+"/add-checkpoint", "", strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), b.String()
}

func body(old int64, proof audit.Consistency, checkpoint string) string {
	return request{old, proof.Hashes, checkpoint}.encode()
}

func TestCosignature(t *testing.T) {
	signer, key := logKey(t, origin, 1)
	s := newServer(t, nil, Log{origin, []string{key}})
	l := newTree(t, 20, 20)
	c := sign(t, l, 7, signer)
	lines, err := Submit(t.Context(), s.Client(), s.URL, prove(t, l, 0, 7), c)
	if err != nil {
		t.Fatal(err)
	}

	// By the words of the specification.
	text, _, _ := strings.Cut(c, "\n\n")
	fields := strings.Fields(lines)
	raw, err := base64.StdEncoding.DecodeString(fields[2])
	if err != nil || len(fields) != 3 || fields[0] != "—" || fields[1] != "witness.example/w1" || len(raw) != 4+8+64 || !strings.HasSuffix(lines, "\n") {
		t.Fatalf("cosignature is %q", lines)
	}
	if at := binary.BigEndian.Uint64(raw[4:]); at != firstSecond {
		t.Errorf("the time is %d", at)
	}
	public := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, 32)).Public().(ed25519.PublicKey)
	message := fmt.Sprintf("cosignature/v1\ntime %d\n%s\n", firstSecond, text)
	if !ed25519.Verify(public, []byte(message), raw[12:]) {
		t.Error("the signature is not over the time and the checkpoint")
	}

	// The cosigned checkpoint is one still, and names the witness.
	cosigned := c + lines
	if _, err := audit.OpenCheckpoint(cosigned, key); err != nil {
		t.Error(err)
	}
	got, err := Cosignatures(cosigned, []string{s.key})
	if err != nil || len(got) != 1 || got[0].Name != "witness.example/w1" || !got[0].Time.Equal(time.Unix(firstSecond, 0)) {
		t.Errorf("Cosignatures = %v, %v", got, err)
	}
}

func TestCosignaturesOfOthers(t *testing.T) {
	signer, key := logKey(t, origin, 1)
	s := newServer(t, nil, Log{origin, []string{key}})
	l := newTree(t, 20, 20)
	c := sign(t, l, 7, signer)
	lines, err := Submit(t.Context(), s.Client(), s.URL, prove(t, l, 0, 7), c)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := NewKey("witness.example/w1", bytes.Repeat([]byte{8}, 32))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Cosignatures(c+lines, []string{stranger.VerifierKey()}); err != nil || len(got) != 0 {
		t.Errorf("by a witness that is not known: %v, %v", got, err)
	}
	if got, err := Cosignatures(c, []string{s.key}); err != nil || len(got) != 0 {
		t.Errorf("without a cosignature: %v, %v", got, err)
	}
	other := sign(t, l, 8, signer)
	if got, err := Cosignatures(other+lines, []string{s.key}); err == nil {
		t.Errorf("a cosignature of another checkpoint: %v", got)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Fields(lines)[2])
	if err != nil {
		t.Fatal(err)
	}
	raw[11]++
	later := "— witness.example/w1 " + base64.StdEncoding.EncodeToString(raw) + "\n"
	if got, err := Cosignatures(c+later, []string{s.key}); err == nil {
		t.Errorf("a cosignature with another time: %v", got)
	}
	for _, bad := range []string{"", "x", key, s.key + "A", strings.Replace(s.key, "w1", "w2", 1), strings.Replace(s.key, "+", "+ ", 1)} {
		if _, err := Cosignatures(c+lines, []string{bad}); err == nil {
			t.Errorf("the key %q was accepted", bad)
		}
	}
}

// This checkpoint was cosigned by litewitness v0.7.0 (filippo.io/torchwood).
func TestCosignatureOfAnotherImplementation(t *testing.T) {
	const (
		logKey     = "vogt/x/log+fb67041f+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c"
		witnessKey = "example.com/witness+0cb5b75c+BMQYUhGu5nH4DJymBpl13jEF36vFUMZhbiC7E0n5PvNI"
		cosigned   = "vogt/x/log\n30\nsTk0hcQBftjGAmGSLonZEfEvrwjUFCS2K4l0E27w9+4=\n\n" +
			"— vogt/x/log +2cEHxF139tUKHfTxJ1qHW7lrWi6xKMvIRHFuzJy/VRD4uzki2SUA9quqk+lavTPlgQVEMqK+F7zH5SwR/6qnmm61g8=\n" +
			"— example.com/witness DLW3XAAAAABrDV62NuiK99gofQxaqh1oyBaGY/RZCLbr7ubydEgwoj9KV3E214l2jmOOG46tBW0K/2Ysu861YVueOmRcJ7YfGm+bCg==\n"
	)
	if c, err := audit.OpenCheckpoint(cosigned, logKey); err != nil || c.Size != 30 {
		t.Errorf("OpenCheckpoint = %+v, %v", c, err)
	}
	got, err := Cosignatures(cosigned, []string{witnessKey})
	if err != nil || len(got) != 1 || got[0].Name != "example.com/witness" || got[0].Time.Unix() != 0x6b0d5eb6 {
		t.Errorf("Cosignatures = %v, %v", got, err)
	}
}

// A signature for a log is no cosignature and the other way round, even with
// the same key.
func TestDomainSeparation(t *testing.T) {
	signer, key := logKey(t, origin, 9)
	l := newTree(t, 7, 7)
	c := sign(t, l, 7, signer)
	k, err := NewKey(origin, bytes.Repeat([]byte{9}, 32))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Cosignatures(c, []string{k.VerifierKey()}); err != nil || len(got) != 0 {
		t.Errorf("the log's signature counts as a cosignature: %v, %v", got, err)
	}
	text, _, _ := strings.Cut(c, "\n\n")
	line, err := k.cosign(text+"\n", time.Unix(firstSecond, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audit.OpenCheckpoint(text+"\n\n"+line, key); err == nil {
		t.Error("a cosignature counts as the log's signature")
	}
}

func TestAnswers(t *testing.T) {
	signer, key := logKey(t, origin, 1)
	impostor, _ := logKey(t, origin, 2)
	stranger, _ := logKey(t, "vogt/y/log", 1)
	l, fork := newTree(t, 40, 40), newTree(t, 40, 5)
	good := sign(t, l, 30, signer)
	tests := []struct {
		name, body string
		status     int
		kind       string // beginning of the content type
		answer     string // beginning of the answer
	}{
		{"good", body(20, prove(t, l, 20, 30), good), 200, "text/plain", "— witness.example/w1 "},
		{"the same again", body(20, audit.Consistency{}, sign(t, l, 20, signer)), 200, "text/plain", "— witness.example/w1 "},
		{"cosigned by others", body(20, prove(t, l, 20, 30), good+"— x AAAAAAAA\n"), 200, "text/plain", "— witness.example/w1 "},
		{"old size too small", body(10, prove(t, l, 10, 30), good), 409, "text/x.tlog.size", "20\n"},
		{"old size zero", body(0, audit.Consistency{}, good), 409, "text/x.tlog.size", "20\n"},
		{"old size too large", body(25, prove(t, l, 25, 30), good), 409, "text/x.tlog.size", "20\n"},
		{"an earlier checkpoint", body(10, audit.Consistency{}, sign(t, l, 10, signer)), 409, "text/x.tlog.size", "20\n"},
		{"old size above the checkpoint", body(20, audit.Consistency{}, sign(t, l, 10, signer)), 400, "text/plain", "the old size 20 is greater"},
		{"no proof", body(20, audit.Consistency{}, good), 422, "text/plain", ""},
		{"another proof", body(20, prove(t, l, 20, 31), good), 422, "text/plain", ""},
		{"proof for equal sizes", body(20, prove(t, l, 20, 30), sign(t, l, 20, signer)), 422, "text/plain", ""},
		{"a fork", body(20, prove(t, fork, 20, 30), sign(t, fork, 30, signer)), 422, "text/plain", ""},
		{"a fork of equal size", body(20, audit.Consistency{}, sign(t, fork, 20, signer)), 409, "text/plain", "another checkpoint of size 20"},
		{"by an impostor", body(20, prove(t, l, 20, 30), sign(t, l, 30, impostor)), 403, "text/plain", ""},
		{"signature broken", body(20, prove(t, l, 20, 30), strings.Replace(good, "\n30\n", "\n31\n", 1)), 403, "text/plain", ""},
		{"a log not known", body(20, prove(t, l, 20, 30), sign(t, l, 30, stranger)), 404, "text/plain", "this witness does not watch"},
		{"an impostor of an unknown origin", body(20, prove(t, l, 20, 30), strings.Replace(good, origin, "vogt/z/log", 1)), 404, "text/plain", ""},
		{"not a request", "hello", 400, "text/plain", "bad request"},
		{"no checkpoint", "old 20\n\n", 400, "text/plain", "bad request"},
		{"not a note", "old 20\n\nhello\n", 400, "text/plain", "bad request"},
		{"not a checkpoint", "old 20\n\nhello\n\n— x AAAAAAAA\n", 400, "text/plain", "bad request"},
		{"too long", body(20, prove(t, l, 20, 30), good) + strings.Repeat("x", maxBody), 413, "text/plain", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, nil, Log{origin, []string{key}})
			if _, err := Submit(t.Context(), s.Client(), s.URL, prove(t, l, 0, 20), sign(t, l, 20, signer)); err != nil {
				t.Fatal(err)
			}
			status, kind, answer := s.post(t, tt.body)
			if status != tt.status || !strings.HasPrefix(kind, tt.kind) || !strings.HasPrefix(answer, tt.answer) {
				t.Errorf("the answer is %d %s %q, want %d %s %q", status, kind, answer, tt.status, tt.kind, tt.answer)
			}
			if got, err := Cosignatures(sign(t, l, 30, signer)+answer, []string{s.key}); status != 200 && err == nil && len(got) > 0 {
				t.Errorf("a refusal holds the cosignature %v", got)
			}
			// Whatever was refused left the state as it was.
			if tt.status != 200 {
				if _, err := Submit(t.Context(), s.Client(), s.URL, prove(t, l, 20, 35), sign(t, l, 35, signer)); err != nil {
					t.Errorf("after it: %v", err)
				}
			}
			if strings.Contains(tt.name, "fork") && !strings.Contains(s.logs.String(), "submitted=") {
				t.Errorf("nothing of the fork is in the journal: %s", s.logs)
			}
		})
	}
}

func TestOtherPathsAndMethods(t *testing.T) {
	_, key := logKey(t, origin, 1)
	s := newServer(t, nil, Log{origin, []string{key}})
	for _, tt := range []struct {
		method, path string
		status       int
	}{{"GET", "/add-checkpoint", 405}, {"PUT", "/add-checkpoint", 405}, {"POST", "/", 404}, {"POST", "/add-checkpoint/x", 404}} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, s.URL+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.status {
			t.Errorf("%s %s: %d, want %d", tt.method, tt.path, resp.StatusCode, tt.status)
		}
	}
}

func TestEmptyLogThenGrowth(t *testing.T) {
	signer, key := logKey(t, origin, 1)
	s := newServer(t, nil, Log{origin, []string{key}})
	l := newTree(t, 20, 20)
	for _, step := range [][2]int64{{0, 0}, {0, 0}, {0, 1}, {1, 20}, {20, 20}} {
		if _, err := Submit(t.Context(), s.Client(), s.URL+"/", prove(t, l, step[0], step[1]), sign(t, l, step[1], signer)); err != nil {
			t.Errorf("from %d to %d: %v", step[0], step[1], err)
		}
	}
}

func TestTwoKeysAndExtensionLines(t *testing.T) {
	signer, key := logKey(t, origin, 1)
	next, nextKey := logKey(t, origin, 2)
	s := newServer(t, nil, Log{origin, []string{key, nextKey}})
	l := newTree(t, 20, 20)
	if _, err := Submit(t.Context(), s.Client(), s.URL, prove(t, l, 0, 5), sign(t, l, 5, signer)); err != nil {
		t.Fatal(err)
	}
	c, _, _ := strings.Cut(sign(t, l, 9, next), "\n\n")
	b, err := note.Sign(&note.Note{Text: c + "\nextension\n"}, next)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := Submit(t.Context(), s.Client(), s.URL, prove(t, l, 5, 9), string(b))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Cosignatures(string(b)+lines, []string{s.key}); err != nil || len(got) != 1 {
		t.Errorf("Cosignatures = %v, %v", got, err)
	}
	if _, err := Submit(t.Context(), s.Client(), s.URL, prove(t, l, 9, 20), sign(t, l, 20, signer)); err != nil {
		t.Errorf("after extension lines: %v", err)
	}
}

func TestSubmitConflict(t *testing.T) {
	signer, key := logKey(t, origin, 1)
	s := newServer(t, nil, Log{origin, []string{key}})
	l := newTree(t, 20, 20)
	if _, err := Submit(t.Context(), s.Client(), s.URL, prove(t, l, 0, 5), sign(t, l, 5, signer)); err != nil {
		t.Fatal(err)
	}
	var conflict *Conflict
	if _, err := Submit(t.Context(), s.Client(), s.URL, prove(t, l, 0, 9), sign(t, l, 9, signer)); !errors.As(err, &conflict) || conflict.Size != 5 {
		t.Fatalf("Submit: %v", err)
	}
	if _, err := Submit(t.Context(), s.Client(), s.URL, prove(t, l, conflict.Size, 9), sign(t, l, 9, signer)); err != nil {
		t.Errorf("from the size that was named: %v", err)
	}
}

func TestSubmitToOthers(t *testing.T) {
	signer, _ := logKey(t, origin, 1)
	l := newTree(t, 20, 20)
	c, proof := sign(t, l, 9, signer), prove(t, l, 0, 9)
	for name, answer := range map[string]http.HandlerFunc{
		"not found":          http.NotFound,
		"no lines":           func(http.ResponseWriter, *http.Request) {},
		"page":               func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>\n") },
		"another checkpoint": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x\n\n— x AAAAAAAA\n") },
		"endless":            func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("— x AAAAAAAA\n", 1<<16)) },
		"nonsense size": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/x.tlog.size")
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, "-1\n")
		},
		"conflict without a size": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "5", http.StatusConflict) },
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(answer)
			defer s.Close()
			var conflict *Conflict
			if lines, err := Submit(t.Context(), s.Client(), s.URL, proof, c); err == nil || errors.As(err, &conflict) {
				t.Errorf("Submit = %q, %v", lines, err)
			}
		})
	}
	if _, err := Submit(t.Context(), http.DefaultClient, "http://127.0.0.1:0", audit.Consistency{Old: -1}, c); err == nil || !strings.Contains(err.Error(), "nothing was sent") {
		t.Errorf("a proof that cannot be sent: %v", err)
	}
}

// Many clients at once: what is cosigned is one history, each state after the
// one before, whatever the order.
func TestSubmitAtOnce(t *testing.T) {
	signer, key := logKey(t, origin, 1)
	s := newServer(t, nil, Log{origin, []string{key}})
	const size = 60
	trees := []tree{newTree(t, size, size), newTree(t, size, 0)} // two histories
	texts := make([][]string, len(trees))
	for i := range texts {
		for n := range int64(size + 1) {
			texts[i] = append(texts[i], sign(t, trees[i], n, signer))
		}
	}
	var mu sync.Mutex
	cosigned := map[int][]int64{} // by tree
	var wg sync.WaitGroup
	for client := range 6 {
		wg.Go(func() {
			which := client % 2
			for n := int64(1 + client/2); n <= size; n += 3 {
				for old := int64(0); ; {
					p, err := audit.ProveConsistency(old, n, trees[which])
					if err != nil {
						t.Error(err)
						return
					}
					_, err = Submit(context.Background(), s.Client(), s.URL, p, texts[which][n])
					var conflict *Conflict
					if errors.As(err, &conflict) && conflict.Size <= n && conflict.Size != old {
						old = conflict.Size
						continue
					}
					if err == nil {
						mu.Lock()
						cosigned[which] = append(cosigned[which], n)
						mu.Unlock()
					}
					break
				}
			}
		})
	}
	wg.Wait()
	if len(cosigned[0]) > 0 && len(cosigned[1]) > 0 || len(cosigned[0])+len(cosigned[1]) == 0 {
		t.Errorf("cosigned sizes of two histories: %v", cosigned)
	}
}

func TestFiles(t *testing.T) {
	ctx := t.Context()
	signer, _ := logKey(t, origin, 1)
	l := newTree(t, 20, 20)
	dir := filepath.Join(t.TempDir(), "a", "b")
	f, err := OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	state := func(size int64) State {
		text := sign(t, l, size, signer)
		root, err := tlog.TreeHash(size, l)
		if err != nil {
			t.Fatal(err)
		}
		return State{size, root, text}
	}
	if s, err := f.Latest(ctx, origin); err != nil || s != (State{}) {
		t.Fatalf("a new store has %+v, %v", s, err)
	}
	steps := []struct {
		old, next State
		want      bool
	}{
		{State{}, state(5), true},
		{State{}, state(6), false},
		{state(4), state(6), false},
		{state(5), state(5), true},
		{state(5), state(9), true},
		{state(5), state(9), false},
		{State{Size: 9}, state(10), false},
	}
	for i, s := range steps {
		if got, err := f.Advance(ctx, origin, s.old, s.next); err != nil || got != s.want {
			t.Errorf("step %d: %v, %v", i, got, err)
		}
	}
	g, err := OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := g.Latest(ctx, origin); err != nil || s != state(9) {
		t.Errorf("opened again, it has %+v, %v", s, err)
	}
	if s, err := g.Latest(ctx, "vogt/y/log"); err != nil || s != (State{}) {
		t.Errorf("of another log it has %+v, %v", s, err)
	}

	// What is damaged is an error, not a log that was never seen.
	path := g.path(origin)
	for _, content := range []string{"", "x", "vogt/y/log\n5\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— x AAAA\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := g.Latest(ctx, origin); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("with %q it has %+v, %v", content, s, err)
		}
		if ok, err := g.Advance(ctx, origin, State{}, state(5)); ok || err == nil {
			t.Errorf("with %q it goes on: %v, %v", content, ok, err)
		}
	}
}

// brokenStore fails where the test wants it to.
type brokenStore struct{ latest, advance error }

func (b brokenStore) Latest(context.Context, string) (State, error) { return State{}, b.latest }
func (b brokenStore) Advance(context.Context, string, State, State) (bool, error) {
	return false, b.advance
}

func TestNothingIsCosignedWithoutState(t *testing.T) {
	signer, key := logKey(t, origin, 1)
	l := newTree(t, 20, 20)
	full := errors.New("disk full at /secret/path")
	for name, store := range map[string]Store{"read": brokenStore{latest: full}, "write": brokenStore{advance: full}} {
		s := newServer(t, store, Log{origin, []string{key}})
		status, _, answer := s.post(t, body(0, audit.Consistency{}, sign(t, l, 5, signer)))
		if status != 500 || strings.Contains(answer, "—") || strings.Contains(answer, "secret") {
			t.Errorf("%s: %d %q", name, status, answer)
		}
	}
	s := newServer(t, brokenStore{}, Log{origin, []string{key}})
	if status, kind, answer := s.post(t, body(0, audit.Consistency{}, sign(t, l, 5, signer))); status != 409 || kind != "text/x.tlog.size" || answer != "0\n" {
		t.Errorf("not advanced: %d %s %q", status, kind, answer)
	}
}

func TestNewRefuses(t *testing.T) {
	_, key := logKey(t, origin, 1)
	k, err := NewKey("w", make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	good := Config{Key: k, Store: brokenStore{}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Logs: []Log{{origin, []string{key}}}}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"zero":       func(c *Config) { *c = Config{} },
		"no key":     func(c *Config) { c.Key = Key{} },
		"no store":   func(c *Config) { c.Store = nil },
		"no clock":   func(c *Config) { c.Now = nil },
		"no origin":  func(c *Config) { c.Logs = []Log{{"", []string{key}}} },
		"no log key": func(c *Config) { c.Logs = []Log{{origin, nil}} },
		"bad key":    func(c *Config) { c.Logs = []Log{{origin, []string{"x"}}} },
		"twice":      func(c *Config) { c.Logs = append(c.Logs, c.Logs...) },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
	for _, name := range []string{"", "a b", "a+b", "a\nb"} {
		if _, err := NewKey(name, make([]byte, 32)); err == nil {
			t.Errorf("the name %q was accepted", name)
		}
	}
	if _, err := NewKey("w", make([]byte, 31)); err == nil {
		t.Error("a short seed was accepted")
	}
	if text := fmt.Sprintf("%v %+v %s", k, k, k); strings.Contains(text, "[0") || text != "w w w" {
		t.Errorf("a key prints as %s", text)
	}
}

func TestParseRequest(t *testing.T) {
	const hash = "PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw="
	for _, tt := range []struct {
		name, body string
		ok         bool
	}{
		{"no proof", "old 0\n\nx", true},
		{"proof", "old 20852014\n" + hash + "\n" + hash + "\n\nx\n", true},
		{"63 lines", "old 1\n" + strings.Repeat(hash+"\n", 63) + "\nx", true},
		{"64 lines", "old 1\n" + strings.Repeat(hash+"\n", 64) + "\nx", false},
		{"nothing", "", false},
		{"no old", "1\n\nx", false},
		{"capitals", "Old 1\n\nx", false},
		{"two spaces", "old  1\n\nx", false},
		{"leading zero", "old 01\n\nx", false},
		{"negative", "old -1\n\nx", false},
		{"space behind", "old 1 \n\nx", false},
		{"carriage return", "old 1\r\n\r\nx", false},
		{"carriage return in the proof", "old 1\n" + hash + "\r\n\nx", false},
		{"short hash", "old 1\n" + hash[4:] + "\n\nx", false},
		{"loose hash", "old 1\n" + hash[:42] + "x=\n\nx", false},
		{"no empty line", "old 1\n" + hash + "\n", false},
		{"no checkpoint", "old 1\n" + hash + "\n\n", false},
	} {
		r, err := parseRequest(tt.body)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %+v, %v", tt.name, r, err)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	signer, _ := logKey(f, origin, 1)
	l := newTree(f, 20, 20)
	f.Add(body(5, prove(f, l, 5, 20), sign(f, l, 20, signer)))
	f.Add("old 0\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := parseRequest(s)
		if err == nil && r.encode() != s {
			t.Errorf("%q and %q are read as the same request", s, r.encode())
		}
	})
}

// Whatever is posted, nothing but a true continuation is cosigned.
func FuzzHandler(f *testing.F) {
	signer, key := logKey(f, origin, 1)
	l := newTree(f, 20, 20)
	good := body(5, prove(f, l, 5, 20), sign(f, l, 20, signer))
	f.Add(good)
	f.Add(body(5, audit.Consistency{}, sign(f, l, 5, signer)))
	f.Add(body(0, audit.Consistency{}, sign(f, l, 20, signer)))
	k, err := NewKey("w", make([]byte, 32))
	if err != nil {
		f.Fatal(err)
	}
	root, err := tlog.TreeHash(5, l)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := New(Config{Key: k, Logs: []Log{{origin, []string{key}}}, Store: &memStore{State{5, root, sign(t, l, 5, signer)}},
			Now: func() time.Time { return time.Unix(firstSecond, 0) }, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/add-checkpoint", strings.NewReader(s)))
		if w.Code != 200 {
			return
		}
		_, checkpoint, _ := strings.Cut(s, "\n\n")
		c, err := audit.OpenCheckpoint(checkpoint, key)
		if err != nil || c.Size != 5 && c.Size != 20 {
			t.Errorf("cosigned: %q", s)
		}
	})
}

// memStore is a Store for one log and one goroutine.
type memStore struct{ state State }

func (m *memStore) Latest(context.Context, string) (State, error) { return m.state, nil }
func (m *memStore) Advance(_ context.Context, _ string, old, next State) (bool, error) {
	if m.state != old {
		return false, nil
	}
	m.state = next
	return true, nil
}
