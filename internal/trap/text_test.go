package trap

import (
	"slices"
	"strings"
	"testing"
)

// The kinds of text.go: every hit has a healthy counter-case. Each text is
// tried as it stands, at the end of a command, and in line 3.
func TestTextKinds(t *testing.T) {
	const none = ""
	tests := []struct {
		text string
		keys string // separated by blanks
	}{
		// python -I
		{`python -I build.py`, "python-I"},
		{`python -X utf8 -I build.py`, none},
		{`python -I -X utf8 build.py`, none},
		{`python -I -X utf8=1 build.py`, none},
		{`python -X utf8=0 -I build.py`, "python-I"},
		{`python -I -X utf8=0 -X utf8 build.py`, none},
		{`python -I -X dev build.py`, "python-I"},
		{`python -X=utf8 -I build.py`, "python-I"},
		{`python -Xutf8 -I build.py`, none},
		{`python -Xutf8=1 -I build.py`, none},
		{`python -Xutf8x -I build.py`, "python-I"},
		{`python -IB build.py`, "python-I"},
		{`python -BX utf8 -I build.py`, none},
		{`python -BI build.py`, "python-I"},
		{`python -Bi build.py`, none},
		{`python -Ic "print(1)"`, "python-I"},
		{`python -cI "print(1)"`, none},
		{`python -Im venv x`, "python-I"},
		{`python -mI x`, none},
		{`python -IX utf8 build.py`, none},
		{`python -IXutf8 build.py`, none},
		{`python -IX dev build.py`, "python-I"},
		{`python -c "x" -I`, none},
		{`python -m pytest -I`, none},
		{`python build.py -I`, none},
		{`python - -I`, none},
		{`python -- -I`, none},
		{`python -W ignore -I build.py`, "python-I"},
		{`python -W -I build.py`, none},
		{`python -W "ignore: a b" -I build.py`, "python-I"},
		{`python -Wignore -I build.py`, "python-I"},
		{`python -WI build.py`, none},
		{`python -X "utf8" -I build.py`, none},
		{`python "-I" build.py`, "python-I"},
		{`python -I; ls`, "python-I"},
		{`python; -I`, none},
		{`python | x -I`, none},
		{"python\n-I", none},
		{"python \\\n  -I x.py", "python-I"},
		{"python \\\n  -I \\\r\n -X utf8 x.py", none},
		{`PYTHON -I x.py`, "python-I"},
		{`Python.EXE -I x.py`, "python-I"},
		{`python.exe -I x.py`, "python-I"},
		{`python.exe -X utf8 -I x.py`, none},
		{`C:/Python312/python.exe -I x.py`, "python-I"},
		{`C:\Python312\python.exe -I x.py`, "python-I"},
		{`"C:/Program Files/Python/python.exe" -I x.py`, "python-I"},
		{`"C:/Program Files/Python/python.exe" -X utf8 -I x.py`, none},
		{`.venv/bin/python -I x.py`, "python-I"},
		{`ipython -I x.py`, none},
		{`my-python -I x.py`, none},
		{`python2 -I x.py`, none},
		{`python.exe.bak -I x.py`, none},
		{`py -I x.py`, none},
		{`pythön -I x.py`, none},
		{`grep "python -I" notes.txt`, "python-I"},
		{`grep "python -X utf8 -I" notes.txt`, none},
		{`cmd /c "python -I -X utf8" && echo "done"`, none},
		{`echo 'python -I' | cat`, "python-I"},
		{`x=$(python -I)`, "python-I"},
		{`sh -c "echo \"python -I\" x"`, "python-I"},
		{`python --version`, none},
		{`python --I`, none},
		{`python a.py && python -I b.py`, "python-I"},
		{`python -I a.py; python -I b.py`, "python-I"},

		// pkill -f
		{`pkill -f node`, "pkill-f"},
		{`pkill node`, none},
		{`pkill -x node`, none},
		{`pkill -fx node`, "pkill-f"},
		{`pkill -xf node`, "pkill-f"},
		{`pkill --full node`, "pkill-f"},
		{`pkill --exact node`, none},
		{`pkill --exact --full node`, "pkill-f"},
		{`pkill -TERM -f node`, "pkill-f"},
		{`pkill -TERM node`, none},
		{`pkill -HUP -f node`, "pkill-f"},
		{`pkill -9 -f node`, "pkill-f"},
		{`pkill -9 node`, none},
		{`pkill -n -f node`, "pkill-f"},
		{`pkill -u root -f node`, "pkill-f"},
		{`pkill -u -f node`, none},
		{`pkill -U root -f node`, "pkill-f"},
		{`pkill -g 0 -f node`, "pkill-f"},
		{`pkill -G 0 -f node`, "pkill-f"},
		{`pkill -P 1 -f node`, "pkill-f"},
		{`pkill -s 0 -f node`, "pkill-f"},
		{`pkill -t pts/0 -f node`, "pkill-f"},
		{`pkill -F pid -f node`, "pkill-f"},
		{`pkill -F -f`, none},
		{`pkill --signal TERM -f node`, "pkill-f"},
		{`pkill --signal -f node`, none},
		{`pkill --signal=TERM -f node`, "pkill-f"},
		{`pkill -FULL node`, none},
		{`pkill node -f`, none},
		{`pkill -- -f`, none},
		{`PKILL -f node`, none},
		{`pkill -F node`, none},
		{`/usr/bin/pkill -f node`, "pkill-f"},
		{`sudo pkill -f node`, "pkill-f"},
		{`ssh host pkill -f node`, "pkill-f"},
		{`wsl -- pkill -f node`, "pkill-f"},
		{`ssh host 'pkill -f'`, "pkill-f"},
		{`pgrep -f node`, none},
		{`killall -f node`, none},
		{`echo "pkill -f"`, "pkill-f"},
		{`pkill-f node`, none},
		{"pkill\n-f node", none},

		// python3
		{`python3 x.py`, "python3"},
		{`python x.py`, none},
		{`python3`, "python3"},
		{`Python3 x.py`, "python3"},
		{`python3.exe x.py`, "python3"},
		{`python3 -I x.py`, "python3"},
		{`python3.12 x.py`, none},
		{`python3-config --libs`, none},
		{`xpython3 x.py`, none},
		{`python3x x.py`, none},
		{`python34 x.py`, none},
		{`ls /usr/lib/python3/dist-packages`, none},
		{`.venv/bin/python3 x.py`, "python3"},
		{`git commit -m "drop python3"`, "python3"},
		{`git commit -m "Drop python3."`, "python3"},
		{`git commit -m „python3“`, "python3"},
		{`cat a | python3 -m json.tool`, "python3"},
		{`cmd /c python3 x.py`, "python3"},
		{`powershell -c "python3 x.py"`, "python3"},
		{`wsl python3 x.py`, none},
		{`wsl.exe python3 x.py`, none},
		{`WSL.EXE python3 x.py`, none},
		{`ssh host python3 x.py`, none},
		{`/usr/bin/ssh host python3 x.py`, none},
		{`docker run img python3 x.py`, none},
		{`podman run img python3 x.py`, none},
		{`kubectl exec p -- python3 x.py`, none},
		{`python3 x.py; ssh host ls`, none},
		{"python3 x.py\necho\ndocker ps", none},
		{`ssh-keygen; python3 x.py`, "python3"},
		{`ls ~/.ssh; python3 x.py`, "python3"},
		{`cd docker/ && python3 x.py`, "python3"},
		{`docker-compose up; python3 x.py`, "python3"},
		{`if true; then python3 "x`, "python3"},

		// bash
		{`cmd /c bash a.sh`, "bash"},
		{`bash a.sh`, none},
		{`cmd //c bash a.sh`, "bash"},
		{`cmd.exe /c bash a.sh`, "bash"},
		{`CMD /C BASH a.sh`, "bash"},
		{`cmd /c bash.exe a.sh`, "bash"},
		{`cmd /c "bash a.sh"`, "bash"},
		{`cmd /d /c bash a.sh`, none},
		{`cmd /s /c bash a.sh`, none},
		{`cmd /check bash a.sh`, none},
		{`cmd bash a.sh`, none},
		{`C:/Windows/System32/cmd.exe /c bash a.sh`, "bash"},
		{`"C:/Windows/System32/cmd.exe" /c bash a.sh`, "bash"},
		{`powershell -c "bash a.sh"`, "bash"},
		{`PowerShell.exe -c "bash a.sh"`, "bash"},
		{`pwsh -c bash`, "bash"},
		{`/c/Program\ Files/PowerShell/7/pwsh.exe -c "bash a.sh"`, "bash"},
		{`my-pwsh -c bash`, none},
		{`cmd /c C:\Git\bin\bash.exe a.sh`, none},
		{`cmd /c C:/Git/bin/bash a.sh`, none},
		{`cmd /c type .bashrc`, none},
		{`cmd /c type bash_profile`, none},
		{`cmd /c bash-completion`, none},
		{`cmd /c mybash`, none},
		{`cmd /c git-bash.exe`, none},
		{`cmd /c wsl bash a.sh`, none},
		{`cmd /c bash a.sh; wsl ls`, "bash"},
		{`powershell -c "wsl -- bash a; bash b"`, none},
		{`powershell ssh host bash a.sh`, none},
		{`cmd /c docker.exe exec c bash`, none},
		{"cmd /c dir\nbash a.sh", none},
		{"wsl ls\ncmd /c bash a.sh", "bash"},
		{`bash a.sh; cmd /c dir`, none},
		{`cmd /c bash a; cmd /c bash b`, "bash"},
		{`python -c "import subprocess; subprocess.run(['bash', 'a.sh'])"`, "bash"},
		{`python -c 'import subprocess; subprocess.run(["bash", "a.sh"])'`, "bash"},
		{`python -c "subprocess.run([\"bash\", \"a.sh\"])"`, "bash"},
		{`python -c "subprocess.run(['bash.exe', 'a.sh'])"`, "bash"},
		{`python -c "subprocess.run(['C:/Git/bin/bash.exe', 'a.sh'])"`, none},
		{`python -c "subprocess.run(['git', 'bash'])"`, none},
		{`python -c "subprocess.run(['bashful'])"`, none},
		{`python -c "subprocess.run(('bash', 'a.sh'))"`, none},
		{`[ "bash" = "$x" ]`, none},
		{`python -c "run(['bash', 'a.sh'])"; ssh host ls`, none},
		{`echo "bash"`, none},

		// several, and nothing
		{`python -I a.py; pkill -f x; python3 b.py; cmd /c bash c.sh`, "python-I pkill-f python3 bash"},
		{`python -I a.py; pkill -f x; python -I b.py`, "python-I pkill-f"},
		{`git status`, none},
		{"ls \xff\xfe", none},
		{`kaputt ( " '`, none},
		{``, none},
	}
	for _, test := range tests {
		want := strings.Fields(test.keys)
		for _, text := range []string{test.text, "echo a; " + test.text, "echo a\n: b\n" + test.text} {
			hints := Hints(text, nil)
			if got := keysOf(hints); !sameKeys(got, want) {
				t.Errorf("%q: %q, want %q", text, got, want)
			}
		}
		if len(want) == 0 {
			continue
		}
		// A healthy command behind it hides nothing, unless it leads to Linux.
		if got := keysOf(Hints(test.text+"\nls -la", nil)); !sameKeys(got, want) {
			t.Errorf("%q and a further line: %q, want %q", test.text, got, want)
		}
	}
}

// A hint says where its word begins.
func TestTextOffsets(t *testing.T) {
	tests := []struct {
		text string
		word string
	}{
		{"echo ä; python -I x", "python -I"},
		{"python x; C:/python.exe -I x", "python.exe -I"},
		{"pkill x; sudo pkill -f x", "pkill -f"},
		{"echo python3.12; python3 x", "python3 x"},
		{"bash x\ncmd /c bash y", "bash y"},
	}
	for _, test := range tests {
		hints := Hints(test.text, nil)
		if want := strings.Index(test.text, test.word); len(hints) != 1 || hints[0].At != want {
			t.Errorf("%q: %+v, want one at %d", test.text, hints, want)
		}
	}
}

func keysOf(hints []Hint) []string {
	keys := make([]string, len(hints))
	for i, hint := range hints {
		keys[i] = hint.Key
	}
	return keys
}

func sameKeys(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
