package osuser

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckFindsEachBrokenPromise(t *testing.T) {
	needShadow(t)
	const home = "var/lib/vogt-agents/home/coder"
	edit := func(name, old, now string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			text := contents(t, root, name)
			changed := strings.Replace(text, old, now, 1)
			if changed == text {
				t.Fatalf("%q does not stand in %s", old, name)
			}
			if err := os.WriteFile(filepath.Join(root, name), []byte(changed), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	add := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, root string) { plant(t, root, map[string]string{name: text}) }
	}
	own := func(name string, id int) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			if err := os.Lchown(filepath.Join(root, name), id, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	both := func(steps ...func(*testing.T, string)) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			for _, s := range steps {
				s(t, root)
			}
		}
	}
	gone := func(name string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name, promise, text string
		change              func(t *testing.T, root string)
	}{
		{"the ledger has another id", "ledger", "never gave", func(t *testing.T, root string) {
			if err := os.WriteFile(root+"/var/lib/vogt-agents/uids", []byte("73001 vogt-coder x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"the user is gone", "user", "not there", edit("etc/passwd", "vogt-coder:", "other:")},
		{"the user has another id", "user", "ids 0 and 73000", edit("etc/passwd", "vogt-coder:x:73000:", "vogt-coder:x:0:")},
		{"another has the id too", "user", "belongs to mallory", edit("etc/passwd", "root:", "mallory:x:73000:1::/:/bin/sh\nroot:")},
		{"another shell", "user", "shell is /bin/bash", edit("etc/passwd", "home/coder:/usr/sbin/nologin", "home/coder:/bin/bash")},
		{"another home", "user", "home is /root", edit("etc/passwd", "/var/lib/vogt-agents/home/coder", "/root")},
		{"no group", "group", "not there", edit("etc/group", "vogt-coder:x:73000", "vogt-coder:x:73100")},
		{"members in its group", "group", "ada", edit("etc/group", "vogt-coder:x:73000:", "vogt-coder:x:73000:ada")},
		{"its group is another's", "group", "ada", edit("etc/passwd", "ada:x:1000:1000", "ada:x:1000:73000")},
		{"a password", "password", "not locked", edit("etc/shadow", "vogt-coder:!:", "vogt-coder:$y$j9T$x:")},
		{"an empty password", "password", "not locked", edit("etc/shadow", "vogt-coder:!:", "vogt-coder::")},
		{"no line in shadow", "password", "no line", edit("etc/shadow", "vogt-coder:", "other:")},
		{"another group", "groups", "sudo", edit("etc/group", "sudo:x:27:ada", "sudo:x:27:ada,vogt-coder")},
		{"subordinate ids", "subordinate-ids", "of its own", edit("etc/subuid", "ada:", "vogt-coder:80000:10\nada:")},
		{"subordinate ids by number", "subordinate-ids", "of its own", edit("etc/subgid", "ada:", "73000:80000:10\nada:")},
		{"its id is subordinate", "subordinate-ids", "may act as", edit("etc/subuid", "ada:100000:65536", "ada:70000:65536")},
		{"an open home", "home", "mode 0755", func(t *testing.T, root string) {
			if err := os.Chmod(filepath.Join(root, home), 0o755); err != nil {
				t.Fatal(err)
			}
		}},
		{"a home of another", "home", "ids 1000 and 1000", own(home, 1000)},
		{"a link as home", "home", "not a folder", func(t *testing.T, root string) {
			p := filepath.Join(root, home)
			if err := errors.Join(os.RemoveAll(p), os.Symlink("/home/ada", p)); err != nil {
				t.Fatal(err)
			}
		}},
		{"no folder for keys", "keys", "not there", gone(home + "/.config/vogt")},
		{"a link as folder for keys", "keys", "not a folder", func(t *testing.T, root string) {
			p := filepath.Join(root, home, ".config/vogt")
			if err := errors.Join(os.Remove(p), os.Symlink("/tmp", p)); err != nil {
				t.Fatal(err)
			}
		}},
		{"files of others", "foreign-files", "root-file", both(add(home+"/a/b/root-file", "x"), own(home+"/a", 73000), own(home+"/a/b", 73000))},
		{"cron is not denied", "cron", "later", edit("etc/cron.deny", "vogt-coder\n", "other\n")},
		{"cron allows it", "cron", "later", add("etc/cron.allow", "vogt-coder\n")},
		{"a crontab", "cron", "crontabs/vogt-coder", add("var/spool/cron/crontabs/vogt-coder", "@reboot x\n")},
		{"at is not denied", "at", "later", edit("etc/at.deny", "vogt-coder\n", "")},
		{"a job of at", "at", "atjobs/a1", both(add("var/spool/cron/atjobs/a1", "x"), own("var/spool/cron/atjobs/a1", 73000))},
		{"linger", "linger", "at boot", add("var/lib/systemd/linger/vogt-coder", "")},
		{"keys for ssh", "ssh", "authorized_keys", both(add(home+"/.ssh/authorized_keys", "x"), own(home+"/.ssh", 73000), own(home+"/.ssh/authorized_keys", 73000))},
		{"sshd reads no other files", "ssh", "Include", edit("etc/ssh/sshd_config", "Include", "#Include")},
		{"sshd reads them for some only", "ssh", "Include", edit("etc/ssh/sshd_config", "Include", "Match user x\nInclude")},
		{"sshd does not deny it", "ssh", "would let", edit("etc/ssh/sshd_config.d/10-vogt-agent-coder.conf", "DenyUsers", "#DenyUsers")},
		{"the slice was changed", "files", "was changed", edit("etc/systemd/system/vogt-agent-coder.slice", "MemoryMax=75%", "")},
		{"polkit's rule is gone", "files", "not there", gone("etc/polkit-1/rules.d/00-vogt-agent-coder.rules")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := scratch(t)
			spec := specFor(root, "coder")
			mustAdd(t, spec)
			for _, f := range Check(t.Context(), spec) {
				if !f.Kept || f.Text == "" {
					t.Fatalf("broken before: %+v", f)
				}
			}
			tt.change(t, root)
			var seen []string
			for _, f := range Check(t.Context(), spec) {
				if f.Promise == tt.promise && !f.Kept && strings.Contains(f.Text, tt.text) && f.Remedy != "" {
					return
				}
				if !f.Kept {
					seen = append(seen, f.Promise+": "+f.Text)
				}
			}
			t.Errorf("%s (%q) is not reported as broken; broken are %q", tt.promise, tt.text, seen)
		})
	}
}

func TestCheckOfNobody(t *testing.T) {
	needShadow(t)
	root := scratch(t)
	f := Check(t.Context(), specFor(root, "coder"))
	if len(f) != 1 || f[0].Kept || !strings.Contains(f[0].Remedy, "vogt agent user add coder") {
		t.Errorf("without a user: %+v", f)
	}
	if f := Check(t.Context(), specFor(root, "../x")); len(f) != 1 || f[0].Kept {
		t.Errorf("with a hostile name: %+v", f)
	}
	spec := specFor(root, "coder")
	mustAdd(t, spec)
	mustRemove(t, spec, ArchiveHome)
	plant(t, root, map[string]string{"etc/passwd": "mallory:x:73000:1::/:/bin/sh\n"})
	if f := Check(t.Context(), spec); len(f) != 1 || f[0].Kept || !strings.Contains(f[0].Text, "belongs to mallory") {
		t.Errorf("with an id that came back to life: %+v", f)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	mustAdd(t, specFor(root, "other"))
	for _, f := range Check(ended, specFor(root, "other")) {
		if f.Promise == "foreign-files" && f.Kept {
			t.Errorf("a walk that was cancelled promises something: %+v", f)
		}
	}
}

func FuzzLedger(f *testing.F) {
	f.Add("73000 vogt-a 2026-11-30T12:00:00Z\n73001 vogt-b x\n")
	f.Add("73000 a b")
	f.Add("4294967295 a b\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parseLedger(text)
		if err != nil {
			return
		}
		again, err := parseLedger(l.String())
		if err != nil || again.String() != l.String() {
			t.Fatalf("%q becomes %q, %v", text, again, err)
		}
		if id, ok := l.next(testRange); ok {
			for _, g := range l {
				if g.id == id {
					t.Fatalf("%q: the id %d is given again", text, id)
				}
			}
		}
	})
}

func FuzzJournal(f *testing.F) {
	f.Add(`{"seq":0,"state":"intended","step":{"kind":"begin","name":"a","id":1}}`+"\n"+`{"seq":0,"state":"done"}`+"\n"+`{"seq":1,"state":"intended","step":{"kind":"line"}}`+"\n", 100)
	f.Add(`{"seq":0,"state":"undone"}`+"\n", 3)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		entries, whole, err := parseJournal([]byte(text))
		if err != nil {
			return
		}
		if whole > len(text) || whole > 0 && text[whole-1] != '\n' {
			t.Fatalf("%q is whole up to %d", text, whole)
		}
		// A crash cuts a journal anywhere; what is left can be read.
		if cut < 0 || cut > len(text) {
			return
		}
		shorter, _, err := parseJournal([]byte(text[:cut]))
		if err != nil || len(shorter) > len(entries) {
			t.Fatalf("%q cut at %d: %v", text, cut, err)
		}
	})
}

func FuzzSSHDGlobal(f *testing.F) {
	f.Add("Include a b\nDenyUsers=x y # z\nMatch all\nDenyUsers w\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, before := sshdGlobal(text)
		if _, after := sshdGlobal(text + "\nMatch all\nDenyUsers late\n"); len(after) != len(before) {
			t.Fatalf("%q: what stands after Match counts", text)
		}
	})
}
