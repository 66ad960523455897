package reading

import (
	"testing"

	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// Every way to reach a deciding verb by a name is critical.
func TestDecidingVerbsAreCritical(t *testing.T) {
	rd := New(catalog.New())
	for _, test := range []struct {
		resolved string
		argv     []string
	}{
		{"", []string{"vogt", "grant", "approve", "ID"}},
		{"", []string{"/usr/local/bin/vogt", "grant", "approve", "ID"}},
		{"", []string{"../x/./vogt", "grant", "approve", "ID"}},
		{"", []string{"vogt", "--config", "x", "grant", "--note=y", "approve", "ID"}},
		{"", []string{"vogt", "agent", "add", "NAME"}},
		{"", []string{"vogt", "agent", "rotate-key", "NAME"}},
		{"", []string{"vogt", "key", "add", "FILE.pub"}},
		{"", []string{"vogt", "key", "passkey"}},
		{"", []string{"vogt", "resume"}},
		{"", []string{"vogt", "up"}},
		{"", []string{"vogt", "login"}},
		{"", []string{"vogt", "sign", "ID"}},
		{"", []string{"vogt", "standing", "add"}},
		{"", []string{"vogt", "elevated", "trust"}},
		{"", []string{"apes", "grants", "approve", "ID"}},
		{"", []string{"apes", "yolo", "set", "x@y"}},
		{"", []string{"vogtd"}},
		{"", []string{"/opt/vogtd", "--data", "x"}},
		{"", []string{"VOGT", "grant", "approve", "ID"}},
		{"", []string{`C:\bin\vogt.exe`, "grant", "approve", "ID"}},
		{"/usr/bin/vogt", []string{"harmless", "grant", "approve", "ID"}},
		{"/opt/vogtd", []string{"harmless"}},
		{"", []string{"env", "X=1", "vogt", "grant", "approve", "ID"}},
		{"", []string{"sudo", "-u", "me", "/usr/bin/vogt", "resume"}},
		{"", []string{"nice", "timeout", "5", "vogt", "login"}},
		{"", []string{"sh", "-c", "cd /; vogt grant approve ID"}},
		{"", []string{"bash", "-c", `x=$(/usr/bin/vogt "grant" 'approve' ID)`}},
		{"", []string{"bash", "-lc", "true&&vogtd"}},
		{"", []string{"/lib64/ld-linux-x86-64.so.2", "/usr/bin/vogt", "grant", "approve", "ID"}},
		{"/bin/busybox", []string{"x", "sh", "-c", "vogt up"}},
		{"", []string{"find", ".", "-exec", "vogt", "grant", "approve", "{}", ";"}},
		{"", []string{"python3", "-c", "import os; os.system('vogt grant approve x')"}},
		{"", []string{"git", "-c", "alias.x=!vogt grant approve x", "x"}},
		{"", []string{"vogt", "$(x)", "approve"}},
	} {
		r, err := rd.Argv(test.argv, test.resolved, Place{})
		if err != nil {
			t.Errorf("%q: %v", test.argv, err)
			continue
		}
		if r.Risk != detail.Critical {
			t.Errorf("%q (resolved %q) is %s, want critical", test.argv, test.resolved, r.Risk)
		}
		found := false
		for _, d := range r.Details() {
			if c, ok := d.(detail.Command); ok && c.Operation == DecideOperation {
				found = true
			}
		}
		if !found {
			t.Errorf("%q: no detail says that it decides: %v", test.argv, r.Details())
		}
	}
}

// What only reads or narrows, and what merely mentions a name, decides nothing.
func TestOtherCommandsDecideNothing(t *testing.T) {
	rd := New(catalog.New())
	for _, line := range []string{
		"ls", "vogt grant list", "vogt grant deny ID", "vogt panic", "vogt whoami", "git -C /src/vogt add .", "make -C vogt up",
		"grep -r approve vogt", `sh -c "echo approve | grep vogt"`, "env vogt grant list", "vogtish approve", "vogtd --version",
		`git commit -m "vogt grant approve"`, "cat > x <<E\nvogt grant approve ID\nE",
	} {
		r := rd.Text(line, Place{})
		for _, d := range r.Details() {
			if c, ok := d.(detail.Command); ok && (c.Operation == DecideOperation || c.Risk == detail.Critical) {
				t.Errorf("%q: %+v", line, c)
			}
		}
	}
}
