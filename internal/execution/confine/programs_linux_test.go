package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTools runs what people build and look things up with. Each prints "fine".
func TestTools(t *testing.T) {
	for _, tt := range []struct{ name, needs, text string }{
		{"java", "javac", `cat > A.java <<'END'
import java.net.*; import java.nio.file.*;
public class A { public static void main(String[] a) throws Exception {
	InetAddress.getLocalHost();
	try (var s = new ServerSocket(0); var c = new Socket("localhost", s.getLocalPort())) { Files.delete(Files.createTempFile("a", "b")); }
	if (new ProcessBuilder("true").start().waitFor() == 0) System.out.println("fine");
} }
END
javac -J-XX:TieredStopAtLevel=1 A.java && java -XX:TieredStopAtLevel=1 A`},
		{"a jar", "javac", `mkdir -p src/p; printf 'package p;\npublic class M { public static void main(String[] a) { System.out.println(L.word()); } }\n' > src/p/M.java
printf 'package p;\nclass L { static String word() { return "fine"; } }\n' > src/p/L.java
javac -J-XX:TieredStopAtLevel=1 -d out $(find src -name '*.java') && jar cfe m.jar p.M -C out . && java -XX:TieredStopAtLevel=1 -jar m.jar`},
		{"make in parallel", "make", `printf 'all: $(addprefix t,1 2 3 4 5 6 7 8)\nt%%:\n\techo $@ > $@\n' > Makefile; make -s -j8 && make -s -j && [ "$(cat t*)" = "$(printf 't%d\n' 1 2 3 4 5 6 7 8)" ] && echo fine`},
		// GOROOT as a person's shell has it; the cache is that of the box. The
		// package imports nothing, so that no library has to be built first.
		{"go", "go", `printf 'module x\ngo 1.24\n' > go.mod; printf 'package x\nfunc F() int { return 1 }\n' > x.go; go vet . && go build . && echo fine`},
		{"cargo", "cargo", `cargo init -q --name x --vcs none . && cargo build -q --offline && ./target/debug/x | grep -q Hello && echo fine`},
		{"npm", "npm", `mkdir -p dep; echo '{"name":"dep","version":"1.0.0","main":"m.js"}' > dep/package.json; echo 'module.exports = "fine"' > dep/m.js
echo '{"name":"x","version":"1.0.0","scripts":{"build":"node build.js"},"dependencies":{"dep":"file:dep"}}' > package.json
echo 'console.log(require("dep"))' > build.js
npm install --offline --no-audit --no-fund >/dev/null && npm ci --offline --no-audit --no-fund >/dev/null && npm run -s build`},
		{"pip and venv", "python3", `python3 - <<'END'
import zipfile
with zipfile.ZipFile("dep-1.0-py3-none-any.whl", "w") as z:
    z.writestr("dep.py", "word = 'fine'\n")
    z.writestr("dep-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n")
    z.writestr("dep-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("dep-1.0.dist-info/RECORD", "dep.py,,\ndep-1.0.dist-info/METADATA,,\ndep-1.0.dist-info/WHEEL,,\ndep-1.0.dist-info/RECORD,,\n")
END
python3 -m venv v && v/bin/python -m pip install -q --disable-pip-version-check --no-index --find-links . dep && v/bin/python -c 'import dep; print(dep.word)'`},
		{"pytest", "pytest-3", `cat > test_m.py <<'END'
import multiprocessing, concurrent.futures
def f(x): return x + 1
def test_pool():
    with multiprocessing.Pool(2) as p: assert p.map(f, [1]) == [2]
def test_spawn():
    with multiprocessing.get_context("spawn").Pool(1) as p: assert p.map(f, [1]) == [2]
def test_executor():
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as e: assert list(e.map(f, [1])) == [2]
END
pytest-3 -q >out 2>&1 || cat out; grep -q '3 passed' out && echo fine`},
		{"a server", "curl", `python3 -m http.server -b 127.0.0.1 8099 >/dev/null 2>&1 & until curl -sf -o /dev/null http://localhost:8099/; do :; done; echo fine`},
		{"sqlite", "sqlite3", `[ "$(sqlite3 x.db 'create table t(a); insert into t values(1); select * from t')" = 1 ] && echo fine`},
		{"perl", "perl", `perl -MFile::Temp -MSocket -e 'File::Temp->new; print "fine\n"'`},
		{"ruby", "ruby", `ruby -rtempfile -e 'Tempfile.new("x").close!; puts "fine"'`},
		{"vim", "vim", `vim -es -u NONE -c 'normal ihello' -c wq x; [ "$(cat x)" = hello ] && echo fine`},
		{"man", "man", `man -w ls >/dev/null 2>&1 || { echo fine; exit; }; man -P cat ls 2>/dev/null | grep -q 'list directory' && echo fine`},
		{"less", "less", `echo fine > x; less x`},
		{"keys", "ssh-keygen", `ssh-keygen -q -t ed25519 -N '' -f k; [ -s k.pub ] && echo fine`},
		{"gpg", "gpg", `gpg --version >/dev/null && [ -z "$(gpg --list-secret-keys 2>/dev/null)" ] && echo fine`},
		{"time zones", "bash", `[ "$(TZ=Asia/Tokyo date -d @0 +%Z)" = JST ] && echo fine`},
		{"letters", "locale", `locale -a | grep -q C.utf8; [ "$(printf 'ä' | wc -m)" = 1 ] && echo fine`},
		{"apt", "apt", `apt list --installed 2>/dev/null | grep -q ^bash/; dpkg -s bash >/dev/null; apt-get update >o 2>&1 && exit 1; grep -q -i -e denied -e 'read-only' o && echo fine`},
		{"docker", "docker", `docker ps >o 2>&1 && exit 1; grep -q -i -e permi -e connect o && echo fine`},
		{"archives of others", "tar", `echo x > a; tar cf a.tar --owner=5 --group=5 a; tar xf a.tar; chmod 700 a; cp -a a b; echo fine`},
		{"names", "bash", `getent hosts "$(hostname)" >/dev/null && getent hosts localhost >/dev/null && echo fine`},
		{"refusals say so", "unshare", `unshare -r true 2>u && exit 1; grep -q 'not permitted' u; (echo x > /usr/x) 2>u && exit 1; grep -q 'Read-only' u; echo fine`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !installed(tt.needs) {
				switch tt.needs {
				case "docker":
					t.Skipf("this machine has no %s for all users, and the tests do not bring it", tt.needs)
				}
				t.Skipf("%s is not installed for all users", tt.needs)
			}
			b := newBox(t)
			if got := b.must(tt.text); got != "fine\n" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// installed reports whether a program is where every home sees it: a test has a
// home of its own, in which no toolchain is.
func installed(program string) bool {
	return slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		_, err := exec.LookPath(filepath.Join(dir, program))
		return err == nil && (dir == "/bin" || strings.HasPrefix(dir, "/usr/"))
	})
}

// TestLeavesNothing runs many boxes (VOGT_BOXES, or 20), and finds what was there
// before: mounts, files, processes, descriptors.
func TestLeavesNothing(t *testing.T) {
	count := 20
	if n, err := strconv.Atoi(os.Getenv("VOGT_BOXES")); err == nil {
		count = n
	}
	b := newBox(t)
	b.outside("git init -q; echo x > a")
	t.Setenv("TMPDIR", t.TempDir())
	b.must("sleep 3600 & echo started")
	before := b.surroundings()
	for range count {
		b.must("sleep 3600 & mkdir -p /tmp/x ~/y; echo x > /tmp/x/z")
	}
	if after := b.surroundings(); !slices.Equal(before, after) {
		t.Errorf("before:\n%q\nafter:\n%q", before, after)
	}
}

// surroundings is what a box could leave behind.
func (b *box) surroundings() []string {
	b.t.Helper()
	state, err := stateDir()
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, name := range []string{b.workspace, b.home, os.Getenv("TMPDIR"), state, "/proc/self/fd"} {
		files, err := os.ReadDir(name)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, f := range files {
			out = append(out, filepath.Join(name, f.Name()))
		}
	}
	children, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range children {
		if data, err := os.ReadFile(name); err == nil && len(data) > 0 { // a thread can have ended
			out = append(out, "a child: "+string(data))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		b.t.Fatal(err)
	}
	return append(out, strings.Split(string(mounts), "\n")...)
}
