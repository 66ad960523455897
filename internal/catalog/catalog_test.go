package catalog

import (
	"testing"

	"vogt/internal/detail"
	"vogt/internal/reading"
)

func describe(t *testing.T, resolved, runAs string, argv ...string) detail.Detail {
	t.Helper()
	call, err := reading.Argv(argv)
	if err != nil {
		t.Fatal(err)
	}
	details := Describe(call, resolved, runAs)
	if len(details) != 1 {
		t.Fatalf("%q gives %d details, want 1", argv, len(details))
	}
	return details[0]
}

// Every way to reach a deciding verb by a name is critical.
func TestDecidingVerbsAreCritical(t *testing.T) {
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
	} {
		d := describe(t, test.resolved, "", test.argv...)
		if d.Level() != detail.Critical {
			t.Errorf("%q (resolved %q) is %s, want critical", test.argv, test.resolved, d.Level())
		}
		if c := d.(detail.Command); c.Operation == detail.GenericOperation {
			t.Errorf("%q: the detail does not say that it decides", test.argv)
		}
	}
}

// What only reads or narrows, and what merely mentions a name, is as high as
// any command.
func TestOtherCommandsAreHigh(t *testing.T) {
	for _, argv := range [][]string{
		{"ls"}, {"rm", "-rf", "/"}, {"vogt", "grant", "list"}, {"vogt", "grant", "deny", "ID"}, {"vogt", "panic"}, {"vogt"},
		{"git", "-C", "/src/vogt", "add", "."}, {"make", "-C", "vogt", "up"}, {"grep", "-r", "approve", "vogt"},
		{"sh", "-c", "echo approve | grep vogt"}, {"env", "vogt", "grant", "list"}, {"vogtish", "approve"},
	} {
		d := describe(t, "", "", argv...)
		c, ok := d.(detail.Command)
		if !ok || c.Risk != detail.High || c.Operation != detail.GenericOperation || c.Action != detail.ActionExec {
			t.Errorf("%q is %+v, want an exact command of high risk", argv, d)
		}
	}
}

func TestCrossing(t *testing.T) {
	d := describe(t, "", "root", "ls", "-l")
	c, ok := d.(detail.Crossing)
	if !ok || c.User != "root" || c.Level() != detail.Critical || c.Command.Program != "ls" {
		t.Errorf("a command for root is %+v", d)
	}
}

// The detail is bound to the words; the caller's list is not shared out.
func TestDetailBindsTheWords(t *testing.T) {
	a := describe(t, "", "", "x", "a b")
	b := describe(t, "", "", "x", "a", "b")
	if a.Permission() == b.Permission() {
		t.Error("two argument lists share a permission")
	}
}
