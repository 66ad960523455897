package reading

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestArgv(t *testing.T) {
	tests := []struct {
		argv    []string
		program string
		err     string // part of the error; "" for none
	}{
		{[]string{"ls"}, "ls", ""},
		{[]string{"/usr/bin/ls", "-l"}, "ls", ""},
		{[]string{"./a/../b"}, "b", ""},
		{[]string{"dir/prog//"}, "prog", ""}, // execve would refuse it; the name is still the program's
		{[]string{"-"}, "-", ""},
		{[]string{" ls"}, " ls", ""},
		{[]string{"ls", ""}, "ls", ""},
		{[]string{"ls", "a\nb", "\x1b[2J"}, "ls", ""},
		{nil, "", "empty"},
		{[]string{}, "", "empty"},
		{[]string{""}, "", "names no program"},
		{[]string{"  \t"}, "", "names no program"},
		{[]string{"/"}, "", "names no program"},
		{[]string{"."}, "", "names no program"},
		{[]string{"a/.."}, "", "names no program"},
		{[]string{"ls", "a\x00b"}, "", "argument 1"},
		{[]string{"l\x00s"}, "", "argument 0"},
		{[]string{"ls", "ok", "\xff"}, "", "argument 2"},
		{[]string{"ls", "\xed\xa0\x80"}, "", "argument 1"}, // a surrogate, which is no character
	}
	for _, test := range tests {
		call, err := Argv(test.argv)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) || call.Argv != nil {
				t.Errorf("%q: %+v, %v; want an error with %q", test.argv, call, err, test.err)
			}
			continue
		}
		if err != nil || call.Program != test.program || !slices.Equal(call.Argv, test.argv) {
			t.Errorf("%q: %+v, %v; want program %q", test.argv, call, err, test.program)
		}
	}
}

// The limit counts a terminator for every word, as the kernel does.
func TestArgvLimit(t *testing.T) {
	fits := []string{"ls", strings.Repeat("x", MaxArgv-len("ls")-2)}
	if _, err := Argv(fits); err != nil {
		t.Errorf("%d bytes: %v", MaxArgv, err)
	}
	fits[1] += "x"
	if _, err := Argv(fits); err == nil {
		t.Errorf("%d bytes are accepted", MaxArgv+1)
	}
	many := make([]string, MaxArgv+1)
	many[0] = "ls"
	if _, err := Argv(many); err == nil {
		t.Error("as many empty words as the limit has bytes are accepted")
	}
}

func FuzzArgv(f *testing.F) {
	f.Add("ls\x1f-l")
	f.Add("/usr/bin/../x\x1f")
	f.Add("\x00")
	f.Add("a/..\x1f.")
	f.Fuzz(func(t *testing.T, joined string) {
		argv := strings.Split(joined, "\x1f")
		call, err := Argv(argv)
		if err != nil {
			if call.Program != "" || call.Argv != nil {
				t.Errorf("%q: an error and a call: %+v", argv, call)
			}
			return
		}
		if !slices.Equal(call.Argv, argv) {
			t.Errorf("%q was read as %q", argv, call.Argv)
		}
		if call.Program == "" || strings.Contains(call.Program, "/") || !utf8.ValidString(strings.Join(argv, "")) ||
			strings.Contains(joined, "\x00") {
			t.Errorf("%q: program %q", argv, call.Program)
		}
	})
}
