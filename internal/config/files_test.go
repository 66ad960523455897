package config

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c")
	for _, tt := range []struct {
		content string
		perm    fs.FileMode
	}{{"first", 0o600}, {"second, longer", 0o644}, {"", 0o600}, {"\x00\xff", 0o666}} {
		if err := WriteFile(path, []byte(tt.content), tt.perm); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != tt.content {
			t.Errorf("got %q, %v, want %q", got, err, tt.content)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode() != tt.perm {
			t.Errorf("mode %v, want %v", info.Mode(), tt.perm)
		}
	}
	onlyEntry(t, dir, "c")
}

// What fails must leave the old content and nothing else.
func TestWriteFileFails(t *testing.T) {
	dir := t.TempDir()
	if err := WriteFile(filepath.Join(dir, "none", "c"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	occupied := filepath.Join(dir, "c")
	if err := os.MkdirAll(filepath.Join(occupied, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(occupied, []byte("x"), 0o600); err == nil || !strings.Contains(err.Error(), occupied) {
		t.Errorf("a folder in the place: %v", err)
	}
	onlyEntry(t, dir, "c")
}

func TestWriteFileReplacesLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "old" {
		t.Errorf("the target of the link was written: %q, %v", got, err)
	}
}

func onlyEntry(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("the folder holds %v, want %s alone", entries, name)
	}
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := AcquireLock(ended(), path)
	if err != nil {
		t.Fatal("a free lock, and no time to wait:", err)
	}
	if _, err := AcquireLock(ended(), path); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path) {
		t.Errorf("a held lock: %v", err)
	}
	got := make(chan error)
	go func() {
		second, err := AcquireLock(t.Context(), path)
		if err == nil {
			second.Unlock()
		}
		got <- err
	}()
	first.Unlock()
	first.Unlock()
	if err := <-got; err != nil {
		t.Error("after it was given back:", err)
	}
}

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var group sync.WaitGroup
	inside := make(chan struct{}, 1)
	for range 20 {
		group.Go(func() {
			lock, err := AcquireLock(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			select {
			case inside <- struct{}{}:
				<-inside
			default:
				t.Error("two holders at once")
			}
			lock.Unlock()
		})
	}
	group.Wait()
}

// A holder that is killed must not keep the lock.
func TestLockEndsWithProcess(t *testing.T) {
	const name = "VOGT_TEST_LOCK"
	if path := os.Getenv(name); path != "" {
		lock, err := AcquireLock(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Unlock()
		fmt.Println("locked")
		<-t.Context().Done() // never: it is killed first
	}
	path := filepath.Join(t.TempDir(), "lock")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), name+"="+path, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	if _, err := AcquireLock(ended(), path); !errors.Is(err, context.Canceled) {
		t.Errorf("while the other process lives: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is that it was killed
	lock, err := AcquireLock(ended(), path)
	if err != nil {
		t.Fatal("after the other process was killed:", err)
	}
	lock.Unlock()
}
