package windows

import (
	"strings"
	"testing"
)

// show writes calls in one line: words joined by _, open ones in ‹›,
// redirections after >, >> or <, calls joined by " | ", and ! if incomplete.
func show(calls []Call, complete bool) string {
	var b strings.Builder
	word := func(w Word) {
		if w.Literal {
			b.WriteString(w.Text)
		} else {
			b.WriteString("‹" + w.Text + "›")
		}
	}
	for i, c := range calls {
		if i > 0 {
			b.WriteString(" | ")
		}
		for j, w := range c.Words {
			if j > 0 {
				b.WriteByte('_')
			}
			word(w)
		}
		for _, r := range c.Redirects {
			switch {
			case r.Input:
				b.WriteString(" <")
			case r.Append:
				b.WriteString(" >>")
			default:
				b.WriteString(" >")
			}
			word(r.Target)
		}
	}
	if !complete {
		b.WriteString(" !")
	}
	return b.String()
}

func TestPowerShell(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"   # nothing", ""},
		{"-", " !"},
		{"Get-ChildItem", "Get-ChildItem"},
		{"Get-ChildItem -Recurse -Filter *.go", "Get-ChildItem_-Recurse_-Filter_*.go"},
		{"Remove-Item -Recurse -Force build", "Remove-Item_-Recurse_-Force_build"},
		{"a; b\nc\r\nd", "a | b | c | d"},
		{"a && b || c", "a | b | c"},
		{"a | b -x | c", "a | b_-x | c"},
		{"a |\n b", "a | b"},
		{"a `\n b", "a_b"},
		{"a <# x ; rm y #> b # c; d", "a_b"},
		{"a 'b c' \"d e\"", "a_b c_d e"},
		{"a 'it''s' \"say \"\"x\"\"\" \"t`tb`\"\"", "a_it's_say \"x\"_t\tb\""},
		{"a ‘b c’ “d e”", "a_b c_d e"},
		{"Rem`ove-Item x", "Remove-Item_x"},
		{"Rem\"ove\"-It'em' x", "Remove-Item_x"},
		{"rm –Recurse x", "rm_-Recurse_x"},
		{"rm\u00a0x", "rm_x"},
		{"rm a,b, c", "rm_a_b_c"},
		{"rm -Path a,b", "rm_-Path_a_b"},
		{"Select-Object -Property Name,Id", "Select-Object_-Property_Name,Id"},
		{"rm -Recurse a,b", "rm_-Recurse_a_b"},
		{"a $x \"$x\" b$x ${x y}", "a_‹$x›_‹\"$x\"›_‹b$x›_‹${x y}›"},
		{"a $env:TEMP\\x $x.Name $x[0].Y", "a_‹$env:TEMP\\x›_‹$x.Name›_‹$x[0].Y›"},
		{"a '$x' \"`$x\" \"$\" \"a$ b\"", "a_$x_$x_$_a$ b"},
		{"a $true -Confirm:$false $null", "a_$true_-Confirm:$false_$null"},
		{"a -Path: b", "a_-Path:b"},
		{"a $(b c) d", "a_‹$(b c)›_d | b_c"},
		{"a \"x $(b c) y\"", "a_‹\"x $(b c) y\"› | b_c"},
		{"a (b c) @(d; e)", "a_‹(b c)›_‹@(d; e)› | b_c | d | e"},
		{"a { b; c $_ } d", "a_{ b; c $_ }_d | b | c_‹$_›"},
		{"ls | % { rm $_ }", "ls | ForEach-Object_{ rm $_ } | rm_‹$_›"},
		{"ls | ? { $_.Length -gt 1MB }", "ls | Where-Object_{ $_.Length -gt 1MB }"},
		{"ls | where Length -gt 5", "ls | where_Length_-gt_5"},
		{"& rm x", "rm_x"},
		{"& 'C:\\a b\\rm.exe' x", "C:\\a b\\rm.exe_x"},
		{"& $c x", "‹$c›_x"},
		{"& (gcm rm) x", "‹(gcm rm)›_x | gcm_rm"},
		{"& { a; b } c", "a | b"},
		{". .\\x.ps1 y", ".\\x.ps1_y"},
		{". { a }", "a"},
		{"$x = 5; a", "a"},
		{"$x = b c; a", "b_c | a"},
		{"$x += (b c)", "b_c"},
		{"[int]$x = '5'", ""},
		{"$a, $b = 1, 2", ""},
		{"$h = @{ a = 1; 'b' = (c d); e = f g }", "c_d | f_g"},
		{"$env:PATH = 'x'; ls", "ls !"},
		{"${c:\\x} = 1", " !"},
		{"$x.Y = 1", " !"},
		{"$PSDefaultParameterValues['*:Path'] = 'x'", " !"},
		{"$function:ls = { rm x }", "rm_x !"},
		{"if ($x -eq 1) { a } elseif (b) { c } else { d }", "a | b | c | d"},
		{"if (Test-Path x) { rm x }", "Test-Path_x | rm_x"},
		{"while ($true) { a; break }", "a"},
		{"do { a } until ($x)", "a"},
		{"for ($i=0; $i -lt 3; $i++) { a $i }", "a_‹$i›"},
		{"foreach ($f in ls x) { rm $f }", "ls_x | rm_‹$f›"},
		{"1..3 | foreach { a $_ }", "foreach_{ a $_ } | a_‹$_›"},
		{"switch ($x) { 1 { a } 'b' { c } default { d } }", "a | c | d"},
		{"try { a } catch [System.Exception] { b } finally { c }", "a | b | c"},
		{"function foo { rm x }; foo y", "rm_x"},
		{"function rm { a }; rm x", "a | rm_x !"},
		{"if ($x) { function foo { a } }; foo", "a | foo !"},
		{"function f($a, [int]$b = 3) { a $a }", "a_‹$a›"},
		{"return a b", "a_b"},
		{"throw 'x'", ""},
		{"exit 3", ""},
		{"a > b; c >> d; e 2> f; g 2>&1; h *> $null; i >nul", "a >b | c >>d | e >f | g | h | i"},
		{"'x' > b", " >b"},
		{"5 | a > $f", "a >‹$f›"},
		{"a < b", "a <b !"},
		{"'x' | Out-File y", "Out-File_y"},
		{"a @'\nb ' $c\n'@ d", "a_b ' $c_d"},
		{"a @'\n'@ d", "a__d"},
		{"a @\"\nb $(c d)\n\"@", "a_‹@\"\nb $(c d)\n\"@› | c_d"},
		{"a @args", "a_‹@args›"},
		{"cmd --% /c dir x | b", "cmd_/c_dir_x | b"},
		{"cmd --% /c dir & del x", "cmd_/c_dir_&_del_x !"},
		{"7z a x", "7z_a_x"},
		{"0x10 + 3KB - 1e3", ""},
		{"[math]::Round(3.2)", ""},
		{"[DateTime]::Now.ToString('o')", ""},
		{"[IO.File]::Delete('x')", " !"},
		{"[System.Diagnostics.Process]::Start('x')", " !"},
		{"[System.Collections.Generic.List[string]]::new()", " !"},
		{"[wmiclass]'x'", " !"},
		{"$x -is [IO.FileInfo]", ""},
		{"$x.Delete()", " !"},
		{"$x.ToString().Trim()", ""},
		{"(gi x).Delete()", "gi_x !"},
		{"$x.$y", " !"},
		{"ls [ab]*.txt", "ls_[ab]*.txt"},
		{"using module x", "using_module_x !"},
		{"class A { }", "class_A_{ } !"},
		{"a 'b", "a_‹'b› !"},
		{"a {", "a_{ !"},
		{"a )", "a !"},
		{"a $(b", "a_‹$(b› | b !"},
		{"a \"`u{41}\"", "a_{41} !"},
		{"Set-Item function:ls { rm x }", "Set-Item_function:ls_{ rm x } | rm_x !"},
		{"ls env:", "ls_env:"},
		{"Set-Location alias:", "Set-Location_alias: !"},
		{"param($x = (a b)) c $x", "a_b | c_‹$x›"},
		{"a & b", "a | b"},
		{"\x00", " !"},
		{"a \xff", " !"},
	} {
		if got := show(PowerShell(tt.text)); got != tt.want {
			t.Errorf("PowerShell(%q)\n got %q\nwant %q", tt.text, got, tt.want)
		}
	}
}

func TestCmd(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"dir", "dir"},
		{"del a.txt", "del_a.txt"},
		{"a & b && c || d | e", "a | b | c | d | e"},
		{"@echo off & @a", "echo_off | a"},
		{"d^el a^&b", "del_a&b"},
		{"del \"a & b\" c", "del_a & b_c"},
		{"d\"e\"l x", "del_x"},
		{"del a,b;c=d", "del_a_b_c_d"},
		{"del,x", "del_x"},
		{"set x=a,b", "set_x=a,b"},
		{"prog a,b", "prog_a,b"},
		{"(a & b) > x", " >x | a | b"},
		{"(a) 2>nul & c", "a | c"},
		{"a>x 2>&1 & b >>y <z & c >nul", "a >x | b >>y <z | c"},
		{">x echo a", "echo_a >x"},
		{"rd/s/q x", "rd_/s_/q_x"},
		{"rd /s/q x", "rd_/s_/q_x"},
		{"cd..", "cd_.."},
		{"cd\\x & echo.a & echo(", "cd_\\x | echo_a | echo"},
		{"dir /o:d/s", "dir_/o:d_/s"},
		{"type /usr/bin/x", "type_/usr/bin/x"},
		{"prog /s/q", "prog_/s/q"},
		{"type %USERPROFILE%\\x", "type_‹%USERPROFILE%\\x›"},
		{"type \"%TEMP%\"", "type_‹\"%TEMP%\"›"},
		{"type %X%", "type_‹%X%› !"},
		{"%COMSPEC% /c x", "‹%COMSPEC%›_/c_x"},
		{"echo 100% sure", "echo_100%_sure"},
		{"echo %%X%%", "echo_‹%%X%%› !"},
		{"call echo ^%PATH^%", "call_echo_‹^%PATH^%› !"},
		{"echo %CD:\\=\" & del x% \"", "echo_%CD:\\= & del x%  !"},
		{"if exist x del x", "del_x"},
		{"if not exist x (md x) else rd x", "md_x | rd_x"},
		{"if /i \"%x%\"==\"y\" a", "a !"},
		{"if a==b (c & d)", "c | d"},
		{"if 1 EQU 2 a", "a"},
		{"if errorlevel 1 a", "a"},
		{"if defined x a", "a"},
		{"for %i in (*.txt) do del %i", "del_‹%i›"},
		{"for %i in (C:\\a) do copy %i C:\\%i", "copy_‹%i›_‹C:\\%i›"},
		{"for /r x %f in (*) do @type \"%~nxf\"", "type_‹\"%~nxf\"›"},
		{"for /f %i in ('dir /b & rm y') do del %i", "dir_/b | rm_y | del_‹%i›"},
		{"for /f \"usebackq delims=,\" %i in (`rm y`) do (a %i & b)", "rm_y | a_‹%i› | b"},
		{"for /l %n in (1,1,3) do a %n", "a_‹%n›"},
		{"start \"\" /b prog x", "start_/b_prog_x"},
		{"start /wait \"title\" \"a b.exe\" x", "start_/wait_a b.exe_x"},
		{"start /d \"C:\\x y\" prog", "start_/d_C:\\x y_prog"},
		{"start notepad \"a b\"", "start_notepad_a b"},
		{"call x.bat y", "call_x.bat_y"},
		{"rem a & b", "rem_a | b"},
		{":label", " !"},
		{"a \"b", "a_b !"},
		{"(a", "a !"},
		{"a)", "a)"},
		{"dir C:\\x(1).txt", "dir_C:\\x(1).txt"},
		{"if x", " !"},
		{"for x", " !"},
		{"echo %1", "echo_‹%1› !"},
		{"a\nb", "a | b"},
		{"a ^\nb", "a_b"},
	} {
		if got := show(Cmd(tt.text)); got != tt.want {
			t.Errorf("Cmd(%q)\n got %q\nwant %q", tt.text, got, tt.want)
		}
	}
}

// What is too large or too deep is incomplete, and comes back at all.
func TestLimits(t *testing.T) {
	for name, text := range map[string]string{
		"long": strings.Repeat("a;", maxText), "calls": strings.Repeat("a;", maxCalls+1), "groups": strings.Repeat("(", 10000),
		"blocks": strings.Repeat("{", 10000), "subs": strings.Repeat("$(", 10000), "tables": strings.Repeat("@{a=", 10000),
		"texts": strings.Repeat("\"$(", 10000), "ifs": strings.Repeat("if(", 10000), "assigns": strings.Repeat("$a=", 10000) + "1",
		"types": strings.Repeat("[", 10000),
	} {
		if _, complete := PowerShell(text); complete {
			t.Errorf("PowerShell, %s: complete", name)
		}
	}
	for name, text := range map[string]string{
		"groups": strings.Repeat("(", 10000), "calls": strings.Repeat("a&", maxCalls+1), "ifs": strings.Repeat("if exist x ", 10000) + "a",
		"fors": strings.Repeat("for %i in (a) do ", 10000) + "a", "long": strings.Repeat("a", maxText+1),
	} {
		if _, complete := Cmd(text); complete {
			t.Errorf("Cmd, %s: complete", name)
		}
	}
}

// Shapes that a reader would fall for that looks at a text again and again
// end in a moment.
func TestLongTexts(t *testing.T) {
	for _, unit := range []string{"1z", "[a", "$", "`", "%", "%a", "%CD:", "\"", "'", "@'", "<#", "${", "-", ".", "a,", "'a',", "^", "if ", "for ", "$a,", "a\n", "x.y(", "}", ")", "--% ", "%%", "a:"} {
		text := strings.Repeat(unit, maxText/len(unit))
		PowerShell(text)
		Cmd(text)
	}
}

func FuzzPowerShell(f *testing.F) {
	for _, s := range []string{"a | % { rm $_ }", "$x = @{a=1}; if ($x) { b } else { c 'd' > e }", "a @'\nb\n'@", "[int]::MaxValue", "& { a } $(b) \"c $(d)\"", "switch ($x) { 1 { a } }"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkCalls(t, text, PowerShell) })
}

func FuzzCmd(f *testing.F) {
	for _, s := range []string{"for /f %i in ('a') do b %i", "if exist x (a) else b", "a>b 2>&1 & c", "rd/s/q %TEMP%", "start \"\" a", "start \"\"\x1d^"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkCalls(t, text, Cmd) })
}

// checkCalls holds for every text: calls are not empty and within the limits,
// a second look says the same, and a command that follows on a line of its own
// is seen if all before it was understood.
func checkCalls(t *testing.T, text string, read func(string) ([]Call, bool)) {
	calls, complete := read(text)
	if len(calls) > maxCalls {
		t.Errorf("%d calls", len(calls))
	}
	for _, c := range calls {
		if len(c.Words) == 0 && len(c.Redirects) == 0 {
			t.Errorf("%q: an empty call", text)
		}
		for _, w := range c.Words {
			if !w.Literal && w.Text == "" {
				t.Errorf("%q: an open word without source", text)
			}
		}
	}
	if again := show(read(text)); again != show(calls, complete) {
		t.Errorf("%q: %q, then %q", text, show(calls, complete), again)
	}
	if !complete || len(text) > 1000 {
		return
	}
	if more, whole := read(text + "\nvisible-end"); whole && !strings.Contains(show(more, whole), "visible-end") {
		t.Errorf("%q hides what follows: %q", text, show(more, whole))
	}
}
