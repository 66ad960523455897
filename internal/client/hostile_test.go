package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"vogt/internal/api"
	"vogt/internal/audit"
	"vogt/internal/client/clienttest"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

// hostileIDs are ids that would do something where they are printed, run or used
// as a name.
var hostileIDs = []string{
	"", "x", "../../../etc/passwd", "\x1b]0;owned\x07", "1\nExecute: rm -rf ~", "00000001-0000-4000-8000-00000000000g",
	"00000001-0000-4000-8000-000000000001 --wait", "000000010000400080000000000000001", "00000001-0000-4000-8000-0000000000é",
	"{00000001-0000-4000-8000-00000000001}", "00000001_0000_4000_8000_000000000001",
}

func TestIDs(t *testing.T) {
	for _, id := range []string{"00000001-0000-4000-8000-0123456789ab", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"} {
		if !isUUID(id) {
			t.Errorf("%q is refused", id)
		}
	}
	for _, id := range hostileIDs {
		if isUUID(id) || isUse(id) {
			t.Errorf("%q is taken", id)
		}
	}
	if !isUse("0123456789abcdef0123456789ABCDEF") || isUse("0123456789abcde") || isUse(strings.Repeat("a", 65)) || isUse("0123456789abcdeŦ") {
		t.Error("names of executions are not told apart")
	}
}

// However an authority names a grant, a change or an execution, the name goes
// nowhere unless it has the form of one.
func TestHostileIDsAreRefused(t *testing.T) {
	ctx := context.Background()
	a, owner, agent := setUp(t)
	for i, id := range hostileIDs {
		argv := []string{"make", strconv.Itoa(i)}
		a.Lie = nil
		g := ask(t, agent, argv...)
		a.Settle(g.ID, grant.Approved, grant.Once)
		lie := func(suffix string, change func(map[string]any)) {
			a.Lie = func(path string, _ http.Header, answer map[string]any) {
				if strings.HasSuffix(path, suffix) {
					change(answer)
				}
			}
		}
		lie(api.PathGrants, func(answer map[string]any) {
			answer["id"] = id
			if list, ok := answer["data"].([]any); ok {
				list[0].(map[string]any)["id"] = id
			}
		})
		wantKind(t, second(agent.Ask(ctx, request("other", argv[1]))), Malformed)
		wantKind(t, second(owner.Grants(ctx, Filter{})), Malformed)
		lie(api.PathTrust, func(answer map[string]any) { answer["id"] = id })
		if _, err := owner.Prepare(ctx, api.TrustDevice, map[string]string{"name": "x"}); err == nil {
			t.Errorf("a change with the id %q was taken", id)
		}
		lie("/consume", func(answer map[string]any) { answer["use_id"] = id })
		wantKind(t, second(agent.Redeem(ctx, g.ID, request(argv...))), Malformed)
	}
}

// A use is worth nothing without the proof of what was redeemed.
func TestReceiptMustFit(t *testing.T) {
	restate := func(t *testing.T, answer map[string]any, change func(*statement.Statement)) {
		var r api.Receipt
		raw, err := json.Marshal(answer["receipt"])
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		change(&r.Statement)
		r.Digest = r.Statement.Digest() // so that only the content tells
		answer["receipt"] = r
	}
	other := "other"
	number := uint64(7)
	file := &statement.File{Path: &other}
	statements := map[string]func(*statement.Statement){
		"command":        func(s *statement.Statement) { s.Argv = []string{"rm"} },
		"no command":     func(s *statement.Statement) { s.Argv = nil },
		"grant":          func(s *statement.Statement) { s.GrantID = other },
		"purpose":        func(s *statement.Statement) { s.Purpose = statement.Trust },
		"issuer":         func(s *statement.Statement) { s.Issuer = "http://127.0.0.1:1" },
		"requester":      func(s *statement.Statement) { s.Requester = &other },
		"no requester":   func(s *statement.Statement) { s.Requester = nil },
		"host":           func(s *statement.Statement) { s.Host = &other },
		"user":           func(s *statement.Statement) { s.RunAsName = &other },
		"program":        func(s *statement.Statement) { s.Executable = file },
		"interpreter":    func(s *statement.Statement) { s.Interpreters = []statement.File{*file} },
		"folder":         func(s *statement.Statement) { s.Cwd = file },
		"caller":         func(s *statement.Statement) { s.CallerUID = &number },
		"standard input": func(s *statement.Statement) { s.Stdin = &other },
		"box":            func(s *statement.Statement) { s.Confinement = &other },
		"network":        func(s *statement.Statement) { s.NetworkMode = &other },
	}
	lies := map[string]func(t *testing.T, answer map[string]any){
		"no receipt":    func(_ *testing.T, answer map[string]any) { delete(answer, "receipt") },
		"null":          func(_ *testing.T, answer map[string]any) { answer["receipt"] = nil },
		"empty receipt": func(_ *testing.T, answer map[string]any) { answer["receipt"] = map[string]any{} },
		"digest": func(_ *testing.T, answer map[string]any) {
			answer["receipt"].(map[string]any)["digest"] = strings.Repeat("0", 64)
		},
		"grant of the receipt": func(_ *testing.T, answer map[string]any) {
			answer["receipt"].(map[string]any)["grant_id"] = "00000009-0000-4000-8000-000000000000"
		},
		"no checkpoint": func(_ *testing.T, answer map[string]any) { delete(answer["receipt"].(map[string]any), "checkpoint") },
		"checkpoint by another key": func(t *testing.T, answer map[string]any) {
			stranger := clienttest.New(t)
			_, theirs, _ := setUpAt(t, stranger)
			text, err := theirs.currentCheckpoint(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			answer["receipt"].(map[string]any)["checkpoint"] = text
		},
	}
	for name, change := range statements {
		lies["statement: "+name] = func(t *testing.T, answer map[string]any) { restate(t, answer, change) }
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			a, _, agent := setUp(t)
			g := ask(t, agent, "make", "test")
			a.Settle(g.ID, grant.Approved, grant.Once)
			a.Lie = func(path string, _ http.Header, answer map[string]any) {
				if strings.HasSuffix(path, "/consume") {
					lie(t, answer)
				}
			}
			use, err := agent.Redeem(context.Background(), g.ID, request("make", "test"))
			if e := wantKind(t, err, Distrusted); use != "" {
				t.Errorf("use %q beside %v", use, e)
			}
		})
	}
}

// Changes of the key that lies beside the remembered checkpoints are noticed,
// and not taken for a change of the authority's.
func TestPinnedKeyIsCompared(t *testing.T) {
	ctx := context.Background()
	_, owner, _ := setUp(t)
	path := owner.seen.keyFile(owner.Authority())
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, _, otherKey := strangersKey(t)
	for name, content := range map[string]string{"another authority's key": otherKey + "\n", "no key": "x\n", "cut": string(original[:len(original)/2])} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		e := wantKind(t, second(reopen(t, owner).Me(ctx)), BadFile)
		if e.Where != path || !strings.Contains(e.Detail, owner.file.path) {
			t.Errorf("%s: %v does not name both files", name, e)
		}
		again, err := Contact(owner.Authority(), owner.file, owner.opts)
		if err != nil {
			t.Fatal(err)
		}
		e = wantKind(t, again.LogIn(ctx, ownerEmail, owner.Login().KeyPath), BadFile)
		if e.Where != path {
			t.Errorf("%s: a new login says %v", name, e)
		}
		again.Close()
	}
	if err := os.WriteFile(path, original, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := reopen(t, owner).Me(ctx); err != nil {
		t.Errorf("with the key in its place again: %v", err)
	}
}

func strangersKey(t *testing.T) (*clienttest.Authority, *Client, string) {
	t.Helper()
	a := clienttest.New(t)
	_, owner, _ := setUpAt(t, a)
	return a, owner, owner.Login().LogKey
}

// A disk that is full is no fault of the authority's.
func TestLocalFaultsAreLocal(t *testing.T) {
	_, owner, _ := setUp(t)
	const path = "/home/x/state/log/h/checkpoint"
	for name, cause := range map[string]error{
		"write":  &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC},
		"rename": &os.LinkError{Op: "rename", Old: path + ".1", New: path, Err: syscall.ENOSPC},
		"bare":   syscall.ENOSPC,
	} {
		e := wantKind(t, owner.alarm(errors.Join(errors.New("audit: remembering a checkpoint"), cause)), BadFile)
		if !errors.Is(e, syscall.ENOSPC) || name != "bare" && e.Where != path {
			t.Errorf("%s: %v", name, e)
		}
	}
	wantKind(t, owner.alarm(errors.New("no signature")), Distrusted)
}

// The real thing, as far as it can be had without a small disk: the folder of
// the memory cannot be written.
func TestMemoryThatCannotBeWritten(t *testing.T) {
	a, owner, agent := setUp(t)
	folder := owner.seen.folderOf(owner.Authority())
	ask(t, agent, "x") // the log grows
	if err := os.Rename(folder, folder+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, []byte("a file in the folder's place"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.Write("note")
	e := wantKind(t, second(reopen(t, owner).Me(context.Background())), BadFile)
	if !strings.Contains(e.Where, folder) {
		t.Errorf("%v does not name %s", e, folder)
	}
}

// A login or key that another user owns could be changed by that user at any
// time.
func TestFilesOfOthersAreRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("giving a file away takes root")
	}
	_, owner, _ := setUp(t)
	key := owner.Login().KeyPath
	for _, path := range []string{owner.file.path, key} {
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
	}
	if e := wantKind(t, second(owner.file.Load()), BadFile); !strings.Contains(e.Detail, "12345") {
		t.Errorf("the owner is not named: %v", e)
	}
	wantKind(t, second(Open(owner.file, owner.opts)), BadFile)
	wantKind(t, second(owner.key(key)), KeyLocked)
	wantKind(t, CheckKeyFile(key), KeyLocked)
	if err := CheckKeyFile(key + ".missing"); err != nil {
		t.Error(err)
	}
}

// An export that ends before its end is a log that does not fit, and it is said
// where it ended.
func TestVerifyNamesWhereAnExportEnded(t *testing.T) {
	a, owner, _ := setUp(t)
	for range 6 {
		a.Write("note")
	}
	ctx := context.Background()
	if _, err := owner.Me(ctx); err != nil { // the log is remembered
		t.Fatal(err)
	}
	head, err := owner.currentCheckpoint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var export bytes.Buffer
	if err := owner.Export(ctx, &export, false); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(export.String(), "\n")
	size := len(lines) - 2 // the checkpoint, and nothing after the last line end
	problem := `{"problem":{"type":"about:blank","title":"T","status":500,"detail":"Record 4 cannot be read."}}` + "\n"
	type ending struct {
		name  string
		send  string
		abort bool
		want  []string
		index int64
	}
	var now atomic.Pointer[ending]
	a.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/export") {
			return false
		}
		tt := now.Load()
		if tt.send != "" {
			w.Header().Set(api.CheckpointHeader, base64.StdEncoding.EncodeToString([]byte(head)))
			w.Write([]byte(tt.send))
			w.(http.Flusher).Flush()
		}
		if tt.abort {
			panic(http.ErrAbortHandler)
		}
		return true
	}
	for _, tt := range []ending{
		{"ends", strings.Join(lines[:4], ""), false, []string{"after 4 of"}, 4},
		{"breaks off", strings.Join(lines[:4], ""), true, []string{"after 4 of"}, 4},
		{"breaks off in a line", strings.Join(lines[:4], "") + lines[4][:9], true, []string{"after 4 of"}, 4},
		{"breaks off before all", "", true, []string{"after 0 of"}, 0},
		{"says why", strings.Join(lines[:4], "") + problem, false, []string{"after 4 of", "Record 4 cannot be read."}, 4},
		{"lacks the checkpoint", strings.Join(lines[:size], ""), false, []string{"before the checkpoint"}, int64(size)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now.Store(&tt)
			again := reopen(t, owner)
			_, err := again.VerifyLog(ctx)
			m, ok := errors.AsType[*audit.Mismatch](err)
			if !ok || m.Kind != audit.Missing || m.Index != tt.index {
				t.Fatalf("got %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
			var out bytes.Buffer
			if err := again.Export(ctx, &out, false); err == nil {
				t.Error("the export counts as whole")
			}
		})
	}
}

// setUpAt is setUp at an authority of the test's own.
func setUpAt(t *testing.T, a *clienttest.Authority) (home Home, owner, agent *Client) {
	t.Helper()
	home = Home{Folder: t.TempDir()}
	memory := t.TempDir()
	key, public := newKey(t)
	a.AddPerson(ownerEmail, "", public)
	c, err := Contact(a.URL, home.Default(), Options{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.LogIn(context.Background(), ownerEmail, key); err != nil {
		t.Fatal(err)
	}
	return home, c, nil
}
