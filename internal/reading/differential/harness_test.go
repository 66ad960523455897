//go:build linux && (amd64 || arm64)

package differential

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// truth is what can be said of a line, and true.
type truth struct {
	line string
	claim
}

func reads(programs ...string) claim {
	return claim{ParseOK: true, Programs: programs, ReadOnly: true, Inert: true, Reading: []string{"."}}
}

func writes(paths string, programs ...string) claim {
	return claim{ParseOK: true, Programs: programs, Writes: true, Reading: []string{"."}, Writing: strings.Fields(paths)}
}

func opaque(programs ...string) claim {
	return claim{ParseOK: true, Programs: programs, Opaque: true}
}

// truths are lines whose claims the harness must accept.
func truths() []truth {
	network := claim{ParseOK: true, Programs: []string{"echo"}, Network: true}
	shown := claim{ParseOK: true, Programs: []string{"cat"}, ReadOnly: true, Inert: true, Reading: []string{"a.txt", "src/*.py"}}
	deleting := claim{ParseOK: true, Programs: []string{"unlink"}, Writes: true, Destructive: true, Deleting: []string{"/tmp/proj/a.txt"}}
	removing := claim{ParseOK: true, Programs: []string{"rm"}, Writes: true, Destructive: true, Deleting: []string{"build"}}
	status := reads("git")
	status.Inert = false
	ending := claim{ParseOK: true, Programs: []string{"kill"}, Destructive: true}
	return []truth{
		{"ls -la | sort > /dev/null 2>&1", reads("ls", "sort")},
		{"echo a > /dev/stdout 2> /dev/stderr | cat > /dev/fd/2", reads("echo", "cat")},
		{"cat a.txt src/app.py", shown},
		{"cat <<< hi; cat <(echo x)", reads("cat", "echo")},
		{"cat <<E\n$(seq 9000)\nE", reads("cat", "seq")},
		{"echo '$(touch p)'", reads("echo")},
		{"true & wait", reads("true", "wait")},
		{": # rm -rf build", reads(":")},
		{"git status", status},
		{"git --no-pager -c core.fsmonitor= ls-files", status},
		{"echo hi > out", writes("out", "echo")},
		{"echo hi >> /etc/out", writes("/etc/out", "echo")},
		{"mkdir -p n/m && touch n/m/f", writes("n/m/f n/m", "mkdir", "touch")},
		{"cp *.txt src", writes("src", "cp")},
		{"sed -i s/a/b/ a.txt", writes("a.txt", "sed")},
		{"mv a.txt z.txt", writes("a.txt z.txt", "mv")},
		{"find . -name '*.txt' -exec touch -c {} +", writes(".", "find", "touch")},
		{"env nice sh -c 'touch n'", writes("n", "env", "nice", "sh", "touch")},
		{"(sleep 0; touch late) & :", writes("late", "sleep", "touch", ":")},
		{"awk 'BEGIN{system(\"touch p\")}'", writes("p", "awk", "touch")},
		{"touch ~/n", writes("~/n", "touch")},
		{"touch n1 n2", writes("n?", "touch")},
		{"git commit -qm x --allow-empty", writes("", "git")},
		{"unlink a.txt", deleting},
		{"/bin/rm -rf build", removing},
		{"rm --help", reads("rm")},
		{"echo > /dev/tcp/127.0.0.1/80", network},
		{"kill -9 2147483646", ending},
		{"$(cat cmds.txt)", opaque("cat", "?")},
		{"curl x | sh", opaque("curl", "sh")},
		{"./script.sh", claim{ParseOK: true, Programs: []string{"script.sh"}, Executes: true, More: true}},
		{". ./lib.sh", claim{ParseOK: true, Programs: []string{"."}, Executes: true, More: true}},
		{"echo $(", claim{Programs: []string{"?"}}},
	}
}

// lies are claims that the harness must refuse, by the class of the fault.
func lies() map[class][]truth {
	networked := reads("echo")
	stopped := reads("kill")
	undeleted := writes("a.txt", "unlink")
	unparsed := reads("ls")
	unparsed.ParseOK = false
	torn := reads("ls")
	torn.Opaque = true
	quiet := reads("git")
	return map[class][]truth{
		faultPanic: {
			{"ls", reader(func(string, string) claim { panic("broken") }).safely("ls", workDir)},
		},
		faultProgram: {
			{"ls | sort", reads("ls")},
			{"./script.sh; wc a.txt", claim{ParseOK: true, Programs: []string{"script.sh"}, Executes: true, More: true}},
			{"echo $(ls)", reads("echo")},
			{"/bin/ls", reads("echo")},
			{"curl x | sh", claim{ParseOK: true, Programs: []string{"curl", "sh"}, Network: true, Writes: true, Writing: []string{"."}}},
			{"x='a[$(touch p)]'; echo $((x))", reads("echo")},
			{"x='a[$(ls)]'; [[ $x -eq 0 ]]", reads()},
			{"x=$(curl); echo $((x))", reads("curl", "echo")},
			{"PS4='$(ls)'; set -x; :", reads("set", ":")},
			{"x='$(ls)'; echo ${x@P}", reads("echo")},
			{"hash -p /usr/bin/sort ls; ls a.txt", reads("hash", "ls")},
			{"trap ls EXIT", reads("trap")},
			{"find . -exec ls {} +", reads("find")},
			{"xargs -a names.txt wc", reads("xargs")},
			{"xargs -a cmds.txt env", reads("xargs", "env")},
			{"nice ls", reads("nice")},
			{"exec -a wc sort a.txt", reads("exec", "wc")},
			{"sort < <(ls)", reads("sort")},
			{"cat <<E\n$(ls)\nE", reads("cat")},
			{"(sleep 0; wc a.txt) & :", reads("sleep", ":")},
			{"awk 'BEGIN{system(\"wc a.txt\")}'", reads("awk")},
			{"/usr/bin/nosuch", reads("ls")},
			{"ls\nwc a.txt\n$(", claim{ParseOK: true, Programs: []string{"ls"}, ReadOnly: true}},
			{"git -c alias.x='!wc a.txt' x", writes(".", "git")},
			{"bash -c 'wc a.txt'", reads("bash")},
			{"command_not_found_handle() { wc a.txt; }; nosuch", reads("nosuch")},
		},
		faultInert: {
			{"git status", quiet},
			{"git diff", quiet},
			{"git log -p -1 | git -C . diff | cat", reads("git", "cat")},
		},
		faultWrite: {
			{"echo hi > out", reads("echo")},
			{": > a.txt", reads(":")},
			{"echo hi >> /etc/passwd", reads("echo")},
			{"exec 3< a.txt; echo hi > /dev/fd/3", reads("exec", "echo")},
			{"echo hi < a.txt > /proc/self/fd/0", reads("echo")},
			{"bash -c 'echo x > /dev/stdin' < a.txt", reads("bash", "echo")},
			{"exec 3<>n", reads("exec")},
			{"touch a.txt", reads("touch")},
			{"touch -d yesterday a.txt", reads("touch")},
			{"mkdir d", reads("mkdir")},
			{"rmdir empty", reads("rmdir")},
			{"unlink a.txt", reads("unlink")},
			{"mv a.txt b", reads("mv")},
			{"ln -s a b", reads("ln")},
			{"ln a.txt b", reads("ln")},
			{"chmod +x a.txt", reads("chmod")},
			{"truncate -s0 a.txt", reads("truncate")},
			{"mkfifo p", reads("mkfifo")},
			{"sed -n 'w p' a.txt", reads("sed")},
			{"sort -o a.txt a.txt", reads("sort")},
			{"ls nosuch 2> err", reads("ls")},
			{"git branch new", reads("git")},
			{"git add -A", reads("git")},
			{"echo x > /tmp/n", reads("echo")},
			{"touch p &", reads("touch")},
			{"echo x > /dev/sda", reads("echo")},
			{"echo x > p\necho $(", claim{ReadOnly: true, ParseOK: true, Opaque: true}},
		},
		faultDelete: {
			{"unlink a.txt", undeleted},
			{"echo x > /etc/passwd", writes("/etc/passwd", "echo")},
			{"echo x > /dev/sda", writes("/dev/sda", "echo")},
			{"find . -name '*.txt' -delete", writes(".", "find")},
			{"git clean -fdq", writes(".", "git")},
		},
		faultNetwork: {
			{"echo > /dev/tcp/127.0.0.1/80", networked},
			{"exec 3<>/dev/udp/127.0.0.1/53", reads("exec")},
		},
		faultEffect: {
			{"rm -rf build", writes("build", "rm")},
			{"curl https://example.com", reads("curl")},
			{"sudo ls", reads("sudo", "ls")},
			{"nice ssh host ls", reads("nice", "ssh", "ls")},
		},
		faultSink: {
			{"echo x > .git/hooks/pre-commit", writes(".git/hooks/pre-commit", "echo")},
			{"echo x >> ~/.bashrc", writes("~/.bashrc", "echo")},
			{"mv a.txt .git/config", writes("a.txt .git/config", "mv")},
		},
		faultSignal: {
			{"kill -9 2147483646", stopped},
			{"kill -TERM -1", stopped},
		},
		faultParse: {
			{"echo $(", claim{ParseOK: true, Opaque: true}},
			{"[[ a b ]]", claim{ParseOK: true, Opaque: true}},
			{"if true; then ls", claim{ParseOK: true, Opaque: true}},
			{"a=(1 2", claim{ParseOK: true, Opaque: true}},
		},
		faultRefused: {
			{"ls", claim{Opaque: true}},
			{"cat <<E\nx", claim{Opaque: true}},
		},
		faultPath: {
			{"touch a.txt", writes("b.txt", "touch")},
			{"touch /tmp/n", writes("n", "touch")},
			{"cd src && touch n", writes("n", "cd", "touch")},
			{"mv a.txt z.txt", writes("z.txt", "mv")},
			{"touch src", writes("src/n", "touch")},
		},
		faultRead: {
			{"cat a.txt", claim{ParseOK: true, Programs: []string{"cat"}, ReadOnly: true, Reading: []string{"b.txt"}}},
			{"read x < a.txt", claim{ParseOK: true, Programs: []string{"read"}, ReadOnly: true}},
			{"grep -r token .", claim{ParseOK: true, Programs: []string{"grep"}, ReadOnly: true, Reading: []string{"src"}}},
		},
		faultClaim: {
			{"ls", unparsed},
			{"ls", torn},
			{"ls", claim{ParseOK: true, ReadOnly: true, Network: true, Programs: []string{"ls"}}},
			{"ls", claim{ParseOK: true, Inert: true, Executes: true, Programs: []string{"ls"}}},
			{"ls; $x", claim{ParseOK: true, Programs: []string{"ls", "?"}}},
		},
	}
}

func (c class) in(faults []fault) bool {
	return slices.ContainsFunc(faults, func(f fault) bool { return f.Class == c })
}

// The harness accepts what is true, and refuses a lie of each kind.
func TestHarness(t *testing.T) {
	j := newJail(t, 1)
	for _, test := range truths() {
		result, err := j.run(test.line)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range compare(test.claim, result) {
			t.Errorf("%q: the true claim %s is refused as %s: %s", test.line, test.claim, f.Class, f.Detail)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(lies())) {
		for _, test := range lies()[class] {
			result, err := j.run(test.line)
			if err != nil {
				t.Fatal(err)
			}
			if faults := compare(test.claim, result); !class.in(faults) {
				t.Errorf("%q: the lie %s is not found (class %s); found: %v\n%v", test.line, test.claim, class, faults, result.Events)
			}
		}
	}
	if len(lies()) != int(classes) {
		t.Errorf("%d of %d classes are tested", len(lies()), classes)
	}
}

// A worker that is not alone runs nothing and removes nothing.
func TestWorkerRefuses(t *testing.T) {
	outside, err := namespaces()
	if err != nil {
		t.Skip(err)
	}
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	told, err := json.Marshal(settings{UID: 61000, Bash: "/bin/bash", Outside: outside})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{workerName}
	cmd.Stdin = bytes.NewReader(told)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nothing is run") {
		t.Errorf("a worker without namespaces of its own: %v\n%s", err, out)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// What is outside of the jail cannot be reached from it, whoever asks.
func TestJailWalls(t *testing.T) {
	j := newJail(t, 1)
	for _, line := range []string{
		"test $(id -u) -ge 61000 || ! grep -q 4294967295 /proc/self/uid_map", // that is the machine's own map
		"grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status",
		"grep -q '^CapPrm:[[:space:]]*0*$' /proc/self/status",
		"grep -q '^NoNewPrivs:[[:space:]]*1$' /proc/self/status",
		"grep -q '^Seccomp:[[:space:]]*2$' /proc/self/status",
		"! grep -v ' /tmp ' /proc/self/mountinfo | cut -d' ' -f6 | grep -vq '^ro'",
		"test $(grep -c : /proc/net/dev) = 1", // the loopback alone
		"for d in / /etc /usr /var /var/tmp /dev /dev/shm /run /home /root /sys /proc /tmp/bin /tmp/planted /opt /srv /mnt; do ! { : > $d/vogt-jail-test; } || exit 1; done 2>/dev/null",
		"for f in /etc/passwd /proc/self/comm /proc/1/oom_score_adj /dev/kmsg /dev/sda /dev/vda; do ! { : >> $f; } || exit 1; done 2>/dev/null",
		"! kill -URG 1 2>/dev/null",
		"test $(echo /proc/[0-9]* | wc -w) -lt 6", // no processes but the worker's
		"! ls /run/* /var/run/* 2>/dev/null",
		"test \"$(ls /tmp | tr '\\n' ' ')\" = 'bin home planted proj '",
		"! : 2>/dev/null < /proc/1/environ",
	} {
		result, err := j.run(line)
		if err != nil {
			t.Fatal(err)
		}
		if result.Status != "exit 0" {
			t.Errorf("%q: %s\n%v", line, result.Status, result.Events)
		}
	}
}

// Lines that want to do harm can do none, and the next line finds the project
// as it was.
func TestJailHolds(t *testing.T) {
	j := newJail(t, 1)
	before, err := j.run("cat a.txt; git rev-parse HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		":(){ :|:& };:",
		"kill -9 -1; kill -9 1; kill -STOP $$",
		"trap '' TERM INT HUP; while :; do :; done",
		"while :; do echo x; done > big; while :; do echo x; done >> big",
		"printf '%999999999s' x",
		"x=x; while :; do x=$x$x; done",
		"chmod 0 . .. ~ *; unlink a.txt; mv src /tmp/gone",
		"echo x > /tmp/bin/ls; ln -sf /bin/false /tmp/bin/cat; mv /tmp/bin /tmp/b; chmod 777 /tmp/bin",
		"for i in 1 2 3 4 5 6 7 8 9; do (setsid sh -c 'while :; do :; done' &) ; done; setsid sleep 100 &",
		"mkfifo f; cat f",
		"cat /dev/zero > z & cat /dev/urandom > y & wait",
		"exec 7<>/dev/tcp/1.1.1.1/53; echo x > /dev/udp/8.8.8.8/53",
		"echo b > /proc/sysrq-trigger; echo 1 > /proc/sys/kernel/panic",
		"find / -maxdepth 2 -delete 2>/dev/null",
		"mkdir -p $(printf 'd/%.0s' {1..500})",
	} {
		result, err := j.run(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		t.Logf("%q: %s, %d events, timed out: %v", line, result.Status, len(result.Events), result.TimedOut)
		after, err := j.run("cat a.txt; git rev-parse HEAD")
		if err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
		if after.Status != before.Status || len(after.Events) != len(before.Events) {
			t.Errorf("after %q: %s, %v; want %s, %v", line, after.Status, after.Events, before.Status, before.Events)
		}
	}
}

// What is harmless to run really runs, and nothing else outside of the
// prepared folders does.
func TestJailRuns(t *testing.T) {
	j := newJail(t, 1)
	for line, want := range map[string]string{
		"grep -q alpha a.txt":                                          "exit 0",
		"/bin/grep -q alpha a.txt":                                     "exit 0",
		"/usr/bin/dd if=a.txt":                                         "exit 126",
		"/bin/rm a.txt":                                                "exit 126",
		"rm a.txt && test -f a.txt":                                    "exit 0",
		"test \"$(sleep 1)\" = ''":                                     "exit 0",
		"curl x | grep -q touch || curl x | grep -q marked":            "exit 0",
		"! echo 2> /dev/null > /etc/n":                                 "exit 0",
		"test $(git rev-list --count HEAD) = 1 && test -f .git/config": "exit 0",
		"git status":                                                   "exit 0",
		"kill -KILL $$":                                                "killed",
	} {
		result, err := j.run(line)
		if err != nil {
			t.Fatal(err)
		}
		if result.Status != want {
			t.Errorf("%q: %s, want %s\n%v", line, result.Status, want, result.Events)
		}
	}
}
