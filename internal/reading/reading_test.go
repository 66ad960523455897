package reading

import (
	"strings"
	"testing"

	"vogt/internal/catalog"
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
		err := CheckArgv(test.argv)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: %v; want an error with %q", test.argv, err, test.err)
			}
			continue
		}
		if err != nil || Base(test.argv[0]) != test.program {
			t.Errorf("%q: %q, %v; want program %q", test.argv, Base(test.argv[0]), err, test.program)
		}
	}
}

// The limit counts a terminator for every word, as the kernel does.
func TestArgvLimit(t *testing.T) {
	fits := []string{"ls", strings.Repeat("x", MaxArgv-len("ls")-2)}
	if err := CheckArgv(fits); err != nil {
		t.Errorf("%d bytes: %v", MaxArgv, err)
	}
	fits[1] += "x"
	if err := CheckArgv(fits); err == nil {
		t.Errorf("%d bytes are accepted", MaxArgv+1)
	}
	many := make([]string, MaxArgv+1)
	many[0] = "ls"
	if err := CheckArgv(many); err == nil {
		t.Error("as many empty words as the limit has bytes are accepted")
	}
}

func FuzzArgv(f *testing.F) {
	f.Add("ls\x1f-l")
	f.Add("/usr/bin/../x\x1f")
	f.Add("\x00")
	f.Add("a/..\x1f.")
	f.Add("sudo\x1fenv\x1f-S\x1frm x\x1fy")
	rd := New(catalog.New())
	f.Fuzz(func(t *testing.T, joined string) {
		argv := strings.Split(joined, "\x1f")
		r, err := rd.Argv(argv, "", Place{})
		if err != nil {
			if len(r.Calls) > 0 {
				t.Errorf("%q: an error and calls", argv)
			}
			return
		}
		if len(r.Calls) == 0 || r.Calls[0].Program == "" || strings.Contains(joined, "\x00") {
			t.Errorf("%q: %+v", argv, r.Calls)
		}
	})
}
