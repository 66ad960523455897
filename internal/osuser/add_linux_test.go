package osuser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestAddAndRemove(t *testing.T) {
	needShadow(t)
	tests := []struct {
		name   string
		change func(t *testing.T, root string)
		spec   func(*Spec)
		steps  []string // parts that must stand in the snapshot
		never  []string // and that must not
	}{
		{name: "debian with everything", steps: []string{
			`/etc/cron.deny -rw-r--r-- 0:0 "vogt-coder\n"`,
			`/etc/at.deny -rw-r----- 0:0 "alias\nbackup\nvogt-coder\n"`,
			"10-vogt-agent-coder.conf", "DenyUsers vogt-coder",
			"00-vogt-agent-coder.rules", `subject.user == \"vogt-coder\"`,
			"vogt-agent-coder.slice", "TasksMax=2048", "vogt-agent-coder@.service",
			`vogt-coder:x:73000:73000:Vogt agent coder:/var/lib/vogt-agents/home/coder:/usr/sbin/nologin`,
			`vogt-coder:!:`,
		}},
		{name: "names and limits given", spec: func(s *Spec) {
			s.User, s.Shell, s.Base = "worker", "/bin/bash", "/srv/agents/of/ours"
			s.Limits = Limits{MemoryBytes: 1 << 30, Tasks: 64, CPUPercent: 150}
			s.Start = []string{"/bin/sh", "-c", `echo "100% $HOME \"`, "%i"}
		}, steps: []string{
			"worker:x:73000:73000:Vogt agent coder:/srv/agents/of/ours/coder:/bin/bash",
			"MemoryMax=1073741824", "TasksMax=64", "CPUQuota=150%",
			fmt.Sprintf("%q", `ExecStart="/bin/sh" "-c" "echo \"100%% $$HOME \\\"" "%i"`)[1:20],
			"/srv/agents/of/ours/coder drwx------ 73000:73000",
			"/srv/agents/of/ours/coder/.config/vogt drwx------ 73000:73000",
		}},
		{name: "allow files deny already", change: func(t *testing.T, root string) {
			plant(t, root, map[string]string{"etc/cron.allow": "ada\n", "etc/at.allow": ""})
		}, never: []string{"/etc/cron.deny", "backup\\nvogt"}},
		{name: "a machine that is no Debian: a deny file would open cron", change: func(t *testing.T, root string) {
			for _, name := range []string{"etc/debian_version", "etc/at.deny"} {
				if err := os.Remove(filepath.Join(root, name)); err != nil {
					t.Fatal(err)
				}
			}
		}, never: []string{"/etc/cron.deny", "/etc/at.deny"}},
		{name: "a deny file without a newline at its end", change: func(t *testing.T, root string) {
			plant(t, root, map[string]string{"etc/cron.deny": "ada"})
		}, steps: []string{`"ada\nvogt-coder\n"`}},
		{name: "denied by hand before", change: func(t *testing.T, root string) {
			plant(t, root, map[string]string{"etc/cron.deny": "vogt-coder\n",
				"etc/ssh/sshd_config": "DenyUsers ada vogt-coder\n"})
		}, steps: []string{`/etc/cron.deny -rw-r--r-- 0:0 "vogt-coder\n"`}},
		{name: "nothing but users", change: func(t *testing.T, root string) {
			for _, name := range []string{"etc/ssh", "etc/polkit-1", "etc/systemd", "var/spool", "var/lib/systemd"} {
				if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
					t.Fatal(err)
				}
			}
		}, never: []string{"DenyUsers", ".slice", ".rules"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := scratch(t)
			if tt.change != nil {
				tt.change(t, root)
			}
			spec := specFor(root, "coder")
			if tt.spec != nil {
				tt.spec(&spec)
			}
			before := snapshot(t, root)
			u := mustAdd(t, spec)
			if u.UID != testRange.First {
				t.Errorf("the first id given is %d", u.UID)
			}
			during := snapshot(t, root)
			for _, part := range tt.steps {
				if !strings.Contains(during, part) {
					t.Errorf("%q is missing; what changed:\n%s", part, difference(before, during))
				}
			}
			for _, part := range tt.never {
				if strings.Contains(during, part) {
					t.Errorf("%q is there; what changed:\n%s", part, difference(before, during))
				}
			}
			if wrong := brokenPromises(t.Context(), spec); len(wrong) > 0 {
				t.Errorf("broken right after Add: %s", strings.Join(wrong, "\n"))
			}
			again := mustAdd(t, spec)
			if again != u {
				t.Errorf("Add again gives %+v, first %+v", again, u)
			}
			if now := snapshot(t, root); now != during {
				t.Errorf("Add again changed:\n%s", difference(during, now))
			}
			plant(t, root+u.Home, map[string]string{"app/result": "precious"})
			r := mustRemove(t, spec, ArchiveHome)
			if len(r.Left) > 0 || contents(t, root, r.Home+"/app/result") != "precious" {
				t.Errorf("removed with %+v", r)
			}
			if spec.Base == "" {
				if now := snapshot(t, root); now != before {
					t.Errorf("Remove left or took:\n%s", difference(before, now))
				}
			}
			if again := mustRemove(t, spec, ArchiveHome); again.Home != r.Home {
				t.Errorf("Remove again says %+v", again)
			}
			if wrong := brokenPromises(t.Context(), spec); len(wrong) > 0 {
				t.Errorf("broken after Remove: %s", wrong)
			}
			next := mustAdd(t, spec)
			if next.UID != u.UID+1 {
				t.Errorf("after %d was removed, %d is given", u.UID, next.UID)
			}
			if got := contents(t, root, "var/lib/vogt-agents/uids"); got != fmt.Sprintf("73000 %s 2026-11-30T12:00:00Z\n73001 %s 2026-11-30T12:00:00Z\n", u.Name, u.Name) {
				t.Errorf("the ledger is %q", got)
			}
		})
	}
}

func TestUnitsAreUnderstoodBySystemd(t *testing.T) {
	needShadow(t)
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed (Debian: apt-get install systemd)")
	}
	root := scratch(t)
	spec := specFor(root, "a-b")
	spec.Start = []string{"/bin/echo", `a "quoted" \ 100% $HOME`, "%i"}
	spec.Limits = Limits{MemoryBytes: 1 << 30, CPUPercent: 20}
	u := mustAdd(t, spec)
	dir := filepath.Join(root, "etc/systemd/system")
	instance := filepath.Join(dir, strings.Replace(u.Unit, "@.", "@one.", 1))
	if err := os.Symlink(u.Unit, instance); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(verify, "verify", "--man=no", "--recursive-errors=no", instance, filepath.Join(dir, u.Slice)).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "vogt-agent") {
			t.Errorf("systemd-analyze: %s", line)
		}
	}
	if err != nil {
		t.Logf("systemd-analyze: %v\n%s", err, out)
	}
}

// What was there before is never taken for what Add makes.
func TestAddRefuses(t *testing.T) {
	needShadow(t)
	tests := []struct {
		name   string
		change map[string]string
		spec   func(*Spec)
		want   string
	}{
		{"a user of that name", nil, func(s *Spec) { s.User = "ada" }, "exists already in the database passwd"},
		{"a group of that name", nil, func(s *Spec) { s.User = "sudo" }, "exists already in the database group"},
		{"a home of that name", map[string]string{"var/lib/vogt-agents/home/coder/": ""}, nil, "/var/lib/vogt-agents/home/coder is there already"},
		{"a crontab of that name", map[string]string{"var/spool/cron/crontabs/vogt-coder": "* * * * * x\n"}, nil, "is there already"},
		{"lingering of that name", map[string]string{"var/lib/systemd/linger/vogt-coder": ""}, nil, "is there already"},
		{"allowed to use cron", map[string]string{"etc/cron.allow": "ada\nvogt-coder\n"}, nil, "take the line vogt-coder out of /etc/cron.allow"},
		{"sshd reads no other files", map[string]string{"etc/ssh/sshd_config": "Match all\nInclude /etc/ssh/sshd_config.d/*.conf\n"}, nil, "put this line at its top"},
		{"a file with its name", map[string]string{"etc/systemd/system/vogt-agent-coder.slice": "[Slice]\n"}, nil, "exists with another content"},
		{"a range of the distribution's", map[string]string{"etc/login.defs": "UID_MAX 73500\n"}, nil, "touches UID_MIN-UID_MAX"},
		{"a range of others' subordinate ids", map[string]string{"etc/login.defs": "SUB_UID_MIN 65536\n"}, nil, "touches SUB_UID_MIN"},
		{"a ledger that cannot be read", map[string]string{"var/lib/vogt-agents/uids": "73000 x\n"}, nil, "not root's alone"},
		{"no useradd", nil, func(s *Spec) { s.Machine.Tools.Useradd = "/nonexistent/useradd" }, "is not installed"},
		{"a hostile name", nil, func(s *Spec) { s.Name = "../../etc/x" }, "cannot be the name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := scratch(t)
			plant(t, root, tt.change)
			spec := specFor(root, "coder")
			if tt.spec != nil {
				tt.spec(&spec)
			}
			before := snapshot(t, root)
			_, err := Add(t.Context(), spec)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if now := snapshot(t, root); now != before {
				t.Errorf("a refused Add left:\n%s", difference(before, now))
			}
			if names, _ := os.ReadDir(root + "/var/lib/vogt-agents/osusers"); len(names) > 0 {
				t.Errorf("a refused Add left the journal %s", names[0].Name())
			}
		})
	}
}

func TestLedgerThatCannotBeTrusted(t *testing.T) {
	needShadow(t)
	root := scratch(t)
	mustAdd(t, specFor(root, "one"))
	ledgerPath := filepath.Join(root, "var/lib/vogt-agents/uids")
	good := contents(t, root, "var/lib/vogt-agents/uids")
	tests := []struct {
		name, text string // "" for no file
		mode       os.FileMode
		want       string
	}{
		{"gone", "", 0, "is gone"},
		{"cut", good[:len(good)-1], 0o600, "line 1"},
		{"an id twice", good + "73000 other 2026-11-30T12:00:00Z\n", 0o600, "second time"},
		{"no id", "x vogt-one 2026-11-30T12:00:00Z\n", 0o600, "not a user id"},
		{"root's id", good + "0 x 2026-11-30T12:00:00Z\n", 0o600, "not a user id"},
		{"open to others", good, 0o644, "not root's alone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			os.Remove(ledgerPath)
			if tt.text != "" {
				if err := os.WriteFile(ledgerPath, []byte(tt.text), tt.mode); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Add(t.Context(), specFor(root, "two")); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Add: %v, want %q", err, tt.want)
			}
			if err := Kill(t.Context(), specFor(root, "one")); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Kill: %v, want %q", err, tt.want)
			}
			if f := Check(t.Context(), specFor(root, "one")); len(f) != 1 || f[0].Kept || f[0].Promise != "ledger" {
				t.Errorf("Check: %+v", f)
			}
		})
	}
	// A journal that names an id of somebody else must not lead to that one.
	os.Remove(ledgerPath)
	if err := os.WriteFile(ledgerPath, []byte("73005 vogt-one 2026-11-30T12:00:00Z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"Kill":   func() error { return Kill(t.Context(), specFor(root, "one")) },
		"Pause":  func() error { return Pause(t.Context(), specFor(root, "one")) },
		"Remove": func() error { _, err := Remove(t.Context(), specFor(root, "one"), KeepHome); return err },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "nothing is done to that id") {
			t.Errorf("%s with a strange journal: %v", name, err)
		}
	}
}

func TestIDsInUseAreSkipped(t *testing.T) {
	needShadow(t)
	root := scratch(t)
	plant(t, root, map[string]string{
		"etc/passwd": contents(t, root, "etc/passwd") + "old:x:73000:1000::/:/bin/sh\n",
		"etc/group":  contents(t, root, "etc/group") + "old:x:73001:\n",
		"etc/subuid": "ada:73002:1\n",
		"etc/subgid": "ada:73003:1\n",
		"tmp/left":   "",
		"home/left/": "",
	})
	for name, id := range map[string]int{"tmp/left": 73004, "home/left": 73005} {
		if err := os.Chown(filepath.Join(root, name), id, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "tmp/left2"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(root, "tmp/left2"), -1, 73006); err != nil {
		t.Fatal(err)
	}
	running := sleeper(t, 73007)
	if u := mustAdd(t, specFor(root, "coder")); u.UID != 73008 {
		t.Errorf("the id %d was given, want 73008 (the process %d has 73007)", u.UID, running)
	}
	spec := specFor(root, "last")
	spec.Range = Range{73000, 73008}
	if _, err := Add(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "no user id is left in 73000-73008") {
		t.Errorf("with a range that is used up: %v", err)
	}
}

// tool writes a stand-in for a program that fails, before or after it did what
// it was asked to.
func tool(t *testing.T, script string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFailureIsUndone(t *testing.T) {
	needShadow(t)
	tests := []struct {
		name  string
		tools func(t *testing.T, root string) Tools
		want  string
	}{
		{"groupadd fails", func(t *testing.T, _ string) Tools {
			return Tools{Groupadd: tool(t, "echo no groups today >&2; exit 9")}
		}, "no groups today"},
		{"groupadd fails after it made the group", func(t *testing.T, _ string) Tools {
			return Tools{Groupadd: tool(t, `/usr/sbin/groupadd "$@"; exit 10`)}
		}, "exit status 10"},
		{"useradd fails", func(t *testing.T, _ string) Tools { return Tools{Useradd: tool(t, "exit 1")} }, "exit status 1"},
		{"useradd fails after it made the user", func(t *testing.T, _ string) Tools {
			return Tools{Useradd: tool(t, `/usr/sbin/useradd "$@"; exit 12`)}
		}, "exit status 12"},
		{"useradd makes nothing", func(t *testing.T, _ string) Tools { return Tools{Useradd: tool(t, "exit 0")} }, "as asked"},
		{"useradd gives subordinate ids", func(t *testing.T, root string) Tools {
			return Tools{Useradd: tool(t, `/usr/sbin/useradd "$@" && cp `+root+`/etc/subuid `+root+`/subuid && echo vogt-coder:90000:10 >>`+root+`/etc/subuid`),
				Userdel: tool(t, `/usr/sbin/userdel "$@"; cp `+root+`/subuid `+root+`/etc/subuid && rm -f `+root+`/subuid`)}
		}, "ids of its own"},
		{"systemd cannot be told", func(t *testing.T, root string) Tools {
			plant(t, root, map[string]string{"run/systemd/system/": ""})
			return Tools{Systemctl: tool(t, "echo refused >&2; exit 1")}
		}, "refused"},
		{"sshd refuses its configuration", func(t *testing.T, root string) Tools {
			plant(t, root, map[string]string{"run/systemd/system/": ""})
			return Tools{Systemctl: tool(t, "exit 0"), Sshd: tool(t, "echo bad line 7 >&2; exit 255")}
		}, "bad line 7"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := scratch(t)
			spec := specFor(root, "coder")
			spec.Machine.Tools = tt.tools(t, root)
			before := snapshot(t, root)
			if _, err := Add(t.Context(), spec); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if now := snapshot(t, root); now != before {
				t.Errorf("a failed Add left:\n%s", difference(before, now))
			}
			if u := mustAdd(t, specFor(root, "coder")); u.UID != 73001 {
				t.Errorf("the id of a failed attempt is given again: %d", u.UID)
			}
		})
	}
}

// Where undoing fails too, nothing is forgotten.
func TestUndoingFails(t *testing.T) {
	needShadow(t)
	root := scratch(t)
	spec := specFor(root, "coder")
	before := snapshot(t, root)
	spec.Machine.Tools = Tools{Useradd: tool(t, `/usr/sbin/useradd "$@"; exit 12`), Userdel: tool(t, "exit 1")}
	if _, err := Add(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "run the same command again") {
		t.Errorf("Add: %v", err)
	}
	if f := Check(t.Context(), spec); f[len(f)-1].Promise != "journal" || f[len(f)-1].Kept {
		t.Errorf("Check does not see the interrupted attempt: %+v", f)
	}
	if _, err := Remove(t.Context(), spec, KeepHome); err == nil {
		t.Error("Remove succeeds though userdel fails")
	}
	if r := mustRemove(t, specFor(root, "coder"), KeepHome); r.Home != "" || len(r.Left) > 0 {
		t.Errorf("Remove: %+v", r)
	}
	if now := snapshot(t, root); now != before {
		t.Errorf("left:\n%s", difference(before, now))
	}
}

func TestContextEnds(t *testing.T) {
	needShadow(t)
	for _, point := range []string{"ledger", "done file", "done user", "done home"} {
		t.Run(point, func(t *testing.T) {
			root := scratch(t)
			before := snapshot(t, root)
			ctx, cancel := context.WithCancel(t.Context())
			spec := specFor(root, "coder")
			spec.Machine.at = func(at string) {
				if at == point {
					cancel()
				}
			}
			if _, err := Add(ctx, spec); !errors.Is(err, context.Canceled) {
				t.Errorf("Add: %v", err)
			}
			if now := snapshot(t, root); now != before {
				t.Errorf("a cancelled Add left:\n%s", difference(before, now))
			}
		})
	}
}

func TestConcurrentAdds(t *testing.T) {
	needShadow(t)
	root := scratch(t)
	before := snapshot(t, root)
	names := []string{"a", "b", "c", "a", "b", "c", "a-b"}
	users := make([]User, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			u, err := Add(t.Context(), specFor(root, name))
			if err != nil {
				t.Error(err)
			}
			users[i] = u
		})
	}
	wg.Wait()
	owner := make(map[uint32]string)
	for _, u := range users {
		if other, seen := owner[u.UID]; seen && other != u.Name {
			t.Errorf("%s and %s both have the id %d", other, u.Name, u.UID)
		}
		owner[u.UID] = u.Name
	}
	if len(owner) != 4 {
		t.Errorf("%d ids for 4 agents: %v", len(owner), owner)
	}
	for _, name := range names {
		if wrong := brokenPromises(t.Context(), specFor(root, name)); len(wrong) > 0 {
			t.Errorf("%s: %s", name, wrong)
		}
	}
	for i, name := range names { // removed at once, and twice
		wg.Go(func() {
			if _, err := Remove(t.Context(), specFor(root, name), HomeChoice(1+i%2)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if now := snapshot(t, root); now != before {
		t.Errorf("left:\n%s", difference(before, now))
	}
}

// victim adds or removes and kills itself at a point, as a child.
func victim(remove bool) error {
	spec := specFor(os.Getenv(rootVariable), "coder")
	n, at := 0, os.Getenv(argVariable)
	spec.Machine.at = func(point string) {
		n++
		if fmt.Sprint(n) != at {
			return
		}
		fmt.Println(point)
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		select {}
	}
	var err error
	if remove {
		_, err = Remove(context.Background(), spec, ArchiveHome)
	} else {
		_, err = Add(context.Background(), spec)
	}
	return err
}

// killed runs a victim to its n-th point, and reports whether it got there.
func killed(t *testing.T, mode, root string, n int) (point string, died bool) {
	t.Helper()
	out, err := child(t, mode, root, fmt.Sprint(n)).Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return strings.TrimSpace(string(out)), true
	}
	t.Fatalf("%s, point %d: %v", mode, n, err)
	return "", false
}

// Add is killed at each of its points; then either Add or Remove finds a machine
// that it can put in order.
func TestAddKilled(t *testing.T) {
	needShadow(t)
	var points []string
	for n := 1; ; n++ {
		root := scratch(t)
		before := snapshot(t, root)
		point, died := killed(t, "add", root, n)
		if !died {
			break
		}
		points = append(points, point)
		spec := specFor(root, "coder")
		if n%2 == 0 {
			// A process dies in between once more, while it undoes.
			killed(t, "add", root, n/2)
			u := mustAdd(t, spec)
			if wrong := brokenPromises(t.Context(), spec); len(wrong) > 0 {
				t.Errorf("killed at %q, then added: %s", point, wrong)
			}
			l, err := parseLedger(contents(t, root, "var/lib/vogt-agents/uids"))
			if err != nil || !l.knows(u.UID, u.Name) {
				t.Errorf("killed at %q: %v, %v", point, l, err)
			}
		}
		r := mustRemove(t, spec, KeepHome)
		if len(r.Left) > 0 {
			t.Errorf("killed at %q, then removed: %+v", point, r)
		}
		if r.Home != "" {
			if err := os.RemoveAll(root + r.Home); err != nil {
				t.Fatal(err)
			}
		}
		if now := snapshot(t, root); now != before {
			t.Errorf("killed at %q, removing left:\n%s", point, difference(before, now))
		}
	}
	for _, want := range []string{"ledger", "intended line", "did file", "did group", "intended user", "did user", "did home", "done home", "intended complete"} {
		if !slices.Contains(points, want) {
			t.Errorf("Add was never killed at %q: %q", want, points)
		}
	}
}

func TestRemoveKilled(t *testing.T) {
	needShadow(t)
	var points []string
	for n := 1; ; n++ {
		root := scratch(t)
		before := snapshot(t, root)
		spec := specFor(root, "coder")
		u := mustAdd(t, spec)
		plant(t, root+u.Home, map[string]string{"result": "precious"})
		point, died := killed(t, "remove", root, n)
		if !died {
			break
		}
		points = append(points, point)
		if r := mustRemove(t, spec, ArchiveHome); len(r.Left) > 0 || contents(t, root, r.Home+"/result") != "precious" {
			t.Errorf("killed at %q, then removed: %+v", point, r)
		}
		if now := snapshot(t, root); now != before {
			t.Errorf("killed at %q, left:\n%s", point, difference(before, now))
		}
	}
	for _, want := range []string{"undid home", "undone home", "undid user", "undid group", "undid line"} {
		if !slices.Contains(points, want) {
			t.Errorf("Remove was never killed at %q: %q", want, points)
		}
	}
}

// What somebody changed since Add stays, and is named.
func TestRemoveLeavesWhatOthersChanged(t *testing.T) {
	needShadow(t)
	tests := []struct {
		name   string
		change func(t *testing.T, root string)
		left   string // part of the sentence; "" for none
		stays  string // part of the snapshot afterwards
	}{
		{"a changed file", func(t *testing.T, root string) {
			plant(t, root, map[string]string{"etc/systemd/system/vogt-agent-coder.slice": "[Slice]\nMemoryMax=1G\n"})
		}, "vogt-agent-coder.slice was changed", "MemoryMax=1G"},
		{"a file that became a link", func(t *testing.T, root string) {
			p := filepath.Join(root, "etc/ssh/sshd_config.d/10-vogt-agent-coder.conf")
			if err := errors.Join(os.Remove(p), os.Symlink("/etc/passwd", p)); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link", "10-vogt-agent-coder.conf L"},
		{"a line taken out, others put in", func(t *testing.T, root string) {
			plant(t, root, map[string]string{"etc/cron.deny": "mallory\n"})
		}, "", `/etc/cron.deny -rw-r--r-- 0:0 "mallory\n"`},
		{"lines put around ours", func(t *testing.T, root string) {
			plant(t, root, map[string]string{"etc/cron.deny": "eve\nvogt-coder\nvogt-coder2\n"})
		}, "", `/etc/cron.deny -rw-r--r-- 0:0 "eve\nvogt-coder2\n"`},
		{"the name given to another id", func(t *testing.T, root string) {
			p := filepath.Join(root, "etc/passwd")
			text := strings.Replace(contents(t, root, "etc/passwd"), "vogt-coder:x:73000:", "vogt-coder:x:1234:", 1)
			if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "has the id 1234 now", "vogt-coder:x:1234"},
		{"the group given to others", func(t *testing.T, root string) {
			p := filepath.Join(root, "etc/group")
			text := strings.Replace(contents(t, root, "etc/group"), "vogt-coder:x:73000:", "vogt-coder:x:73000:ada", 1)
			if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "has members now: ada", "vogt-coder:x:73000:ada"},
		{"the home given to another", func(t *testing.T, root string) {
			if err := os.Chown(filepath.Join(root, "var/lib/vogt-agents/home/coder"), 1000, 1000); err != nil {
				t.Fatal(err)
			}
		}, "is not the folder of user id 73000", ""},
		{"the home replaced by a link", func(t *testing.T, root string) {
			p := filepath.Join(root, "var/lib/vogt-agents/home/coder")
			if err := errors.Join(os.Rename(p, p+".away"), os.Symlink("/home/ada", p)); err != nil {
				t.Fatal(err)
			}
		}, "is not the folder of user id 73000", "/home/ada"},
		{"the home gone", func(t *testing.T, root string) {
			if err := os.RemoveAll(filepath.Join(root, "var/lib/vogt-agents/home/coder")); err != nil {
				t.Fatal(err)
			}
		}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := scratch(t)
			spec := specFor(root, "coder")
			mustAdd(t, spec)
			tt.change(t, root)
			r := mustRemove(t, spec, ArchiveHome)
			if got := strings.Join(r.Left, "; "); tt.left == "" && got != "" || !strings.Contains(got, tt.left) {
				t.Errorf("left %q, want %q", got, tt.left)
			}
			if now := snapshot(t, root); !strings.Contains(now, tt.stays) {
				t.Errorf("%q did not stay:\n%s", tt.stays, now)
			}
		})
	}
}

func TestHomeIsNeverDeletedSilently(t *testing.T) {
	needShadow(t)
	root := scratch(t)
	spec := specFor(root, "coder")
	if _, err := Remove(t.Context(), spec, KeepHome); !errors.Is(err, ErrUnknown) {
		t.Errorf("Remove of an unknown agent: %v", err)
	}
	u := mustAdd(t, spec)
	for _, choice := range []HomeChoice{HomeUndecided, discardEmpty, 7} {
		if _, err := Remove(t.Context(), spec, choice); err == nil || !strings.Contains(err.Error(), "say what is to become of the home") {
			t.Errorf("Remove with the choice %d: %v", choice, err)
		}
	}
	if r := mustRemove(t, spec, KeepHome); r.Home != u.Home {
		t.Errorf("kept at %q", r.Home)
	}
	if _, err := Add(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("a kept home is given to a new user: %v", err)
	}
}

// Folders and files that an agent or anybody else could have replaced are
// refused, and what links point to is untouched.
func TestPlantedLinks(t *testing.T) {
	needShadow(t)
	link := func(name string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			p := filepath.Join(root, name)
			target := filepath.Join(root, "target")
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Lstat(p); err == nil && info.IsDir() {
				target += "-folder"
			}
			if err := errors.Join(os.RemoveAll(p), os.Symlink(target, p)); err != nil {
				t.Fatal(err)
			}
		}
	}
	open := func(name string, mode os.FileMode, uid int) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			p := filepath.Join(root, name)
			if err := errors.Join(os.MkdirAll(p, 0o755), os.Chmod(p, mode), os.Chown(p, uid, -1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name   string
		change func(*testing.T, string)
		want   string
	}{
		{"state", link("var/lib/vogt-agents"), "symbolic link"},
		{"above the state", link("var/lib"), "link"},
		{"ledger", link("var/lib/vogt-agents/uids"), "symbolic link"},
		{"journal", link("var/lib/vogt-agents/osusers/coder"), "symbolic link"},
		{"homes", link("var/lib/vogt-agents/home"), "link"},
		{"home", link("var/lib/vogt-agents/home/coder"), "there already"},
		{"cron.deny", link("etc/cron.deny"), "symbolic link"},
		{"cron.allow", link("etc/cron.allow"), "symbolic link"},
		{"at.deny", link("etc/at.deny"), "symbolic link"},
		{"sshd's file", link("etc/ssh/sshd_config.d/10-vogt-agent-coder.conf"), "symbolic link"},
		{"sshd's folder", link("etc/ssh/sshd_config.d"), "symbolic link"},
		{"units", link("etc/systemd/system"), "symbolic link"},
		{"slice", link("etc/systemd/system/vogt-agent-coder.slice"), "symbolic link"},
		{"passwd", link("etc/passwd"), "symbolic link"},
		{"state that others can write", open("var/lib/vogt-agents", 0o777, 0), "chmod go-w"},
		{"state of another", open("var/lib/vogt-agents", 0o755, 1000), "belongs to user id 1000"},
		{"homes that others can write, like a place for temporary files", open("var/lib/vogt-agents/home", os.ModeSticky|0o777, 0), "chmod go-w"},
		{"homes of another", open("var/lib/vogt-agents/home", 0o755, 1000), "belongs to user id 1000"},
		{"state that agents cannot pass", open("var/lib/vogt-agents", 0o700, 0), "closed to others"},
		{"/etc of another", open("etc", 0o755, 1000), "belongs to user id 1000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := scratch(t)
			plant(t, root, map[string]string{"target": "precious\n", "target-folder/": ""})
			tt.change(t, root)
			before := snapshot(t, root)
			if _, err := Add(t.Context(), specFor(root, "coder")); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if now := snapshot(t, root); now != before {
				t.Errorf("it left:\n%s", difference(before, now))
			}
		})
	}
	// A link in the place of a temporary file is not written through either.
	root := scratch(t)
	plant(t, root, map[string]string{"target": "precious\n"})
	link("etc/.at.deny.vogt-new")(t, root)
	mustAdd(t, specFor(root, "coder"))
	if got := contents(t, root, "target"); got != "precious\n" {
		t.Errorf("the target of a planted temporary file became %q", got)
	}
}

// Add told again makes what services that were installed later need.
func TestAddRepairs(t *testing.T) {
	needShadow(t)
	root := scratch(t)
	if err := errors.Join(os.Remove(root+"/etc/at.deny"), os.RemoveAll(root+"/etc/ssh")); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, root)
	spec := specFor(root, "coder")
	first := mustAdd(t, spec)
	later := map[string]string{"etc/at.deny": "alias\n", "etc/ssh/sshd_config": "Include sshd_config.d/*.conf\n"}
	plant(t, root, later)
	if wrong := brokenPromises(t.Context(), spec); len(wrong) != 3 {
		t.Errorf("broken: %s", wrong)
	}
	if again := mustAdd(t, spec); again != first {
		t.Errorf("repaired to %+v", again)
	}
	if wrong := brokenPromises(t.Context(), spec); len(wrong) > 0 {
		t.Errorf("still broken: %s", wrong)
	}
	other := spec
	other.Shell = "/bin/bash"
	if _, err := Add(t.Context(), other); err == nil || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("Add with another shell: %v", err)
	}
	mustRemove(t, spec, ArchiveHome)
	for name := range later {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	if err := os.Remove(root + "/etc/ssh"); err != nil { // its folder was made by Add
		t.Error(err)
	}
	if now := snapshot(t, root); now != before {
		t.Errorf("left:\n%s", difference(before, now))
	}
}

func TestReload(t *testing.T) {
	needShadow(t)
	root := scratch(t)
	plant(t, root, map[string]string{"run/systemd/system/": ""})
	log := filepath.Join(root, "calls")
	spec := specFor(root, "coder")
	spec.Machine.Tools.Systemctl = tool(t, `echo "$@" >>`+log)
	spec.Machine.Tools.Sshd = tool(t, `echo sshd "$@" >>`+log)
	mustAdd(t, spec)
	mustRemove(t, spec, ArchiveHome)
	const told = "daemon-reload\nis-active --quiet ssh.service\nsshd -t\nreload ssh.service\n"
	if got, want := contents(t, root, "calls"), told+"stop vogt-agent-coder.slice\n"+told; got != want {
		t.Errorf("the calls are\n%s\nwant\n%s", got, want)
	}
}
