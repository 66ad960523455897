package code

import (
	"slices"
	"testing"
)

// TestDoubt holds texts that look harmless to a reader of one dialect, version
// or state and are not in another: none may be complete without what it does.
func TestDoubt(t *testing.T) {
	tests := []struct {
		lang  Lang
		text  string
		shell string // what is seen all the same, "" for nothing
	}{
		{Ed, "s//x\\\n!rm x\n", "rm x"},
		{Ed, "1s/a/b\\\n!rm x/\n", "rm x/"},
		{Ed, "g/a/p\\\n!rm x\n", "rm x"},
		{Ed, "e f\nw\n", ""},
		{Vim, "r f|!rm x", "rm x"},
		{Vim, "s|!rm x", "rm x"},
		{Vim, "w f\"x", ""},
		{Vim, "w f<cfile>", ""},
		{Vim, "!!x", ""},
		{Gdb, "thread apply 1 2 -q shell rm x", "rm x"},
		{Gdb, "frame apply all shell rm x", "rm x"},
		{Gdb, "f apply level 1 !rm x", "rm x"},
		{SQLite, "select 1\n/\nattach 'f' as x;", ""},
		{SQLite, "select 1\ngo\nvacuum into 'f';", ""},
		{SQL, "select 1\ngo\nsp_x", ""},
		{SQL, "select 1 shutdown", ""},
		{SQL, "begin drop table x end", ""},
		{SQL, "begin kill 5 end", ""},
		{SQL, "use x shutdown", ""},
		{SQL, "set nocount on drop table x", ""},
		{SQL, "create table x(a int) drop table y", ""},
		{SQL, "select * from 'http://h/x.csv'", ""},
		{SQL, "select * from \"f.csv\"", ""},
		{MySQL, "select 1 --\x01'\n; drop table x; --'", ""},
		{Awk, "BEGIN{SYMTAB[\"ARGV\"][1] = \"/in\" \"et/tcp/0/h/80\"}", ""},
		{Awk, "BEGIN{\"rm \" \"x\" | getline}", ""},
		{Awk, "BEGIN{print 1 | \"rm \" \"x\"}", "rm x"},
		{Yq, ".a # system(\"id\")", ""},
	}
	for _, tt := range tests {
		got := Read(tt.lang, tt.text)
		if got.Complete {
			t.Errorf("%s: %q is complete: %+v", tt.lang, tt.text, got)
		}
		if tt.shell != "" && !slices.Contains(got.Shell, tt.shell) {
			t.Errorf("%s: %q gives %+v, without %q", tt.lang, tt.text, got, tt.shell)
		}
	}
}

// TestSettled holds texts that stay complete though they come near to those, and those
// of which everything is seen.
func TestSettled(t *testing.T) {
	runSmall(t, []smallTest{
		{Ed, "s/a/b\\\nc/\nf f\nw", writes("f")},
		{Ed, "f !rm x\n", shell("rm x")},
		{Vim, "w f|q", writes("f")},
		{Vim, "w f|!rm x", Finding{Shell: []string{"rm x"}, Write: true, Writes: []string{"f"}, Complete: true}},
		{Vim, "w! f|!rm x", Finding{Shell: []string{"rm x"}, Write: true, Writes: []string{"f"}, Complete: true}},
		{Mongo, "/*\nuse */\ndb.x.drop()", Finding{Write: true, Destroy: true, Complete: true}},
		{Yq, ". system(\"id\")", Finding{Argv: [][]string{{"id"}}, Complete: true}},
		{Vim, "r !id", shell("id")},
		{Gdb, "thread apply 1 bt\nthread apply all -q bt full\nframe 2", pure},
		{SQLite, "begin immediate; select 1; rollback to x; release savepoint x; commit", pure},
		{SQL, "begin transaction; start transaction isolation level read committed, read only; select 1; rollback", pure},
		{SQL, "create table x(a int references y(a) on delete cascade on update cascade)", Finding{Write: true, Complete: true}},
		{SQL, "use x; set nocount on; select \"a\" from \"b\"", pure},
		{Postgres, "copy t to stdout; select 1", pure},
		{Mongo, "use my-db\ndb.x.find({})", pure},
		{Awk, "{print | \"sort -u\"; close(\"sort -u\")}", shell("sort -u")},
	})
}
