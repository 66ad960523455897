//go:build unix

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// folder makes a folder that passes the rule, whatever the umask is.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		chmod(t, d, 0o700)
	}
	return dir
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string, mode fs.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, mode)
	return path
}

func mkdir(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, mode)
	return path
}

func symlink(t *testing.T, target, path string) string {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadTrusted(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, dir string) string // returns the path to read
		want string                                // part of the error; empty: it is read
	}{
		{"plain", func(t *testing.T, dir string) string { return write(t, dir+"/c", "content", 0o600) }, ""},
		{"readable by all", func(t *testing.T, dir string) string { return write(t, dir+"/c", "content", 0o644) }, ""},
		{"with dots and double slashes", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/sub", 0o755)
			write(t, dir+"/c", "content", 0o644)
			return dir + "//sub/.././c"
		}, ""},
		{"group can write", func(t *testing.T, dir string) string { return write(t, dir+"/c", "content", 0o664) }, "mode 0664); run: chmod go-w DIR/c"},
		{"all can write", func(t *testing.T, dir string) string { return write(t, dir+"/c", "content", 0o602) }, "mode 0602); run: chmod go-w DIR/c"},
		{"odd name in the hint", func(t *testing.T, dir string) string { return write(t, dir+"/it's c", "content", 0o666) }, `run: chmod go-w 'DIR/it'\''s c'`},
		{"group can write the folder", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/sub", 0o770)
			return write(t, dir+"/sub/c", "content", 0o600)
		}, "DIR/sub can be changed by others than its owner (mode 0770); run: chmod go-w DIR/sub"},
		{"all can write a folder above", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/sub", 0o777)
			mkdir(t, dir+"/sub/own", 0o700)
			return write(t, dir+"/sub/own/c", "content", 0o600)
		}, "DIR/sub can be changed by others"},
		{"below a sticky folder", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/tmp", 0o777|fs.ModeSticky)
			mkdir(t, dir+"/tmp/own", 0o700)
			return write(t, dir+"/tmp/own/c", "content", 0o600)
		}, ""},
		{"in a sticky folder", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/tmp", 0o777|fs.ModeSticky)
			return write(t, dir+"/tmp/c", "content", 0o600)
		}, "DIR/tmp/c lies in a folder where anyone may put files"},
		{"link to a good file", func(t *testing.T, dir string) string {
			return symlink(t, write(t, dir+"/c", "content", 0o600), dir+"/link")
		}, ""},
		{"relative link up and down", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/a", 0o755)
			mkdir(t, dir+"/b", 0o755)
			write(t, dir+"/b/c", "content", 0o600)
			return symlink(t, "../b/./c", dir+"/a/link")
		}, ""},
		{"link to a bad file", func(t *testing.T, dir string) string {
			return symlink(t, write(t, dir+"/c", "content", 0o622), dir+"/link")
		}, "DIR/c can be changed by others"},
		{"good file through a link that others can replace", func(t *testing.T, dir string) string {
			write(t, dir+"/c", "content", 0o600)
			mkdir(t, dir+"/open", 0o777)
			return symlink(t, dir+"/c", dir+"/open/link")
		}, "DIR/open can be changed by others"},
		{"a link in the middle, in a folder that others can write", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/real", 0o700)
			write(t, dir+"/real/c", "content", 0o600)
			mkdir(t, dir+"/open", 0o777)
			symlink(t, dir+"/real", dir+"/open/link")
			return dir + "/open/link/c"
		}, "DIR/open can be changed by others"},
		{"links in a circle", func(t *testing.T, dir string) string {
			symlink(t, "b", dir+"/a")
			return symlink(t, "a", dir+"/b")
		}, "more than 40 symbolic links"},
		{"folder", func(t *testing.T, dir string) string { return mkdir(t, dir+"/sub", 0o700) }, "is a folder"},
		{"file as a folder", func(t *testing.T, dir string) string { return write(t, dir+"/c", "", 0o600) + "/d" }, "not a directory"},
		{"device", func(*testing.T, string) string { return "/dev/null" }, "/dev/null is not a regular file"},
		{"relative path", func(*testing.T, string) string { return "c" }, "not an absolute path"},
		{"too large", func(t *testing.T, dir string) string {
			return write(t, dir+"/c", strings.Repeat("#", maxFile+1), 0o600)
		}, "larger than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t)
			path := tt.make(t, dir)
			data, err := ReadTrusted(path)
			switch want := strings.ReplaceAll(tt.want, "DIR", dir); {
			case want == "" && (err != nil || string(data) != "content"):
				t.Errorf("got %q, %v", data, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestReadTrustedMissing(t *testing.T) {
	dir := folder(t)
	for _, path := range []string{dir + "/none", dir + "/none/below"} {
		if _, err := ReadTrusted(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want fs.ErrNotExist", path, err)
		}
	}
}

// A FIFO in the place of the file must not make the reader wait for a writer.
func TestReadTrustedDoesNotBlock(t *testing.T) {
	path := folder(t) + "/c"
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTrusted(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
	// And when it takes the place between the look and the opening.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := (judge{self: uint32(os.Geteuid()), unmapped: unmappedOwner}).file(path, info); err == nil {
		t.Error("an open FIFO passed")
	}
}

// What a third user owns is refused even with a perfect mode, for that user can
// change mode and content. Files that root owns are believed by everyone, so
// here they are made to belong to someone who is neither root nor the reader.
func TestReadTrustedOwner(t *testing.T) {
	const reader, third = 54321, 12345
	root := os.Geteuid() == 0
	tests := []struct {
		name string
		give string // what belongs to the third user
	}{
		{"file", "sub/c"}, {"folder", "sub"}, {"folder above", "."}, {"link", "sub/link"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t)
			mkdir(t, dir+"/sub", 0o755)
			write(t, dir+"/sub/c", "content", 0o644)
			path := symlink(t, "c", dir+"/sub/link")

			nobody := func(uint32) bool { return false }
			j := judge{self: reader, unmapped: nobody}
			if root {
				if f, err := j.open(path); err != nil {
					t.Fatalf("everything is root's, and yet: %v", err)
				} else {
					f.Close()
				}
				if err := os.Lchown(filepath.Join(dir, tt.give), third, -1); err != nil {
					t.Fatal(err)
				}
			} // else all of it belongs to whoever runs the test, whom j takes for a third user
			_, err := j.open(path)
			if err == nil || !strings.Contains(err.Error(), "neither root nor the running user (54321)") || !strings.Contains(err.Error(), "run: sudo chown -h 54321 ") {
				t.Errorf("got %v", err)
			}
			if root && !strings.Contains(err.Error(), "belongs to user id 12345") {
				t.Errorf("the owner is not named: %v", err)
			}
			j.unmapped = func(uint32) bool { return true }
			f, err := j.open(path)
			if err != nil {
				t.Fatalf("owners without an id in this namespace: %v", err)
			}
			f.Close()
		})
	}
}

func TestLoadLayers(t *testing.T) {
	type settings struct {
		A    string        `toml:"a"`
		B    string        `toml:"b"`
		C    string        `toml:"c"`
		D    string        `toml:"d"`
		Wait time.Duration `toml:"wait"`
		List []string      `toml:"list"`
	}
	base := settings{A: "default", B: "default", C: "default", D: "default", List: []string{"x", "y"}}
	dir := folder(t)
	paths := Paths{System: mkdir(t, dir+"/system", 0o755), Config: mkdir(t, dir+"/user", 0o700)}

	got, err := LoadLayers(base, paths, "s", nil)
	if err != nil || got.Value.A != "default" || len(got.Files) != 0 {
		t.Fatalf("without files: %+v, %v", got, err)
	}

	system := write(t, paths.System+"/s.toml", "b = \"system\"\nc = \"system\"\nd = \"system\"\nlist = [\"system\"]", 0o644)
	user := write(t, paths.Config+"/s.toml", "c = \"user\"\nd = \"user\"\nwait = \"3s\"", 0o600)
	got, err = LoadLayers(base, paths, "s", func(s *settings) { s.D = "flag" })
	if err != nil {
		t.Fatal(err)
	}
	v := got.Value
	if v.A != "default" || v.B != "system" || v.C != "user" || v.D != "flag" || v.Wait != 3*time.Second || strings.Join(v.List, ",") != "system" {
		t.Errorf("got %+v", v)
	}
	if len(got.Files) != 2 || got.Files[0] != system || got.Files[1] != user {
		t.Errorf("files %v", got.Files)
	}
	if strings.Join(base.List, ",") != "x,y" {
		t.Errorf("the base was changed: %v", base.List)
	}

	// One bad layer refuses all: the others alone would mean something else.
	chmod(t, user, 0o666)
	if got, err = LoadLayers(base, paths, "s", nil); err == nil || got.Value.B != "" || len(got.Files) != 0 {
		t.Errorf("a file that others can write: %+v, %v", got, err)
	}
	chmod(t, user, 0o600)
	write(t, system, "nothing = 1", 0o644)
	if _, err = LoadLayers(base, paths, "s", nil); err == nil || !strings.Contains(err.Error(), system+`:1: unknown key "nothing"`) {
		t.Errorf("an unknown key: %v", err)
	}
	if _, err = Load[settings](user); err != nil {
		t.Errorf("Load: %v", err)
	}
}

// Of a folder, what cannot be used is told file by file, and what others could
// have written ends it.
func TestReadRootOwnedFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs files that belong to root")
	}
	dir := folder(t)
	all := func(string) bool { return true }
	if files, err := ReadRootOwnedFolder(dir+"/none", all); err != nil || files != nil {
		t.Errorf("no folder: %v, %v", files, err)
	}
	write(t, dir+"/good", "content", 0o600)
	write(t, dir+"/large", strings.Repeat("#", maxFile+1), 0o600)
	write(t, dir+"/skipped", "content", 0o666)
	symlink(t, dir+"/none", dir+"/link")
	symlink(t, dir, dir+"/folder")
	symlink(t, "circle", dir+"/circle")
	mkdir(t, dir+"/sub", 0o700)
	if err := unix.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	wanted := func(name string) bool { return name != "skipped" }
	files, err := ReadRootOwnedFolder(dir, wanted)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		got[f.Name] = string(f.Content)
		if f.Unusable != nil {
			got[f.Name] = f.Unusable.Reason
		}
	}
	for name, want := range map[string]string{
		"good": "content", "large": "larger than", "link": "leads to no file", "folder": "is a folder", "circle": "more than 40 symbolic links", "fifo": "not a regular file",
	} {
		if !strings.Contains(got[name], want) {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("read too: %v", got)
	}
	if _, err := ReadRootOwnedFolder(dir, all); err == nil || !strings.Contains(err.Error(), "can be changed by others") {
		t.Errorf("a file that others can write: %v", err)
	}
}
