//go:build unix

package execution

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"vogt/internal/detail"
)

// script writes an executable file and returns its path.
func script(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// tempDir is t.TempDir without symbolic links, as getcwd(3) names it.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBindFindsAsAShellDoes(t *testing.T) {
	dir := tempDir(t)
	first, second := mkdir(t, dir+"/first"), mkdir(t, dir+"/second")
	work := mkdir(t, dir+"/place/sub")
	const body = "#!/bin/sh\n"
	script(t, second, "tool", body)
	script(t, first, "early", body)
	script(t, second, "early", body)
	script(t, dir+"/place", "local", body)
	script(t, work, "relative", body)
	mkdir(t, first+"/tool") // a folder does not end the search
	if err := os.WriteFile(first+"/plain", []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	script(t, second, "plain", body)
	if err := os.WriteFile(first+"/inert", []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(second+"/tool", first+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(work, dir+"/elsewhere"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(first+"/fifo", 0o755); err != nil {
		t.Fatal(err)
	}
	path := first + ":" + second

	tests := []struct {
		name, path, arg string
		want            string // program found
		kind            Kind
	}{
		{name: "first entry wins", path: path, arg: "early", want: first + "/early"},
		{name: "folder is passed over", path: path, arg: "tool", want: second + "/tool"},
		{name: "file without x is passed over", path: path, arg: "plain", want: second + "/plain"},
		{name: "file without x explains", path: path, arg: "inert", kind: Forbidden},
		{name: "symbolic link keeps its name", path: path, arg: "link", want: first + "/link"},
		{name: "absolute", arg: second + "/tool", want: second + "/tool"},
		{name: "relative to the folder", arg: "./relative", want: work + "/relative"},
		{name: "parent", arg: "../local", want: dir + "/place/local"},
		{name: "parent of a link's target", arg: dir + "/elsewhere/../local", want: dir + "/place/local"},
		{name: "unknown name", path: path, arg: "nosuch", kind: NotFound},
		{name: "unknown path", arg: "/nosuch/program", kind: NotFound},
		{name: "below a file", arg: second + "/tool/x", kind: Unexecutable},
		{name: "empty PATH", arg: "tool", kind: NotFound},
		{name: "dot in PATH", path: ".:" + path, arg: "relative", kind: RelativePath},
		{name: "empty entry in PATH", path: path + ":", arg: "relative", kind: RelativePath},
		{name: "relative entry in PATH", path: "..:" + path, arg: "local", kind: RelativePath},
		{name: "dot in PATH that finds nothing", path: ".:" + path, arg: "tool", want: second + "/tool"},
		{name: "dot after the match", path: path + ":.", arg: "tool", want: second + "/tool"},
		{name: "folder", arg: first, kind: IsFolder},
		{name: "folder with slash", arg: first + "/", kind: IsFolder},
		{name: "root", arg: "/", kind: IsFolder},
		{name: "dot dot", arg: "../..", kind: IsFolder},
		{name: "device", arg: "/dev/null", kind: Forbidden},
		{name: "pipe is never opened", path: path, arg: "fifo", kind: Forbidden},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := Executor{Environ: []string{"PATH=/wrong", "PATH=" + tt.path}}.Bind([]string{tt.arg}, work)
			if tt.want == "" {
				if e, ok := errors.AsType[*Error](err); !ok || e.Kind != tt.kind {
					t.Fatalf("got %v, want kind %d (%s)", err, tt.kind, kindTexts[tt.kind])
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if b.Program() != tt.want {
				t.Errorf("found %s, want %s", b.Program(), tt.want)
			}
		})
	}
}

func TestBindRefusesWhatIsNoCommand(t *testing.T) {
	gone := mkdir(t, t.TempDir()+"/gone")
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	file := script(t, t.TempDir(), "file", "#!/bin/sh\n")
	tests := []struct {
		name string
		argv []string
		cwd  string
		kind Kind
		code int
	}{
		{"nothing", nil, "/", Empty, 64},
		{"empty program", []string{""}, "/", Empty, 64},
		{"NUL", []string{"/bin/sh", "a\x00b"}, "/", BadBytes, 64},
		{"NUL in the program", []string{"/bin/sh\x00"}, "/", BadBytes, 64},
		{"not UTF-8", []string{"/bin/sh", "\xff"}, "/", BadBytes, 64},
		{"surrogate", []string{"/bin/sh", "\xed\xa0\x80"}, "/", BadBytes, 64},
		{"one byte over the limit", []string{"/bin/sh", strings.Repeat("a", MaxArgv-len("/bin/sh")-1)}, "/", TooLong, 64},
		{"many empty arguments", append([]string{"/bin/sh"}, make([]string, MaxArgv)...), "/", TooLong, 64},
		{"deleted folder", []string{"/bin/sh"}, gone, NoFolder, 126},
		{"file as folder", []string{"/bin/sh"}, file, NoFolder, 126},
		{"relative folder", []string{"/bin/sh"}, "sub", NoFolder, 126},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Executor{}.Bind(tt.argv, tt.cwd)
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Kind != tt.kind || e.ExitCode() != tt.code {
				t.Fatalf("got %v, want kind %d (%s), exit code %d", err, tt.kind, kindTexts[tt.kind], tt.code)
			}
			if len(e.Error()) > 300 {
				t.Errorf("the message has %d bytes", len(e.Error()))
			}
		})
	}
	b, err := Executor{}.Bind([]string{"/bin/sh", strings.Repeat("a", MaxArgv-len("/bin/sh")-2)}, "/")
	if err != nil {
		t.Fatalf("at the limit: %v", err)
	}
	b.Close()
}

// A process whose folder is deleted still has it; getcwd(2) tells.
func TestBindInDeletedFolder(t *testing.T) {
	gone := mkdir(t, t.TempDir()+"/gone")
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	_, err := Executor{}.Bind([]string{"/bin/sh"}, "")
	if e, ok := errors.AsType[*Error](err); !ok || e.Kind != NoFolder {
		t.Fatalf("got %v, want the missing folder", err)
	}
}

func TestBindReadsScripts(t *testing.T) {
	dir := tempDir(t)
	inner := script(t, dir, "inner", "#!/bin/sh\n")
	loop := filepath.Join(dir, "loop")
	script(t, dir, "loop", "#!"+loop+"\n")
	tool := script(t, dir, "tool", "#!/bin/sh\n")
	other := mkdir(t, dir+"/o")
	hidden := script(t, other, "tool", "#!/bin/sh\n")
	script(t, dir, "again", "#!/usr/bin/env again\n")
	env, err := filepath.EvalSymlinks("/usr/bin/env")
	if err != nil {
		t.Fatal(err)
	}
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, content string
		want          []string
		kind          Kind
	}{
		{name: "plain", content: "#!/bin/sh\nexit", want: []string{sh}},
		{name: "blanks and argument", content: "#! \t/bin/sh  -e \n", want: []string{sh}},
		{name: "no line end", content: "#!/bin/sh", want: []string{sh}},
		{name: "script by script", content: "#!" + inner + "\n", want: []string{inner, sh}},
		{name: "env", content: "#!/usr/bin/env tool\n", want: []string{env, tool, sh}},
		{name: "env -S", content: "#!/usr/bin/env -S tool -x\n", want: []string{env, tool, sh}},
		{name: "env with an option", content: "#!/usr/bin/env -S -u HOME tool\n", want: []string{env, tool, sh}},
		{name: "env with assignments", content: "#!/usr/bin/env -S A=b C= tool\n", want: []string{env, tool, sh}},
		{name: "env with a PATH", content: "#!/usr/bin/env -S PATH=" + other + " tool\n", want: []string{env, hidden, sh}},
		{name: "env with a PATH after an end of options", content: "#!/usr/bin/env -iS -- PATH=" + other + " tool\n", want: []string{env, hidden, sh}},
		{name: "env without environment", content: "#!/usr/bin/env -S -i sh\n", want: []string{env, sh}},
		{name: "env without environment finds nothing of PATH", content: "#!/usr/bin/env -S -i tool\n", kind: NotFound},
		{name: "env by env", content: "#!/usr/bin/env -S /usr/bin/env -u X tool\n", want: []string{env, env, tool, sh}},
		{name: "env with a path", content: "#!/usr/bin/env -S " + hidden + "\n", want: []string{env, hidden, sh}},
		{name: "env with an argument that is no option", content: "#!/usr/bin/env -i tool\n", kind: Unresolved},
		{name: "env with an unknown option", content: "#!/usr/bin/env -S --frobnicate tool\n", kind: Unresolved},
		{name: "env with no program", content: "#!/usr/bin/env -S A=b\n", kind: Unresolved},
		{name: "env alone", content: "#!/usr/bin/env\n", kind: Unresolved},
		{name: "env -S alone", content: "#!/usr/bin/env -S\n", kind: Unresolved},
		{name: "env of itself", content: "#!/usr/bin/env again\n", kind: BadScript},
		{name: "env without program", content: "#!/usr/bin/env nosuch\n", kind: NotFound},
		{name: "relative interpreter", content: "#!sh\n", kind: BadScript},
		{name: "no interpreter", content: "#!\n", kind: BadScript},
		{name: "endless first line", content: "#!/bin/sh " + strings.Repeat("x", 300), kind: BadScript},
		{name: "missing interpreter", content: "#!/nosuch/sh\n", kind: NoInterpreter},
		{name: "carriage return", content: "#!/bin/sh\r\n", kind: NoInterpreter},
		{name: "its own interpreter", content: "#!" + loop + "\n", kind: BadScript},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := script(t, t.TempDir(), "s", tt.content)
			b, err := Executor{Environ: []string{"PATH=" + dir}}.Bind([]string{path}, dir)
			if tt.want == nil {
				if e, ok := errors.AsType[*Error](err); !ok || e.Kind != tt.kind {
					t.Fatalf("got %v, want kind %d (%s)", err, tt.kind, kindTexts[tt.kind])
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			var got []string
			for _, f := range b.Interpreters() {
				if f.SHA256 == nil || f.Inode == nil || *f.Inode == 0 {
					t.Errorf("interpreter %s is not bound to its content", *f.Path)
				}
				got = append(got, *f.Path)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("interpreters %q, want %q", got, tt.want)
			}
		})
	}
}

func TestContext(t *testing.T) {
	dir := tempDir(t)
	const body = "#!/bin/sh\nexit 0\n"
	path := script(t, dir, "tool", body)
	if err := os.Symlink(path, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	argv := []string{"link", "", "a b", "ü<&>"}
	b, err := Executor{Environ: []string{"PATH=" + dir}}.Bind(argv, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c := b.Context()
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(body))
	if !slices.Equal(c.Argv, argv) || c.Executable != dir+"/link" || *c.File.Path != path ||
		*c.File.Device != uint64(stat.Dev) || *c.File.Inode != uint64(stat.Ino) || *c.File.Size != uint64(len(body)) ||
		*c.File.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("wrong program in %+v", c)
	}
	if err := syscall.Stat(dir, &stat); err != nil {
		t.Fatal(err)
	}
	if *c.Cwd.Path != dir || *c.Cwd.Device != uint64(stat.Dev) || *c.Cwd.Inode != uint64(stat.Ino) {
		t.Errorf("wrong folder in %+v", c)
	}
	if *c.UID != uint64(os.Getuid()) || c.Stdin != nil {
		t.Errorf("wrong caller in %+v", c)
	}
	if detail.ArgvHash(c.Argv) != detail.ArgvHash(argv) {
		t.Error("the argument list is not what was given")
	}
}

// Whatever standard input is, the context says nothing about it: the command
// may run later with another one.
func TestStdinIsNotBound(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for name, stdin := range map[string]*os.File{"null device": null, "none": nil} {
		b, err := Executor{Stdin: stdin}.Bind([]string{"/bin/sh"}, tempDir(t))
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Context().Stdin; got != nil {
			t.Errorf("%s: the context claims that standard input is %q", name, *got)
		}
		b.Close()
	}
}

func FuzzParseShebang(f *testing.F) {
	for _, s := range []string{"#!/bin/sh\n", "#! /usr/bin/env -S a b\n", "#!", "#!\t/x\x00\n", "#!x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		head = append([]byte("#!"), head...)
		if len(head) > headSize {
			head = head[:headSize]
		}
		path, argument, ok := parseShebang(head)
		if !ok {
			if path != "" || argument != "" {
				t.Fatal("a refused line has a result")
			}
			return
		}
		if !filepath.IsAbs(path) || strings.ContainsAny(path, " \t\n\x00") || strings.ContainsAny(argument, "\n\x00") {
			t.Fatalf("interpreter %q, argument %q", path, argument)
		}
		if call, ok := readEnv([]string{argument}, search{}); ok && (call.name == "" || strings.Contains(call.name, "=") || call.name[0] == '-') {
			t.Fatalf("env runs %q", call.name)
		}
	})
}

// What is bound must be what env(1) of this machine really starts: each line is
// run, and the interpreter that answers is the one that was found.
func TestEnvStartsWhatWasBound(t *testing.T) {
	dir := tempDir(t)
	for _, sub := range []string{"first", "second", "odd name"} {
		script(t, mkdir(t, dir+"/"+sub), "tool", "#!/bin/sh\nprintf '%s' '"+dir+"/"+sub+"/tool'\n")
	}
	environ := []string{"PATH=" + dir + "/first:/usr/bin:/bin", "DIR=" + dir + "/second", "EMPTY="}
	for _, words := range []string{
		"tool", "-S tool a b", "-Stool", "-S  tool", "-vS tool", "-S -v tool", "-S -u FOO tool", "-S -uFOO tool",
		"-S --unset=FOO tool", "-S --unset FOO tool", "-S PATH=${DIR} tool", "-S PATH=${DIR}:/bin A=b tool", "-S -i PATH=${DIR} tool",
		"-S - PATH=${DIR} tool", "-S --ignore-environment PATH=${DIR} tool x", "-S -- tool", "-S A=b tool", "-S A='x y' tool",
		`-S A="x y" tool`, `-S "PATH=` + dir + `/odd name" tool`, `-S PATH=` + dir + `/odd\_name tool`, `-S "PATH=` + dir + `/odd\_name" tool`,
		"-S ${DIR}/tool", "-S tool # -i", `-S tool\c -i`, `-S t${EMPTY}ool`, "-S 'tool'", `-S to'o'"l"`, "-S -S tool", "-S env tool",
		"-S -C / tool", "-S -C / ${DIR}/tool", "-S --chdir=/ ${DIR}/tool", "-S -i tool", "-S -u PATH tool", "-i tool", "-S --ign tool",
		"-S", "-S A=b", "-S $DIR/tool", `-S "tool`, `-S tool\`, `-S \q`, "-S A=b -- tool", "-S ''", "-S -0 tool", "-S -P /bin tool",
	} {
		t.Run(words, func(t *testing.T) {
			path := script(t, dir, "s", "#!/usr/bin/env "+words+"\n")
			x := Executor{Environ: environ}
			b, err := x.Bind([]string{path}, dir)
			if err != nil {
				if e, ok := errors.AsType[*Error](err); !ok || e.ExitCode() == 64 {
					t.Errorf("refused with %v", err)
				}
				return
			}
			files := b.Interpreters()
			b.Close()
			_, printed, err := capture(t, x, []string{path}, dir)
			if err != nil {
				t.Fatal(err)
			}
			if want := *files[len(files)-2].Path; printed != want { // the last one is that of the tool
				t.Errorf("env started %q, bound was %q", printed, want)
			}
		})
	}
}

// A refusal is the safe answer, so what has to work is said here.
func TestReadEnv(t *testing.T) {
	for words, want := range map[string]string{
		"tool": "tool", "-S tool a": "tool", "-vS -u X tool": "tool", "-S -i A=b /x/tool": "/x/tool", "-S -- tool": "tool",
		"-S --argv0=x tool": "tool", "-S -a x tool": "tool", "-S --default-signal=PIPE tool": "tool", "-S -C /x /y/tool": "/y/tool",
		"": "", "-i": "", "-u": "", "-u X": "", "-S -C /x tool": "", "A=b": "", "-S ''": "", "-S -x tool": "", "--help": "", "-S --": "",
	} {
		call, ok := readEnv([]string{words}, search{})
		if words == "" {
			call, ok = readEnv(nil, search{})
		}
		if ok != (want != "") || call.name != want {
			t.Errorf("%q: starts %q (%v), want %q", words, call.name, ok, want)
		}
	}
}
