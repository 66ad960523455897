//go:build unix

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"vogt/internal/authority"
	"vogt/internal/store"
	"vogt/internal/store/sqlite"
	"vogt/internal/vogtdtest"
)

// refused checks how a vogtd refused: with this code, a message that contains
// the words, and no trace of a crash.
func refused(t *testing.T, r vogtdtest.Refusal, code int, words ...string) {
	t.Helper()
	if r.Code != code {
		t.Errorf("exit code %d, want %d", r.Code, code)
	}
	for _, w := range words {
		if !strings.Contains(r.Output, w) {
			t.Errorf("the message does not say %q", w)
		}
	}
	if strings.Contains(r.Output, "goroutine ") {
		t.Error("it crashed")
	}
	if t.Failed() {
		t.Logf("it said:\n%s", r.Output)
	}
}

// both runs a test with the parent and with the worker alone.
func both(t *testing.T, test func(t *testing.T, serve bool)) {
	for _, serve := range []bool{false, true} {
		t.Run(map[bool]string{false: "parent", true: "serve"}[serve], func(t *testing.T) { test(t, serve) })
	}
}

// TestSecondOnOneData: the data directory belongs to one process, which the
// second is told.
func TestSecondOnOneData(t *testing.T) {
	d := vogtdtest.Start(t, vogtdtest.Options{})
	s, _ := d.Status()
	both(t, func(t *testing.T, serve bool) {
		r := vogtdtest.Refuse(t, vogtdtest.Options{Serve: serve, Args: []string{"--data", d.Data()}})
		refused(t, r, exitLocked, d.Data(), "process "+strconv.Itoa(s.PID))
	})
	if again, ok := d.Status(); !ok || again.PID != s.PID {
		t.Errorf("the first one suffered: %+v", again)
	}
}

// TestPortInUse: who holds the port is said, as far as this user may see it.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	holder := "" // other systems do not tell
	if runtime.GOOS == "linux" {
		holder = fmt.Sprintf("process %d", os.Getpid())
	}
	both(t, func(t *testing.T, serve bool) {
		r := vogtdtest.Refuse(t, vogtdtest.Options{Serve: serve, Args: []string{"--listen", l.Addr().String()}})
		refused(t, r, exitUnavailable, l.Addr().String(), holder, "--listen")
	})
}

// TestRefusedSettings: what is wrong, where, and what to do.
func TestRefusedSettings(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, home string, o *vogtdtest.Options)
		code   int
		words  []string
	}{
		{"unknown key", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Config = "listen = \"127.0.0.1:0\"\n\n[limits]\npending_per_agnet = 3\n"
		}, exitConfig, []string{"HOME/config/vogtd.toml:4", "pending_per_agnet"}},
		{"not TOML", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Config = "# a comment\nlisten = \n"
		}, exitConfig, []string{"HOME/config/vogtd.toml:2"}},
		{"value out of range", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Config = "pending_ttl = \"1s\"\n"
		}, exitConfig, []string{"pending_ttl", "1s"}},
		{"file that others can write", func(t *testing.T, home string, o *vogtdtest.Options) {
			path := vogtdtest.WriteConfig(t, home, "")
			if err := os.Chmod(path, 0o666); err != nil {
				t.Fatal(err)
			}
		}, exitConfig, []string{"HOME/config/vogtd.toml", "chmod"}},
		{"folder that others can write", func(t *testing.T, home string, o *vogtdtest.Options) {
			path := vogtdtest.WriteConfig(t, home, "")
			if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
		}, exitConfig, []string{"HOME/config", "chmod"}},
		{"file that is not there", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Args = []string{"--config", filepath.Join(home, "none.toml")}
		}, exitConfig, []string{"HOME/none.toml"}},
		{"switch with another word", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Args = []string{"--bearer-decisions", "all"}
		}, exitConfig, []string{"bearer_decisions", `"all"`, `"high"`}},
		{"address without port", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Args = []string{"--listen", "127.0.0.1"}
		}, exitConfig, []string{"listen", `"127.0.0.1"`}},
		{"address for everybody without issuer", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Args = []string{"--listen", "0.0.0.0:0"}
		}, exitConfig, []string{"issuer", "https"}},
		{"management token too short", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Env = []string{"VOGT_MANAGEMENT_TOKEN=fifteen-letters"}
		}, exitConfig, []string{"VOGT_MANAGEMENT_TOKEN", "15", "16"}},
		{"management token in a file too short", func(t *testing.T, home string, o *vogtdtest.Options) {
			path := filepath.Join(home, "token")
			if err := os.WriteFile(path, []byte("fifteen-letters\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			o.Args = []string{"--management-token-file", path}
		}, exitConfig, []string{"HOME/token", "15", "16"}},
		{"management token in a file that others can write", func(t *testing.T, home string, o *vogtdtest.Options) {
			path := filepath.Join(home, "token")
			if err := os.WriteFile(path, []byte("a-token-that-is-long-enough\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, 0o622); err != nil {
				t.Fatal(err)
			}
			o.Args = []string{"--management-token-file", path}
		}, exitConfig, []string{"HOME/token", "chmod"}},
		{"log file that cannot be made", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Args = []string{"--log", filepath.Join(home, "none", "log")}
		}, exitConfig, []string{"HOME/none/log"}},
		{"relative home", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Env = []string{"VOGT_HOME=vogt"}
		}, exitConfig, []string{"VOGT_HOME", "absolute"}},
		{"data directory that is a file", func(t *testing.T, home string, o *vogtdtest.Options) {
			if err := os.WriteFile(filepath.Join(home, "data"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, exitConfig, []string{"HOME/data", "not a directory"}},
		{"data directory that others can write", func(t *testing.T, home string, o *vogtdtest.Options) {
			dir := filepath.Join(home, "data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, 0o770); err != nil {
				t.Fatal(err)
			}
		}, exitConfig, []string{"HOME/data", "chmod 700"}},
		{"data directory with a long path", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Args = []string{"--data", filepath.Join(home, strings.Repeat("long/", 20))}
		}, exitUnavailable, []string{"control.sock", "shorter"}},
		{"unknown command", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Args = []string{"sevre"}
		}, exitUsage, []string{`"sevre"`}},
		{"unknown flag", func(t *testing.T, home string, o *vogtdtest.Options) {
			o.Args = []string{"--fault", "x"}
		}, exitUsage, []string{"-fault", "Usage"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home := vogtdtest.NewHome(t)
			o := vogtdtest.Options{Home: home}
			tt.change(t, home, &o)
			r := vogtdtest.Refuse(t, o)
			words := make([]string, len(tt.words))
			for i, w := range tt.words {
				words[i] = strings.Replace(w, "HOME/", home+"/", 1)
			}
			refused(t, r, tt.code, words...)
		})
	}
}

// TestCorruptDatabase: a damaged file is named and left as it is, for whoever
// wants to rescue it.
func TestCorruptDatabase(t *testing.T) {
	sound := vogtdtest.Start(t, vogtdtest.Options{Serve: true})
	sound.Owner()
	sound.Stop()
	whole, err := os.ReadFile(filepath.Join(sound.Data(), sqlite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, len(whole))
	rand.NewChaCha8([32]byte{1}).Read(noise)
	overwritten := append([]byte(nil), whole...)
	copy(overwritten[4096:8192], noise)
	for name, content := range map[string][]byte{
		"noise":                   noise,
		"text":                    []byte("this was a database once\n"),
		"cut off":                 whole[:len(whole)/3],
		"cut in page":             whole[:5000],
		"first pages overwritten": append(noise[:8192:8192], whole[8192:]...),
		"second page overwritten": overwritten,
	} {
		t.Run(name, func(t *testing.T) {
			home := vogtdtest.NewHome(t)
			copyHome(t, sound.Home, home)
			path := filepath.Join(home, "data", sqlite.FileName)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			r := vogtdtest.Refuse(t, vogtdtest.Options{Home: home})
			refused(t, r, exitConfig, path, "damaged")
			after, err := os.ReadFile(path)
			if err != nil || sha256.Sum256(after) != sha256.Sum256(content) {
				t.Errorf("the file was changed (%v): %d bytes, were %d", err, len(after), len(content))
			}
		})
	}
}

// TestShortLog: a log that has lost its last records is named, and is no reason
// to start again and again.
func TestShortLog(t *testing.T) {
	home := vogtdtest.NewHome(t)
	data := filepath.Join(home, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: data, Migrations: store.Migrations(), Ballast: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = authority.New(t.Context(), authority.DefaultConfig("http://127.0.0.1:1", "http://vogt.localhost:1"), authority.Deps{DB: db})
	if err == nil {
		err = db.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.Exec(`DELETE FROM log_records WHERE idx = 1`)
			return err
		})
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	both(t, func(t *testing.T, serve bool) {
		r := vogtdtest.Refuse(t, vogtdtest.Options{Home: home, Serve: serve})
		refused(t, r, exitConfig, "the log is shorter than its tree: record 1 is missing", "restore the last backup")
	})
}
