package code

import (
	"reflect"
	"testing"
)

var (
	pure    = Finding{Complete: true}
	unknown = Finding{}
)

type smallTest struct {
	lang Lang
	text string
	want Finding
}

func runSmall(t *testing.T, tests []smallTest) {
	t.Helper()
	for _, tt := range tests {
		if got := Read(tt.lang, tt.text); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %q\n got %+v\nwant %+v", tt.lang, tt.text, got, tt.want)
		}
	}
}

func shell(texts ...string) Finding { return Finding{Shell: texts, Complete: true} }

func writes(paths ...string) Finding { return Finding{Writes: paths, Write: true, Complete: true} }

func TestSed(t *testing.T) {
	runSmall(t, []smallTest{
		{Sed, "s/a/b/", pure},
		{Sed, "", pure},
		{Sed, ":a;N;$!ba;s/\\n/ /g", pure},
		{Sed, "1,10p", pure},
		{Sed, "/start/,/end/{s/x/y/gI2;p}", pure},
		{Sed, "$!{N;D}", pure},
		{Sed, "s/a/b/w f", writes("f")},
		{Sed, "s/a/b/w f }", writes("f }")},
		{Sed, "w /dev/stdout", pure},
		{Sed, "a w f\nw g", writes("g")},
		{Sed, "a\\\nw f\\\ne rm\n", pure},
		{Sed, "a\\w f", pure},
		{Sed, "1e rm -rf x", shell("rm -rf x")},
		{Sed, "e", Finding{Starts: true}},
		{Sed, "s/x/rm y/e", Finding{Starts: true}},
		{Sed, "s/x/rm y/gew f", Finding{Starts: true, Write: true, Writes: []string{"f"}}},
		{Sed, "r f\nR g", Finding{Reads: []string{"f", "g"}, Complete: true}},
		{Sed, "sew fewe", pure},
		{Sed, "s,a,w f,", pure},
		{Sed, "s/[/]/w f/", pure},
		{Sed, "s/[[:alpha:]/]/x/", unknown},
		{Sed, "s/a\\/b/w f/", pure},
		{Sed, "y/abc/wf\\n/;p", pure},
		{Sed, "\\,w f,d", pure},
		{Sed, "\\ex\\eyed;ed", Finding{Shell: []string{"d"}, Complete: true}},
		{Sed, "p}", unknown},
		{Sed, "{p", unknown},
		{Sed, "k", unknown},
		{Sed, "s/a/b", unknown},
		{Sed, "p;w", unknown},
		{Sed, "# w f\np", pure},
		{Sed, "p # w f", pure},
		{Sed, "1~2d;2,~4d;/x/,+1d;0,/x/d", pure},
		{Sed, "b;w f", writes("f")},
		{Sed, "v 4.2\nq5", pure},
		{Sed, "i\\\n  text", pure},
		{Sed, "s/a/b/;e id\ns/c/d/", shell("id")},
	})
}

func TestAwk(t *testing.T) {
	runSmall(t, []smallTest{
		{Awk, "{print $1}", pure},
		{Awk, "NR>1 && $3 > 5 {print $1, ($2 > 3)}", pure},
		{Awk, "BEGIN{FS=\":\"} /root/{n++} END{print n/2}", pure},
		{Awk, "{system(\"rm x\")}", shell("rm x")},
		{Awk, "{system(\"rm \" $1)}", Finding{Shell: []string{"rm \uE000"}}},
		{Awk, "{print > \"f\"}", writes("f")},
		{Awk, "{print $1 >> \"f\"; print $2 > \"g\"}", writes("f", "g")},
		{Awk, "{print > $1}", Finding{Write: true}},
		{Awk, "{print > \"a\" \"b\"}", Finding{Write: true}},
		{Awk, "{print > \"/dev/stderr\"}", pure},
		{Awk, "{print | \"sort\"}", shell("sort")},
		{Awk, "{print | \"sort \" x}", Finding{Shell: []string{"sort \uE000"}}},
		{Awk, "BEGIN{\"date\" | getline d; print d}", shell("date")},
		{Awk, "BEGIN{while ((\"ls\" | getline f) > 0) print f}", shell("ls")},
		{Awk, "BEGIN{\"ec\" \"ho\" | getline d}", Finding{Starts: true}},
		{Awk, "{cmd | getline x}", Finding{Starts: true}},
		{Awk, "{while ((getline line < \"f\") > 0) print line}", Finding{Reads: []string{"f"}, Complete: true}},
		{Awk, "{while ((getline line < file) > 0) print line}", unknown},
		{Awk, "BEGIN{\"/inet/tcp/0/example.com/80\" |& getline}", Finding{Network: true, Hosts: []string{"example.com"}}},
		{Awk, "@load \"filefuncs\"", unknown},
		{Awk, "function f(x) {return x*2} {print f($1)}", pure},
		{Awk, "{print g($1)}", unknown},
		{Awk, "/\"/ {print} # system(\"x\")", pure},
		{Awk, "{if ($1) /\"/; system(\"rm x\"); x = \"/\"}", shell("rm x")},
		{Awk, "{x = 4 / 2; print \"a/b\" > \"f\"; y = 1 / 3}", writes("f")},
		{Awk, "{print \"system(\\\"rm\\\")\"}", pure},
		{Awk, "{print a,\n b > \"f\"}", writes("f")},
		{Awk, "{print a[b > c]}", pure},
		{Awk, "{ printf \"%s\\n\", $1 > \"/dev/stdout\" }", pure},
		{Awk, "{print $1", unknown},
		{Awk, "!seen[$0]++", pure},
		{Awk, "{gsub(/\\//, \"-\"); print length, toupper($0)}", pure},
		{Awk, "BEGIN{ENVIRON[\"PATH\"]=\"x\"; system(\"ls\")}", Finding{Shell: []string{"ls"}}},
		{Awk, "BEGIN{ARGV[1]=\"/in\" \"et\"}", unknown},
		{Awk, "{print > \"a\\x41\"}", Finding{Write: true}},
	})
}

func TestSQL(t *testing.T) {
	gone := Finding{Write: true, Destroy: true, Complete: true}
	runSmall(t, []smallTest{
		{SQL, "SELECT * FROM users WHERE id = 1", pure},
		{SQL, "select count(*), max(x) from t group by y having count(*) > 1; -- drop table x", pure},
		{SQL, "SELECT 'drop table x; delete'", pure},
		{SQL, "DROP TABLE users;\n", gone},
		{SQL, "DELETE FROM t", gone},
		{SQL, "UPDATE t SET a = 1", gone},
		{SQL, "UPDATE t SET a = 1 WHERE b = 2", Finding{Write: true, Complete: true}},
		{SQL, "TRUNCATE t", gone},
		{SQL, "INSERT INTO t (a, b) VALUES (1, 2)", Finding{Write: true, Complete: true}},
		{SQL, "SELECT evil()", unknown},
		{SQL, "SELECT \"evil\"()", unknown},
		{SQL, "SELECT x.lower(1)", unknown},
		{SQL, "SELECT * FROM t FOR UPDATE", Finding{Write: true}},
		{SQL, "WITH a AS (SELECT 1) SELECT * FROM a", pure},
		{SQL, "WITH a AS (DELETE FROM t RETURNING *) SELECT * FROM a", Finding{Write: true, Destroy: true}},
		{SQL, "EXPLAIN DELETE FROM t", pure},
		{Postgres, "EXPLAIN ANALYZE SELECT 1", pure},
		{Postgres, "EXPLAIN (ANALYZE, BUFFERS) DELETE FROM t", Finding{Write: true, Destroy: true}},
		{Postgres, "COPY t TO PROGRAM 'cat > f'", shell("cat > f")},
		{Postgres, "COPY t TO '/tmp/f'", writes("/tmp/f")},
		{Postgres, "COPY (SELECT * FROM t) TO STDOUT", pure},
		{Postgres, "\\copy t from 'f' csv", Finding{Write: true, Reads: []string{"f"}, Complete: true}},
		{Postgres, "\\copy (select 1) to program 'cat'", shell("cat")},
		{Postgres, "\\! rm x\nselect 1;", shell("rm x")},
		{Postgres, "\\dt+ public.*\n\\d users\n\\l", pure},
		{Postgres, "\\dt \\! rm x", shell("rm x")},
		{Postgres, "\\o f\nselect 1;\n\\o |cat", Finding{Write: true, Writes: []string{"f"}, Shell: []string{"cat"}, Complete: true}},
		{Postgres, "select 1 \\g f", writes("f")},
		{Postgres, "select 'drop table x' \\gexec", unknown},
		{Postgres, "\\i f.sql", Finding{Reads: []string{"f.sql"}}},
		{Postgres, "\\echo `id`", shell("id")},
		{Postgres, "select :x", unknown},
		{Postgres, "select x::int, a[1:2] from t", pure},
		{Postgres, "select $$; drop table x; $$", pure},
		{Postgres, "select '\\'; drop table t; --'", gone},
		{MySQL, "select '\\'; drop table t; --'", pure},
		{SQL, "select '\\'; drop table t; --'", Finding{Write: true, Destroy: true}},
		{MySQL, "select /*!50000 1; drop table x */", Finding{Write: true, Destroy: true}},
		{MySQL, "select 1 # drop\n; \\! id", shell("id")},
		{MySQL, "system id", shell("id")},
		{MySQL, "source f", Finding{Reads: []string{"f"}}},
		{MySQL, "SELECT 1 INTO OUTFILE '/tmp/f'", Finding{Write: true, Writes: []string{"/tmp/f"}, Complete: true}},
		{MySQL, "select load_file('/etc/passwd')", Finding{Reads: []string{"/etc/passwd"}}},
		{MySQL, "show tables; describe t; use x;", pure},
		{SQL, "GRANT ALL ON x TO y", Finding{Write: true, Privilege: true, Complete: true}},
		{SQL, "EXEC xp_cmdshell 'dir'", Finding{Shell: []string{"dir"}}},
		{Postgres, "select pg_terminate_backend(1)", Finding{Destroy: true}},
		{Postgres, "begin; select 1; rollback", pure},

		{SQLite, ".tables", pure},
		{SQLite, ".shell rm x", shell("rm x")},
		{SQLite, ".shell echo 'a b' c", shell("echo \"a b\" c")},
		{SQLite, ".sy rm x", Finding{Shell: []string{"rm x"}}},
		{SQLite, "select 1;\n.system id", shell("id")},
		{SQLite, ".mode csv\n.output f\nselect * from t;", writes("f")},
		{SQLite, ".once |cat", shell("cat")},
		{SQLite, ".import '|ls' t", Finding{Shell: []string{"ls"}, Write: true, Complete: true}},
		{SQLite, ".read f", Finding{Reads: []string{"f"}}},
		{SQLite, ".backup main f", writes("f")},
		{SQLite, ".open f", writes("f")},
		{SQLite, ".open --readonly f", Finding{Reads: []string{"f"}, Complete: true}},
		{SQLite, "PRAGMA table_info(t)", pure},
		{SQLite, "PRAGMA journal_mode", pure},
		{SQLite, "PRAGMA journal_mode=WAL", Finding{Write: true, Complete: true}},
		{SQLite, "ATTACH 'f' AS x", writes("f")},
		{SQLite, "VACUUM INTO 'f'", writes("f")},
		{SQLite, "select load_extension('x')", unknown},
		{SQLite, "select writefile('f', 'x')", Finding{Write: true, Writes: []string{"f"}}},
		{SQLite, "select [drop table] from t", pure},
		{SQLite, "select '\n.shell rm x\n'", pure},
		{SQLite, "DELETE FROM t WHERE id=1", gone},
	})
}

func TestStores(t *testing.T) {
	gone := Finding{Write: true, Destroy: true, Complete: true}
	runSmall(t, []smallTest{
		{Mongo, "db.dropDatabase()", gone},
		{Mongo, "db.users.find({a: 1}).limit(5).pretty()", pure},
		{Mongo, "show dbs\nuse x\ndb.getCollection('a').countDocuments({})", pure},
		{Mongo, "db['x'].drop()", gone},
		{Mongo, "db.x['drop']()", unknown},
		{Mongo, "db.x.aggregate([{$match: {a: 1}}, {$out: 'y'}])", Finding{Write: true, Complete: true}},
		{Mongo, "db.x.insertOne({a: ISODate('2020-01-01')})", Finding{Write: true, Complete: true}},
		{Mongo, "load('f.js')", Finding{Reads: []string{"f.js"}}},
		{Mongo, "db.runCommand({drop: 'x'})", Finding{Write: true, Destroy: true}},
		{Mongo, "f = db.x.drop; f()", unknown},
		{Redis, "GET a", pure},
		{Redis, "FLUSHALL", gone},
		{Redis, "set a 1\nkeys *", Finding{Write: true, Complete: true}},
		{Redis, "EVAL 'x' 0", Finding{Write: true}},
		{Redis, "config get *", pure},
		{Redis, "config set dir /tmp", Finding{Write: true}},
		{Redis, "foo", unknown},
		{Jq, ".a | env", pure},
		{Yq, ".a = 1", pure},
		{Yq, "load(\"f\") | .a", Finding{Reads: []string{"f"}, Complete: true}},
		{Yq, "system(\"id\")", Finding{Argv: [][]string{{"id"}}, Complete: true}},
		{Yq, ".x = system(.y)", Finding{Starts: true}},
		{Yq, ".system", pure},
		{Yq, "\"system\"", pure},
		{Yq, "\"\\(system(\"id\"))\"", unknown},
		{Bc, "2^10", pure},
		{Dc, "2 3 + p", pure},
		{Dc, "!rm x\n1 p", shell("rm x")},
		{Dc, "[!rm x]x", Finding{Starts: true}},
		{Dc, "s#!rm x", shell("rm x")},
		{Dc, "# !rm", pure},
		{Dc, "1 2 !<a", pure},
		{Dc, "?", unknown},
	})
}

func TestEditors(t *testing.T) {
	runSmall(t, []smallTest{
		{Ed, "w g.txt", writes("g.txt")},
		{Ed, "1,$p\nq", pure},
		{Ed, ",s/a/b/g\nw\nq", Finding{Write: true, Complete: true}},
		{Ed, "a\n!rm x\n.\nwq", Finding{Write: true, Complete: true}},
		{Ed, "9a\n!rm x\n.\n", Finding{Shell: []string{"rm x"}}},
		{Ed, "!rm x", shell("rm x")},
		{Ed, "r !id", shell("id")},
		{Ed, "w !cat", shell("cat")},
		{Ed, "r f\nw", Finding{Reads: []string{"f"}, Write: true, Writes: []string{"f"}}},
		{Ed, "f f\nw", writes("f")},
		{Ed, "g/a/d", pure},
		{Ed, "g/a/!id", shell("id")},
		{Ed, "!echo %", Finding{Starts: true}},
		{Vim, "q!", pure},
		{Vim, "!rm x", shell("rm x")},
		{Vim, "%s/a|b/b|c/g | wq", Finding{Write: true, Complete: true}},
		{Vim, "%s/a/b/g", pure},
		{Vim, "wq", Finding{Write: true, Complete: true}},
		{Vim, "set nonumber | !id", shell("id")},
		{Vim, "call system('id')", Finding{Shell: []string{"id"}}},
		{Vim, "echo system(\"id\")", Finding{Shell: []string{"id"}}},
		{Vim, "silent !id", shell("id")},
		{Vim, "py3 import os; os.system('id')", Finding{Shell: []string{"id"}}},
		{Vim, "s/x/\\=system('id')/", Finding{Shell: []string{"id"}}},
		{Vim, "call delete('f')", Finding{Write: true, Destroy: true, Deletes: []string{"f"}}},
		{Vim, "exe '!id'", Finding{Shell: []string{"id"}}},
		{Vim, "foo", unknown},
		{Gdb, "shell id", shell("id")},
		{Gdb, "!id", shell("id")},
		{Gdb, "bt", pure},
		{Gdb, "thread apply all bt\ninfo registers\nquit", pure},
		{Gdb, "set pagination off", pure},
		{Gdb, "run", Finding{Starts: true}},
		{Gdb, "print system(\"id\")", unknown},
		{Gdb, "pipe bt | cat > f", Finding{Shell: []string{"cat > f"}}},
		{Gdb, "python\nimport os\nos.system('id')\nend\nbt", Finding{Shell: []string{"id"}}},
		{Gdb, "target remote host:1234", Finding{Network: true, Hosts: []string{"host:1234"}}},
		{Gdb, "print $_shell(\"id\")", Finding{Shell: []string{"id"}}},
		{Gdb, "gcore f", Finding{Write: true, Writes: []string{"f"}}},
	})
}

func TestUnknown(t *testing.T) {
	for _, text := range []string{"a\x00b", "a\xffb", string(make([]byte, MaxText+1))} {
		for lang := range langs {
			if got := Read(lang, text); !reflect.DeepEqual(got, unknown) {
				t.Errorf("%s: %.20q gives %+v", lang, text, got)
			}
		}
	}
	if got := Read(0, "x"); !reflect.DeepEqual(got, unknown) {
		t.Errorf("no language gives %+v", got)
	}
	if got := Read(langs, "x"); !reflect.DeepEqual(got, unknown) {
		t.Errorf("a value that is no language gives %+v", got)
	}
}

func TestLang(t *testing.T) {
	for lang := Lang(1); lang < langs; lang++ {
		if got, ok := ParseLang(lang.String()); !ok || got != lang {
			t.Errorf("%d: ParseLang(%q) = %v, %v", lang, lang.String(), got, ok)
		}
	}
	for _, name := range []string{"", "unknown", "SED", "sh"} {
		if lang, ok := ParseLang(name); ok || lang != 0 {
			t.Errorf("ParseLang(%q) = %v, %v", name, lang, ok)
		}
	}
}
