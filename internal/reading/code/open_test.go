package code

import (
	"reflect"
	"testing"
)

// Texts for a shell that are literal at their beginning have holes for the
// rest.
func TestOpenTexts(t *testing.T) {
	tests := []struct {
		lang Lang
		text string
		want []string // nil: starts the unknown
	}{
		{Perl, "system(\"rm $_\")", []string{"rm \uE000"}},
		{Perl, "system(\"rm $_[0]{a}->{b} -f\")", []string{"rm \uE000 -f"}},
		{Perl, "system \"rm \" . $x . \" -f\"", []string{"rm \uE000 -f"}},
		{Perl, "my $c = \"rm $x\"; system($c)", []string{"rm \uE000"}},
		{Perl, "`rm @{[join ' ', @x]} y`", []string{"rm \uE000 y"}},
		{Perl, "qx{rm ${x}}", []string{"rm \uE000"}},
		{Perl, "system(\"kill $$\")", []string{"kill \uE000"}},
		{Perl, "system(\"echo $& x\")", []string{"echo \uE000 x"}},
		{Perl, "system(\"echo \\$x a\\@b\")", []string{"echo $x a@b"}},
		{Perl, "system(sprintf('rm %s-%05d', $x, 1))", []string{"rm \uE000-\uE000"}},
		{Perl, "system(<<E)\nrm $x\nE\n", []string{"rm \uE000\n"}},
		{Perl, "system($x . ' rm')", nil},
		{Perl, "system(\"$x rm\")", nil},
		{Perl, "system('rm', $x)", nil},
		{Python, "os.system(f'rm {x} {y!r}')", []string{"rm \uE000 \uE000"}},
		{Python, "os.system('rm ' + x + '; ls')", []string{"rm \uE000; ls"}},
		{Python, "os.system('rm %s' % x)", []string{"rm \uE000"}},
		{Python, "os.system('rm %s' % x + '; ls')", []string{"rm \uE000; ls"}},
		{Python, "os.system('rm {} {{}}'.format(x))", []string{"rm \uE000 {}"}},
		{Python, "os.system('rm x'.replace('x', y))", nil},
		{Python, "os.system(x)", nil},
		{Python, "subprocess.run(f'rm {x}', shell=True)", []string{"rm \uE000"}},
		{Python, "c = f'rm {x}'\nos.system(c)", []string{"rm \uE000"}},
		{Python, "c = 'rm ' + x\nos.system(c)", []string{"rm \uE000"}},
		{Python, "c = f'rm {x}'\nc = y\nos.system(c)", nil},
		{Python, "c = 'ls'\nfor c in x: os.system(c)", nil},
		{Perl, "$c = 'ls'; $c =~ s/ls/rm x/; system($c)", nil},
		{Ruby, "c = 'ls'; c << '; rm x'; system(c)", nil},
		{PHP, "$c = 'ls'; foreach ($x as $c) system($c);", nil},
		{Ruby, "system(\"rm #{a ? b : c} x\")", []string{"rm \uE000 x"}},
		{Ruby, "system('rm ' + x)", []string{"rm \uE000"}},
		{Ruby, "`rm #@x #$y`", []string{"rm \uE000 \uE000"}},
		{Ruby, "system('rm %s' % x)", []string{"rm \uE000"}},
		{Ruby, "system(<<~E)\n  rm #{x}\nE\n", []string{"rm \uE000\n"}},
		{Node, "require('child_process').execSync(`rm ${x} ${y}`)", []string{"rm \uE000 \uE000"}},
		{Node, "require('child_process').exec('rm ' + x + ' -f', f)", []string{"rm \uE000 -f"}},
		{Node, "await $`rm ${x}`", []string{"rm \uE000"}},
		{Node, "require('child_process').exec(x ? 'a' : 'b')", nil},
		{PHP, "system(\"rm $x[0] $y->z {$a['b']} ${c}\");", []string{"rm \uE000 \uE000 \uE000 \uE000"}},
		{PHP, "system('rm ' . escapeshellarg($x) . ' -f');", []string{"rm \uE000 -f"}},
		{PHP, "system(\"awk '{print $1}'\");", []string{"awk '{print $1}'"}},
		{PHP, "echo `rm $x`;", []string{"rm \uE000"}},
		{PHP, "system(sprintf('rm %s', $x));", []string{"rm \uE000"}},
		{Lua, "os.execute('zip ' .. x)", []string{"zip \uE000"}},
		{Lua, "os.execute('zip a')", []string{"zip a"}},
		{Awk, "{system(\"rm \" $1 \" -f\")}", []string{"rm \uE000 -f"}},
		{Awk, "{system(\"rm \" f(x, 1) a[2] \".x\")}", []string{"rm \uE000.x"}},
		{Awk, "{system((\"rm \" $1))}", []string{"rm \uE000"}},
		{Awk, "{(\"rm \" $1) | getline x}", []string{"rm \uE000"}},
		{Awk, "{\"rm \" $1 | getline x}", nil},
		{Awk, "{print x | (\"rm \" $1)}", []string{"rm \uE000"}},
		{Awk, "{system(c \" rm\")}", nil},
		{Awk, "{system(\"rm\" == x)}", nil},
		{Awk, "{system()}", nil},
	}
	for _, tt := range tests {
		got := Read(tt.lang, tt.text)
		if !reflect.DeepEqual(got.Shell, tt.want) || got.Starts != (tt.want == nil) {
			t.Errorf("%s: %q\n got %q, starts %v\nwant %q", tt.lang, tt.text, got.Shell, got.Starts, tt.want)
		}
		for _, s := range got.Shell {
			if open(s) && got.Complete {
				t.Errorf("%s: %q is complete", tt.lang, tt.text)
			}
		}
	}
}

// TestHoles reads texts that have holes themselves.
func TestHoles(t *testing.T) {
	runSmall(t, []smallTest{
		{Awk, "{print > \"f\uE000\"; print > \"g\"}", Finding{Write: true, Writes: []string{"g"}}},
		{Awk, "{system(\"rm \uE000\")}", Finding{Shell: []string{"rm \uE000"}}},
		{Sed, "w \uE000", Finding{Write: true}},
		{Python, "subprocess.run(['rm', '\uE000']); os.remove('\uE000')", Finding{Starts: true, Write: true, Destroy: true}},
		{Python, "os.system('\uE000 x')", Finding{Starts: true}},
		{SQLite, ".output \uE000", Finding{Write: true}},
	})
}

func TestAwkNetwork(t *testing.T) {
	tests := []struct {
		text  string
		hosts []string
	}{
		{"BEGIN{\"/inet/tcp/0/example.com/80\" |& getline}", []string{"example.com"}},
		{"BEGIN{x = \"/inet4/udp/0/a.b/53\"; print 1 |& x}", []string{"a.b"}},
		{"BEGIN{print > \"/inet6/tcp/0/::1/80\"}", []string{"::1"}},
		{"BEGIN{getline x < \"/inet/tcp/8080/0/0\"}", nil},
		{"BEGIN{s = \"/inet/tcp/0/\" h \"/80\"}", nil},
		{"BEGIN{s = \"\\057inet/tcp/0/h/80\"}", []string{"h"}},
	}
	for _, tt := range tests {
		got := Read(Awk, tt.text)
		if !got.Network || got.Complete || !reflect.DeepEqual(got.Hosts, tt.hosts) {
			t.Errorf("%q gives %+v, want the hosts %q", tt.text, got, tt.hosts)
		}
	}
	if got := Read(Awk, "{print > \"/inetd.conf\"}"); got.Network || !reflect.DeepEqual(got.Writes, []string{"/inetd.conf"}) {
		t.Errorf("an ordinary file gives %+v", got)
	}
}

func TestMoreGeneral(t *testing.T) {
	gone := func(paths ...string) Finding { return Finding{Write: true, Destroy: true, Deletes: paths} }
	argv := func(words ...string) Finding { return Finding{Argv: [][]string{words}} }
	text := func(texts ...string) Finding { return Finding{Shell: texts} }
	starts := Finding{Starts: true}
	tests := []struct {
		lang Lang
		text string
		want Finding
	}{
		{AppleScript, "do shell script \"rm -rf x\"", text("rm -rf x")},
		{AppleScript, "do shell script \"rm x\" with administrator privileges", Finding{Shell: []string{"rm x"}, Privilege: true}},
		{AppleScript, "do shell script \"rm \" & quoted form of f & \" -f\"", text("rm \uE000 -f")},
		{AppleScript, "set c to \"rm x\"\nDo Shell Script c", text("rm x")},
		{AppleScript, "set c to \"rm x\"\nset c to d\ndo shell script c", starts},
		{AppleScript, "display dialog \"do shell script \\\"rm\\\"\" -- do shell script \"x\"\n(* do shell script \"a\" (* b *) do shell script \"c\" *)", Finding{}},
		{AppleScript, "tell application \"Terminal\" to do script \"rm x\"", text("rm x")},
		{AppleScript, "tell app \"Finder\" to delete POSIX file \"/a\"", gone("/a")},
		{AppleScript, "open location \"http://h/\"", Finding{Network: true, Hosts: []string{"http://h/"}}},
		{AppleScript, "run script \"do shell script \\\"id\\\"\"", text("id")},
		{AppleScript, "do shell script ¬\n \"id\"", text("id")},
		{Node, "app.doShellScript('id')", text("id")},

		{Elisp, "(shell-command \"rm x\")", text("rm x")},
		{Elisp, "(message \"(shell-command \\\"rm\\\")\") ; (shell-command \"rm\")\n(list ?\" ?\\\" ?\\; '(shell-command \"x\"))", Finding{}},
		{Elisp, "(shell-command-to-string (concat \"rm \" x))", text("rm \uE000")},
		{Elisp, "(shell-command (format \"rm %s\" x))", text("rm \uE000")},
		{Elisp, "(call-process \"rm\" nil nil nil \"-f\" \"x\")", argv("rm", "-f", "x")},
		{Elisp, "(start-process \"n\" nil \"rm\" \"x\")", argv("rm", "x")},
		{Elisp, "(call-process x)", starts},
		{Elisp, "(progn (delete-file \"a\") (delete-directory \"b\" t))", gone("a", "b")},
		{Elisp, "(write-region \"x\" nil \"f\")", Finding{Write: true, Writes: []string{"f"}}},
		{Elisp, "(url-retrieve-synchronously \"http://h/\")", Finding{Network: true, Hosts: []string{"http://h/"}}},
		{Elisp, "(eval (read \"(delete-file \\\"a\\\")\"))", gone("a")},

		{Tcl, "exec rm -rf a", argv("rm", "-rf", "a")},
		{Tcl, "spawn rm a\nexpect eof", argv("rm", "a")},
		{Tcl, "file delete -force -- a {b c}", gone("a", "b c")},
		{Tcl, "puts {exec rm a} ;# exec rm b\n# exec rm c \\\nexec rm d", Finding{}},
		{Tcl, "if {$x} { puts [exec rm a] }", argv("rm", "a")},
		{Tcl, "exec a | b > f", Finding{Argv: [][]string{{"a"}, {"b"}}, Write: true, Writes: []string{"f"}}},
		{Tcl, "exec rm $x", starts},
		{Tcl, "eval \"exec rm a\"", argv("rm", "a")},
		{Tcl, "set f [open \"|rm a\"]", argv("rm", "a")},
		{Tcl, "open f w", Finding{Write: true, Writes: []string{"f"}}},
		{Tcl, "expect { \"x\" { exec rm a } timeout { system \"rm $y\" } }", Finding{Argv: [][]string{{"rm", "a"}}, Shell: []string{"rm \uE000"}}},
		{Tcl, "socket example.com 80", Finding{Network: true, Hosts: []string{"example.com"}}},
		{Tcl, "switch -- $x { a { exec rm a } }", argv("rm", "a")},

		{R, "system(\"rm x\")", text("rm x")},
		{R, "system(paste(\"rm\", x))", text("rm \uE000")},
		{R, "cmd <- paste0('rm ', x); cat('system(\"a\")') # system('b')", Finding{}},
		{R, "cmd <- 'rm x'\nsystem(cmd, intern = TRUE)", text("rm x")},
		{R, "system2('rm', c('-rf', 'x'))", text("rm -rf x")},
		{R, "system2('rm', args = x)", text("rm \uE000")},
		{R, "unlink(c('a', 'b'), recursive = TRUE); file.remove('c')", gone("a", "b", "c")},
		{R, "system(r\"(rm \"x\")\")", text("rm \"x\"")},
		{R, "writeLines(x, 'f'); cat(x, file = \"g\")", Finding{Write: true, Writes: []string{"f", "g"}}},
		{R, "download.file('http://h/', 'f')", Finding{Network: true, Hosts: []string{"http://h/"}, Write: true, Writes: []string{"f"}}},
		{R, "eval(parse(text = 'system(\"id\")'))", text("id")},
		{R, "processx::run('rm', c('a'))", argv("rm", "a")},

		{Julia, "run(`rm a`)", argv("rm", "a")},
		{Julia, "run(`rm $x -f`)", text("rm \uE000 -f")},
		{Julia, "run(`rm 'a b'`)", argv("rm", "a b")},
		{Julia, "rm(\"a\"; recursive=true)", gone("a")},
		{Julia, "A' * B'; rm(\"a\") # rm(\"b\") \n#= rm(\"c\") #= =# rm(\"d\") =#", gone("a")},
		{Julia, "println(\"rm(\\\"a\\\") `rm`\"); x = '\"'", Finding{}},
		{Julia, "println(\"$(run(`id`))\")", argv("id")},
		{Julia, "open(\"f\", \"w\") do io end; write(\"g\", x)", Finding{Write: true, Writes: []string{"f", "g"}}},
		{Julia, "run(Cmd([\"rm\", \"a\"]))", argv("rm", "a")},
		{Julia, "run(x)", starts},

		{Elixir, "System.cmd(\"rm\", [\"a\"])", argv("rm", "a")},
		{Elixir, "System.cmd \"rm\", ~w(-rf a)", argv("rm", "-rf", "a")},
		{Elixir, "System.shell(\"rm #{x}\")", text("rm \uE000")},
		{Elixir, "System.shell(\"rm \" <> x)", text("rm \uE000")},
		{Elixir, "\"rm a\" |> System.shell()", text("rm a")},
		{Elixir, ":os.cmd('rm a'); :os.cmd(~c\"rm b\")", text("rm a", "rm b")},
		{Elixir, "File.rm!(\"a\"); File.rm_rf(\"b\")", gone("a", "b")},
		{Elixir, "File.write!(\"f\", \"x\")", Finding{Write: true, Writes: []string{"f"}}},
		{Elixir, "IO.puts(\"File.rm(1)\") # File.rm(\"b\")\n~S(File.rm(\"a\"))", Finding{}},
		{Elixir, "File.open(\"f\", [:write])", Finding{Write: true, Writes: []string{"f"}}},
		{Elixir, "Port.open({:spawn, \"rm a\"}, [])", text("rm a")},
		{Elixir, "Code.eval_string(\"System.shell(\\\"id\\\")\")", text("id")},
		{Elixir, "Req.get!(\"http://h/\")", Finding{Network: true, Hosts: []string{"http://h/"}}},
	}
	for _, tt := range tests {
		if got := Read(tt.lang, tt.text); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %q\n got %+v\nwant %+v", tt.lang, tt.text, got, tt.want)
		}
	}
}
