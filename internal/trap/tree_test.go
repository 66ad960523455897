package trap

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// treeTests are the kinds that look at the parsed line: texts that are traps,
// and their healthy counter-cases, in which nothing at all is found.
var treeTests = []struct {
	key     string
	hits    []string
	healthy []string
}{
	{"rm-empty-variable",
		[]string{`rm -rf "$X/"`, `rm -rf $X/*`, `rm -rf "$X"/*`, `rm -rf ${X}/*`, `rm -rf "${X}/"*`, `rm -r -f -- "$X/"`, `rm -f $X/*`, `sudo rm -rf "$X/bin"`, `rm -rf "$X/usr/*"`,
			`X=; rm -rf "$X/"`, `X=$(cat dir); rm -rf "$X"/*`, `a=1; rm -rf "$X"/*`, `rm -rf "$1"/*`, `X="$Y"; rm -rf $X/*`, `\rm -rf $X/*`, `timeout -k 5 60 rm -rf "$X/"`, `env -u A B=c nice -n 5 rm -rf "$X/"`, `time rm -rf "$X/"`, `nohup rm -rf $X/* &`},
		[]string{`rm -rf "${X:?}/"`, `rm -rf "${X:?no X}"/*`, `X=build; rm -rf "$X/"`, `X="$HOME/x"; rm -rf "$X"/*`, `rm -rf "$X"`, `rm -rf "$X/build"`, `rm -rf "$X/usr/share/doc"`,
			`rm -rf "$HOME/.cache/x"`, `: "${X:?}"; rm -rf "$X"/*`, `[ -n "$X" ] && rm -rf "$X"/*`, `[[ -d $X ]] && rm -rf "$X"/*`, `set -u; rm -rf "$X"/*`, `set -o nounset; rm -rf $X/*`,
			`for X in a b; do rm -rf "$X"/*; done`, `echo 'rm -rf $X/*'`, `grep "rm -rf \$X/" f`, "cat <<'E'\nrm -rf $X/*\nE", `rm -rf build/ # rm -rf $X/*`, `rm -rf "${X:-build}"/*`,
			`X=${X:-build}; rm -rf "$X"/*`, `rm "$X/a"`, `rm -rf "/tmp/$X/"`, `local X=build; rm -rf "$X"/*`}},
	{"rm-space",
		[]string{`rm -rf ~ /x`, `rm -rf / tmp`, `rm -rf /  home/x/build`, `rm -r ~/ x`, `rm * .o`, `rm -f * .bak`, `rm -rf build/ *`, `sudo rm -rf / usr/lib/x`},
		[]string{`rm -rf ~/x`, `rm -rf /tmp/x`, `rm *.o`, `rm -rf build/*`, `rm -rf "~" x`, `rm -rf a b`, `echo rm -rf / tmp`, `git commit -m "rm -rf / tmp"`, `rm -rf build/ dist/`, `rm * a.txt`}},
	{"cd-before-rm",
		[]string{`cd build; rm -rf *`, "cd build\nrm -rf out", `cd "$D"; ls; rm -rf ./*`, `cd build; rm *`, `pushd build; rm -rf x`, `cd build; sudo rm -rf x`, `cd $(mktemp -d); rm -rf x`},
		[]string{`cd build && rm -rf *`, `cd build || exit; rm -rf *`, `set -e; cd build; rm -rf *`, "set -euo pipefail\ncd build\nrm -rf *", `cd build; rm -rf /tmp/x`, `cd build; rm a.txt`,
			`cd ..; rm -rf build`, `cd; rm -rf build`, `cd build; ls`, `(cd build); rm -rf x`, `cd build & rm -rf x`, `echo "cd build; rm -rf *"`, `cd build; cd ..; rm -rf x`}},
	{"read-write-same-file",
		[]string{`sort f > f`, `cat f | sed s/a/b/ > f`, `grep x f >f`, `cat f >> f`, `sort < f > f`, `cat f | tee f`, `sed s/a/b/ f | tee f`, `jq .a "$f" > $f`, `cat ./f > f`, `cat a b > a`, `uniq f >| f`,
			`awk '{print}' f > f`, `while read -r l; do echo "$l"; done < f > f`, `sed -e s/a/b/ f > f`, `tr a b < f | sort > f`, `head -n 3 f > f`, `myprog < f > f`},
		[]string{`sort f > g`, `sort -o f f`, `sort f | sponge f`, `sed -i s/a/b/ f`, `cat f > f.tmp && mv f.tmp f`, `grep f g > f`, `sort f; ls > f`, `echo f > f`, `cat f >> g`, `sed s/f/g/ x > f`,
			`cat f | tee -a f.log`, `sort f >> f`, `echo 'sort f > f'`, `cat /dev/null > /dev/null`, `cat < f`, `jq . a > b`}},
	{"redirect-order",
		[]string{`make 2>&1 > log`, `make 2>&1 >> log`, `make 2>&1 >/dev/null`, `{ make; } 2>&1 > log`, `make 2>&1 1> log`},
		[]string{`make > log 2>&1`, `make 2>&1 >/dev/null | grep x`, `make 2>&1`, `make &> log`, `make 2> err > log`, `echo "2>&1 > log"`}},
	{"test-redirect",
		[]string{`[ "$a" > 5 ]`, `[ 3 < 5 ]`, `test 1 > 2`, `if [ "$a" > "$b" ]; then ls; fi`},
		[]string{`[ "$a" -gt 5 ]`, `[[ $a > 5 ]]`, `[ "$a" \> 5 ]`, `[ -f x ] 2>/dev/null`, `test -f x`, `echo "[ a > b ]"`}},
	{"test-unquoted",
		[]string{`[ $x = y ]`, `test $x == y`, `[ -n $x ]`, `[ y != $x ]`, `if [ $1 = start ]; then ls; fi`, `[ ${x} = y ]`},
		[]string{`[ "$x" = y ]`, `[[ $x = y ]]`, `[ $? = 0 ]`, `x=5; [ $x = 5 ]`, `[ $# = 0 ]`, `[ -n "$x" ]`, `[ $n -gt 5 ]`, `echo '[ $x = y ]'`, `[ -z $x ]`, `[ $UID = 0 ]`}},
	{"sed-i-portable",
		[]string{`sed -i '' s/a/b/ f`, `sed -i "" -e s/a/b/ f`, `sed -ie s/a/b/ f`, `sed -iE 's/(a)/b/' f`, `sed -n -i '' p f`, `sudo sed -i '' s/a/b/ f`, `find . -type f -exec ls {} + && sed -i '' s/a/b/ f`},
		[]string{`sed -i s/a/b/ f`, `sed -i.bak s/a/b/ f`, `sed -i -e s/a/b/ f`, `sed -Ei s/a/b/ f`, `sed -i -E s/a/b/ f`, `sed -n p f`, `echo "sed -i '' x"`, `sed --in-place s/a/b/ f`, `sed -i~ s/a/b/ f`}},
	{"perl-i-suffix",
		[]string{`perl -pie 's/a/b/' f`, `perl -nie 's/a/b/' f`, `perl -pie s/a/b/ f`, `sudo perl -pie s/a/b/ f`},
		[]string{`perl -i -pe 's/a/b/' f`, `perl -pi -e 's/a/b/' f`, `perl -pi.bak -e s/a/b/ f`, `perl -e 'print 1'`, `perl -MFile::Find -e 1`, `echo perl -pie x`}},
	{"find-delete-first",
		[]string{`find . -delete -name x`, `find . -delete -type f`, `find -delete`, `find -L -delete`, `find build -delete -name '*.o'`, `sudo find /tmp -delete -mtime 5`},
		[]string{`find . -name x -delete`, `find build -delete`, `find -L build -delete`, `find . -type f -name '*.o' -delete`, `find -name x -delete`, `echo find -delete`, `find . -name -delete`, `find . -depth -name x -delete`}},
	{"find-or-precedence",
		[]string{`find . -name a -o -name b -delete`, `find . -name a -o -name b -exec rm {} +`, `find . -type f -name a -or -name b -print0`, `find . -name '*.c' -o -name '*.h' -print`},
		[]string{`find . \( -name a -o -name b \) -delete`, `find . -name a -o -name b`, `find . -name a -delete -o -name b -delete`, `find . -path ./x -prune -o -name y -print`,
			`find . \( -name a -o -name b \) -exec grep -o x {} +`, `find . -name a -exec grep -o x {} \; -delete`, `echo find . -name a -o -name b -delete`}},
	{"find-unquoted-glob",
		[]string{`find . -name *.go`, `find . -type f -iname *.TXT`, `find src -path */test/* -type f`, `cd x && find . -name *.go`},
		[]string{`find . -name '*.go'`, `find . -name "*.go"`, `find . -name \*.go`, `find . -name go.mod`, `find *.d -name x`, `echo "find . -name *.go"`}},
	{"xargs-whitespace",
		[]string{`find . -name x | xargs rm`, `ls | xargs rm -f`, `find . -name '*.o' | grep -v keep | xargs rm`, `git ls-files -o | xargs rm`, `ls *.bak | xargs -n1 sudo rm`, `ls | xargs -I{} mv {} {}.old`},
		[]string{`find . -name x -print0 | xargs -0 rm`, `find . | xargs -d '\n' rm`, `find . | tr '\n' '\0' | xargs -0 rm`, `ls | xargs echo`, `find . | xargs grep x`, `echo "find . | xargs rm"`,
			`git ls-files -z | xargs -0 rm`, `find . -name x -exec rm {} +`, `cat list | xargs rm`}},
	{"for-in-ls",
		[]string{`for f in $(ls); do echo "$f"; done`, "for f in `ls *.txt`; do echo; done", `for f in $(find . -name '*.c'); do echo; done`, `for d in a $(ls -d */); do echo; done`},
		[]string{`for f in *; do echo "$f"; done`, `for f in ./*.txt; do echo; done`, `for f in $(cat list); do echo; done`, `for f in "$(ls)"; do echo; done`, `echo 'for f in $(ls)'`, `for i in $(seq 3); do ls; done`}},
	{"brace-variable",
		[]string{`for i in {1..$n}; do echo; done`, `for i in {$a..5}; do echo; done`, `for i in {1..${n}}; do echo; done`},
		[]string{`for i in {1..5}; do echo; done`, `for ((i = 1; i <= n; i++)); do echo; done`, `for i in $(seq 1 $n); do echo; done`, `for i in {$a,$b}; do echo; done`, `echo 'for i in {1..$n}'`}},
	{"ssh-glob",
		[]string{`ssh host ls *.log`, `ssh host cat ~/x`, `ssh host echo $HOME`, `ssh host "echo $HOSTNAME"`, `ssh -p 22 me@host rm /tmp/*.log`, `ssh host kill $(pgrep x)`, `ssh -i ~/.ssh/id host ls ~/src`},
		[]string{`ssh host 'ls *.log'`, `ssh host "ls *.log"`, `ssh host 'echo $HOME'`, `ssh -i ~/.ssh/id host`, `ssh host systemctl restart $SERVICE`, `ssh host ls`, `ssh host "echo \$HOME"`, `echo "ssh host ls *"`,
			`ssh host ls > *.log`, `ssh host "echo '$(cat key.pub)'"`}},
	{"ssh-cd-local",
		[]string{`ssh host cd /srv && make`, `ssh -p 22 host cd /srv/x && ls`, `ssh me@host cd x && git pull && ls`},
		[]string{`ssh host 'cd /srv && make'`, `ssh host "cd /srv && make"`, `ssh host ls && make`, `ssh host && ls`, `echo ssh host cd x && ls`, `ssh cd && ls`}},
	{"ssh-eats-stdin",
		[]string{`while read -r h; do ssh "$h" uptime; done < hosts`, `cat hosts | while read h; do ssh $h uptime; done`, "while read h; do\n echo\n ssh $h 'ls'\ndone <<< \"$hosts\""},
		[]string{`while read -r h; do ssh -n "$h" uptime; done < hosts`, `while read -r h; do ssh "$h" uptime < /dev/null; done < hosts`, `for h in a b; do ssh "$h" uptime; done`,
			`while true; do ssh host uptime; done`, `while read -r h; do echo ssh "$h" x; done < hosts`}},
	{"git-clean-ignored",
		[]string{`git clean -fdx`, `git clean -f -X`, `git -C repo clean -xdf`, `git clean --force -x`, `git clean -ffdx && make`},
		[]string{`git clean -fd`, `git clean -ndx`, `git clean -fdx -n`, `git clean -fdx -e .env`, `git clean -xi -f`, `git commit -m "git clean -fdx"`, `git clean -fdx --exclude=.env`}},
	{"git-force-main",
		[]string{`git push --force origin main`, `git push -f origin master`, `git push origin +main`, `git push -f origin HEAD:main`, `git -C r push origin main --force`, `git push -uf origin x:refs/heads/main`},
		[]string{`git push origin main`, `git push --force-with-lease origin main`, `git push -f origin feature`, `git push origin +feature`, `git push -f`, `git commit -m "push --force origin main"`, `git push -f main feature`}},
	{"curl-pipe-shell",
		[]string{`curl -fsSL https://x.example/i | sh`, `wget -qO- https://x.example/i | bash`, `curl https://x.example/i | sudo -E bash -`, `curl https://x.example/i | bash -s -- --yes`, `bash <(curl -s https://x.example/i)`,
			`sh -c "$(curl -fsSL https://x.example/i)"`, `eval "$(curl https://x.example/i)"`, `source <(curl https://x.example/i)`, `. <(wget -qO- https://x.example/i)`, `curl https://x.example/i.gz | gunzip | sh`,
			`curl https://x.example/i | python3 -`, "bash -c \"`curl https://x.example/i`\""},
		[]string{`curl -fsSLo i.sh https://x.example/i && sh i.sh`, `curl https://x.example/i | jq .`, `curl https://x.example/i | python3 -m json.tool`, `curl https://x.example/i | bash check.sh`,
			`curl https://x.example/i | python3 -c 'import sys'`, `echo "curl x | sh"`, `git commit -m "curl x | sh"`, `ls | sh`, `curl x | perl -ne print`, `curl x | grep sh`, `curl x | sh -c 'cat'`}},
	{"sudo-redirect",
		[]string{`sudo echo x > /etc/f`, `sudo cat a >> /etc/hosts`, `sudo -u root echo 1 > /proc/sys/x`, `doas echo x > /usr/local/f`, `sudo printf x >| /etc/f`},
		[]string{`echo x | sudo tee /etc/f`, `sudo sh -c 'echo x > /etc/f'`, `sudo cat /etc/shadow > copy`, `sudo ls > /tmp/x`, `sudo ls > /dev/null`, `sudo ls > /var/tmp/x`, `echo "sudo echo x > /etc/f"`}},
	{"sudo-cd",
		[]string{`sudo cd /root`, `sudo -u www cd /srv`, `doas cd x`},
		[]string{`cd /root`, `sudo sh -c 'cd /root && ls'`, `echo sudo cd`, `sudo ls cd`}},
	{"sudo-npm",
		[]string{`sudo npm install -g x`, `sudo npm i`, `sudo -H yarn add x`, `sudo pnpm install`},
		[]string{`npm install -g x`, `sudo npm --version`, `echo sudo npm install`, `sudo apt-get install npm`}},
	{"kill-9-pattern",
		[]string{`pkill -9 node`, `killall -9 node`, `kill -9 $(pgrep node)`, "kill -9 `pidof node`", `kill -KILL "$(lsof -ti:80)"`, `pgrep node | xargs kill -9`, `pkill -KILL x`, `killall -s KILL x`, `pkill --signal SIGKILL x`,
			`sudo kill -s 9 $(pgrep x)`, `ps ax | awk '{print $1}' | xargs kill -9`},
		[]string{`pkill node`, `killall node`, `kill -9 123`, `kill $(pgrep node)`, `kill -9 $!`, `pkill -TERM x`, `pgrep x | xargs kill`, `echo pkill -9`, `kill -9 $(cat pid)`}},
	{"chmod-777",
		[]string{`chmod -R 777 x`, `chmod -R a+rwx .`, `chmod 0777 -R x`, `sudo chmod --recursive 777 /srv`, `chmod -R ugo+rwx x`},
		[]string{`chmod 777 x`, `chmod -R 755 x`, `chmod -R u=rwX,go=rX x`, `chmod +x x`, `echo chmod -R 777 x`}},
	{"chmod-recursive-files",
		[]string{`chmod -R 644 x`, `chmod -R 600 ~/.ssh`, `sudo chmod -R 0640 /srv`, `chmod --recursive 666 x`},
		[]string{`chmod -R 755 x`, `chmod 644 x`, `chmod -R u=rwX,go=rX x`, `chmod -R 700 x`, `echo chmod -R 644 x`}},
	{"dotdot-glob",
		[]string{`chown -R me .*`, `chmod -R go-w /home/me/.*`, `cp -r .* /backup`, `cp -a ~/.* x`, `sudo chgrp -R www .*`},
		[]string{`chown -R me .`, `chown me .*`, `chown -R me .[!.]*`, `cp -r . /backup`, `ls .*`, `echo chown -R me .*`, `cp -r x/* y`, `chown -R me '.*'`}},
	{"heredoc-expands",
		[]string{"cat > run.sh <<EOF\n#!/bin/sh\necho $1\nEOF", "cat <<EOF > run\n#!/bin/sh\necho `date`\nEOF", "tee run.sh <<EOF\nx=$(date)\nEOF", "sudo tee /etc/nginx/x.conf <<EOF\nset $uri;\nEOF",
			"cat >> ~/.bashrc <<-EOF\nPATH=$PATH:x\nEOF", "cat > Dockerfile <<EOF\nRUN echo ${x}\nEOF"},
		[]string{"cat > run.sh <<'EOF'\necho $1\nEOF", "cat > run.sh <<\\EOF\necho $1\nEOF", "cat > run.sh <<EOF\necho \\$1\nEOF", "x=1; cat > run.sh <<EOF\necho $x\nEOF", "cat <<EOF\n$1\nEOF", "cat > a.yml <<EOF\nport: $PORT\nEOF",
			"cat > notes.txt <<EOF\n$(date)\nEOF", "psql <<EOF\n$sql\nEOF", "cat > run.sh <<EOF\necho x\nEOF"}},
	{"python-pipe-encoding",
		[]string{`powershell -c "python x.py | findstr a"`, `cmd /c python x.py | grep a`, `cmd.exe /c "python x.py > out.txt"`, `pwsh -Command "python.exe x.py | Out-File y"`},
		[]string{`powershell -c "python -X utf8 x.py | findstr a"`, `powershell -c "python x.py"`, `python x.py | grep a`, `powershell -c "dir | findstr python"`, `PYTHONUTF8=1 cmd /c python x.py`, `echo "powershell python x | y"`}},
	{"pipe-exit-code",
		[]string{`make | tee log && ls`, `go test ./... 2>&1 | tail -20 && git commit -m x`, `npm test | tee log || exit 1`, `ls && make | tee log && ls`, `./build.sh | head && ls`,
			`go test ./... | tail -5; echo $?`, "make | cat\ncode=x\nif make | tee log; then ls; fi", `npm test | head; [ $? = 0 ] && ls`, `make | tee log; rc=$?`, `make | tee log; if [ $? -eq 0 ]; then ls; fi`, "make | tail\necho \"exit: $?\""},
		[]string{`set -o pipefail; make | tee log && ls`, `set -euo pipefail; make | tee log && ls`, `make | tee log`, `make > log && ls`, `ls | head && ls`, `make | grep x && ls`, `make | tee log || true`, `go test ./... | tail -5; echo done`, `ls | tail -5; echo $?`, `make | tee log; make; echo $?`, `if make | grep x; then ls; fi`,
			`make | tee log && [ "${PIPESTATUS[0]}" = 0 ]`, `echo "make | tee log && ls"`}},
	{"declare-hides-exit",
		[]string{`export X=$(false) || exit`, `f() { local x=$(cmd) || return; }`, `readonly X="$(cmd)" && ls`, `set -e; export X=$(cmd)`, "set -eu\nf() { local x=`cmd`; }"},
		[]string{`X=$(cmd) || exit`, `export X=1 || exit`, `export X=$(cmd)`, `set -e; X=$(cmd); export X`, `f() { local x; x=$(cmd) || return; }`, `echo 'export X=$(cmd) || exit'`}},
	{"pipe-loop-variable",
		[]string{`n=0; cat f | while read -r l; do n=$((n+1)); done; echo $n`, "cat f | while read -r l; do ((n++)); done\necho \"$n\"", `ls | while read -r l; do last=$l; done; echo "last: $last"`},
		[]string{`n=0; while read -r l; do n=$((n+1)); done < f; echo $n`, `cat f | { while read -r l; do n=1; done; echo $n; }`, `cat f | while read -r l; do n=1; echo $n; done`, `cat f | while read -r l; do n=1; done; n=2; echo $n`,
			`cat f | while read -r l; do echo; done; echo $n`, `echo 'cat f | while read l; do n=1; done; echo $n'`}},
	{"prefix-assign",
		[]string{`X=1 echo $X`, `A=1 B=2 curl "x/$B"`, `FOO=bar sh run.sh ${FOO}`},
		[]string{`X=1; echo $X`, `X=1 sh -c 'echo $X'`, `X=1 echo x`, `PATH=$PATH:x ls`, `X=0; X=1 echo $X`, `echo 'X=1 echo $X'`}},
	{"assign-spelled",
		[]string{`x = 5`, `$x=5`, `name = "a b"; ls`, `${x}=5`},
		[]string{`x=5`, `[ x = 5 ]`, `test x = 5`, `expr x = 5`, `echo x = 5`, `let x=5`, `$x a=5`}},
	{"sh-c-words",
		[]string{`bash -c echo hi`, `sh -c cd /x`, `bash -lc make install`, `su bob -c ls -la`, `docker exec c sh -c ls /srv`, `ls | xargs -0 sh -c echo x`},
		[]string{`bash -c 'echo hi'`, `bash -c 'echo "$1"' _ a`, `sh -c ls`, `sh -c ./run sh`, `bash x.sh -c a b`, `echo bash -c echo hi`, `find . -exec sh -c 'x "$1"' sh {} \;`, `su bob -c 'ls -la'`, `sh -c "$cmd" a b`}},
	{"glob-target",
		[]string{`mv *.jpeg *.jpg`, `cp *.txt *.bak`, `mv -n src/*.a dst/*.b`, `sudo mv *.c *.cc`},
		[]string{`mv *.jpeg dir/`, `cp *.txt bak`, `mv a b`, `cp -t dir *.a *.b`, `cp *.a *.b dir`, `echo mv *.a *.b`, `mv '*.a' '*.b'`}},
	{"tar-f-last",
		[]string{`tar -cfz out.tgz dir`, `tar -xfz in.tgz`, `tar -cfJ out.txz dir`, `sudo tar -xfv in.tar`},
		[]string{`tar -czf out.tgz dir`, `tar cfz out.tgz dir`, `tar -xf in.tgz`, `tar -cf - dir`, `echo tar -cfz x`, `tar --create --file x`}},
	{"ln-relative",
		[]string{`ln -s config/x.conf /etc/x.conf`, `ln -sf ./run ~/bin/run`, `ln -s src/a lib/a`, `sudo ln -sfn build/out "$HOME/out"`},
		[]string{`ln -s /srv/x.conf /etc/x.conf`, `ln -s ../src/a lib/a`, `ln -sr src/a lib/a`, `ln -s python3 /usr/bin/python`, `ln -s src/a a`, `ln src/a lib/a`, `ln -s "$PWD/a" lib/a`, `echo ln -s a/b c/d`, `ln -s a/b`}},
	{"crontab-r",
		[]string{`crontab -r`, `sudo crontab -r -u www`, `ls && crontab -r`},
		[]string{`crontab -l`, `crontab -e`, `crontab -ri`, `crontab -i -r`, `echo crontab -r`}},
	{"crontab-replace",
		[]string{`echo '0 0 * * * x' | crontab -`, `printf '0 0 * * * x\n' | sudo crontab -`, `echo x | crontab -u www -`},
		[]string{`(crontab -l; echo x) | crontab -`, `crontab file`, `{ crontab -l; echo x; } | crontab -`, `echo "x | crontab -"`, `crontab -l | sed s/a/b/ | crontab -`}},
	{"docker-volumes",
		[]string{`docker system prune -af --volumes`, `docker compose down -v`, `docker compose -f x.yml down --volumes`, `sudo docker system prune --volumes`},
		[]string{`docker system prune -af`, `docker compose down`, `docker volume ls`, `docker run -v a:/b x`, `docker compose run -v a:/b x`, `echo docker compose down -v`}},
}

func parse(t *testing.T, text string) *syntax.File {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return file
}

// around puts a text where it can stand.
func around(text string) []string {
	texts := []string{
		text,
		"true\n" + text + "\ntrue",
		"true && {\n" + text + "\n}",
		"(\n" + text + "\n)",
		"for i in 1 2; do\n" + text + "\ndone",
		"g() {\n" + text + "\n}\ng",
		"if true; then :; else\n" + text + "\nfi",
		"case x in y) ;; *)\n" + text + "\n;; esac",
		"echo \"$(\n" + text + "\n)\"",
	}
	if !strings.Contains(text, "'") {
		texts = append(texts, "bash -c '"+text+"'", "sudo sh -c '"+text+"'", "docker exec c bash -lc '"+text+"'")
	}
	return texts
}

func TestTreeKinds(t *testing.T) {
	covered := make(map[string]bool)
	for _, test := range treeTests {
		covered[test.key] = true
		if len(test.hits) < 3 || len(test.healthy) < 3 {
			t.Errorf("%s has %d hits and %d healthy cases, want at least three of each", test.key, len(test.hits), len(test.healthy))
		}
		for _, hit := range test.hits {
			for _, text := range around(hit) {
				if test.key == keyRedirectOrder && strings.Contains(text, "$(") {
					continue // there the errors are what is asked for
				}
				if got := treeKeys(t, text); len(got) != 1 || got[0] != test.key {
					t.Errorf("%q: %q, want %q", text, got, test.key)
				}
			}
		}
		for _, healthy := range test.healthy {
			for _, text := range around(healthy) {
				if got := treeKeys(t, text); len(got) != 0 {
					t.Errorf("%q (healthy for %s): %q", text, test.key, got)
				}
			}
		}
	}
	for _, key := range Keys()[4:] {
		if !covered[key] {
			t.Errorf("%s has no cases", key)
		}
	}
}

// treeKeys are the keys found in the tree only: those of text.go have cases of
// their own.
func treeKeys(t *testing.T, text string) []string {
	t.Helper()
	var keys []string
	for _, hint := range Hints(text, parse(t, text)) {
		switch hint.Key {
		case keyPythonIsolated, keyPkillFull, keyPython3, keyBash:
		default:
			keys = append(keys, hint.Key)
		}
	}
	return keys
}
