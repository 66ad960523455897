//go:build unix

package catalog_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"mvdan.cc/sh/v3/shell"

	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// gitCalls are calls beside the entry's examples: what people and agents ask a
// repository, and what looks as harmless but is not.
var gitCalls = []string{
	"git -C . log -1", "git --no-pager log -2", "git log --stat -4", "git log -4 --name-status", "git log --oneline --graph --all --decorate",
	"git log --format=%G?%GK%GS%h -6", "git log --show-signature -6", "git log --alternate-refs -1", "git log -Smore", "git log -Gmore",
	"git log -p -9", "git log -U0 -9", "git log --binary -9", "git log -p --no-textconv -9", "git log --stat --submodule=diff -9",
	"git log --raw lost -1", "git log --stat lost -2", "git log -L1,1:f.txt", "git log '--format=%(trailers:key=X)%(describe)' -3",
	"git log -g", "git log --follow f.txt", "git log --check -9", "git log --dirstat -9", "git log --word-diff -9", "git log --color-words -9",
	"git log --summary -9", "git log --remerge-diff -3", "git log -c -3", "git log -m -3", "git log --patch-with-stat -9",
	"git log --ext-diff -p -9", "git log --textconv -p -9", "git log --no-walk --stat HEAD first",
	"git show -s v1", "git show --stat second", "git show second", "git show --no-textconv second", "git show HEAD:f.txt", "git show --name-only lost",
	"git diff --cached --stat", "git diff --cached --name-status", "git diff --cached", "git diff first second", "git diff --stat", "git diff --name-only",
	"git diff --no-index f.txt same.txt", "git status", "git status --porcelain=v2 -z", "git branch", "git branch -vv", "git branch -r --contains HEAD",
	"git branch --show-current", "git branch '--format=%(contents)%(upstream:track)'", "git tag", "git tag -n3", "git tag --contains HEAD", "git tag -v v1",
	"git for-each-ref", "git for-each-ref '--format=%(contents)%(trailers)%(describe)'", "git ls-files -s", "git ls-files -m", "git ls-files -d",
	"git ls-files -o --exclude-standard", "git ls-files --eol", "git ls-tree -l HEAD", "git cat-file -t HEAD", "git cat-file -p HEAD:f.txt",
	"git cat-file -e lost:lost.bin", "git cat-file -p lost:lost.bin", "git cat-file --textconv HEAD:f.txt", "git cat-file --filters HEAD:f.txt",
	"git cat-file --batch-check --batch-all-objects", "git rev-parse HEAD", "git rev-parse --abbrev-ref @{u}", "git rev-parse --is-inside-work-tree",
	"git rev-list --objects --all", "git rev-list --alternate-refs HEAD", "git rev-list --count HEAD", "git rev-list --stat HEAD", "git blame f.txt",
	"git blame second -- f.txt", "git annotate second f.txt", "git grep one", "git grep one HEAD", "git grep --cached one", "git grep --no-index one",
	"git grep --textconv one HEAD", "git shortlog -sne HEAD", "git describe --always", "git describe --dirty --always", "git describe --broken --always",
	"git name-rev HEAD", "git merge-base HEAD first", "git merge-base --is-ancestor first HEAD", "git config --list", "git config -l --show-origin",
	"git config --get user.name", "git config --get-regexp alias", "git config core.pager", "git stash list", "git stash list -p", "git stash show",
	"git stash show -p", "git reflog", "git reflog show HEAD", "git reflog exists HEAD", "git remote", "git remote -v", "git remote get-url origin",
	"git remote show -n origin", "git notes list", "git notes show", "git notes get-ref", "git worktree list", "git show-ref", "git show-ref --heads",
	"git symbolic-ref HEAD", "git count-objects -v", "git check-ignore -v new.txt", "git check-attr -a f.txt", "git check-mailmap '<a@b>'",
	"git check-ref-format --branch x", "git check-ref-format refs/heads/x", "git var GIT_EDITOR", "git var -l", "git fsck", "git fsck --connectivity-only",
	"git diff-tree -r --name-only second", "git diff-tree --stat first second", "git diff-tree -p first second", "git diff-index --cached HEAD",
	"git diff-index --cached --stat HEAD", "git diff-index HEAD", "git diff-files", "git diff-files -p", "git range-diff first..second first..HEAD",
	"git cherry -v first", "git show-branch", "git show-branch --reflog=2", "git whatchanged -3", "git submodule", "git bisect log", "git sparse-checkout list",
	"git format-patch --stdout -9", "git archive HEAD", "git archive --format=x HEAD", "git bundle list-heads none", "git interpret-trailers f.txt",
	"git fast-export --all", "git patch-id", "git replace -l", "git column --mode=plain", "git stripspace", "git hash-object f.txt", "git hash-object same.txt",
	"git multi-pack-index verify", "git commit-graph verify", "git rerere status", "git help log", "git log --help", "git status --help", "git help -a",
	"git version", "git --version", "git --html-path", "git ls-remote --get-url", "git get-tar-commit-id", "git fmt-merge-msg", "git pack-objects --stdout",
	"git verify-commit HEAD", "git merge-tree first HEAD", "git request-pull first .", "git prune -n", "git worktree prune -n", "git reflog expire -n --all",
	"git notes prune -n", "git unknown-to-git", "git -p log -1", "git --paginate branch -a",
}

// A call that the entry says the neutral words make inert starts nothing when
// they are put in, whatever the repository's configuration names, and one
// that it says is inert starts nothing as it stands. The repository names a
// program under every key that git would run something for.
func TestGitNeutralStartsNothing(t *testing.T) {
	repo := newHostileRepo(t)
	git := catalog.New().Entry("git")
	if git == nil {
		t.Fatal("there is no entry for git")
	}
	calls := slices.Clone(gitCalls)
	for _, x := range git.Examples() {
		if slices.Equal(x.Want, []string{"neutral"}) || slices.Equal(x.Want, []string{"inert"}) {
			calls = append(calls, x.Text)
		}
	}
	neutral, inert := 0, 0
	bare := map[string]bool{} // marks of neutral calls without the words
	for i, line := range calls {
		argv, err := shell.Fields(line, nil)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		words := make([]catalog.Word, len(argv))
		for k, w := range argv {
			words[k] = catalog.Word{Text: w}
		}
		use := git.Interpret(words)
		switch {
		case use.Neutral && use.Effects == detail.Unsettled:
			neutral++
			full := slices.Concat(argv[:1], git.Neutral, argv[1:])
			if marks := repo.run(t, full, git.Settle); len(marks) > 0 {
				t.Errorf("%s: is neutral, and with the neutral words it started %q", line, marks)
			}
			if i < len(gitCalls) { // those of the entry come and go
				for _, m := range repo.run(t, argv, nil) {
					bare[m] = true
				}
			}
		case use.Effects == 0:
			inert++
			if marks := repo.run(t, argv, nil); len(marks) > 0 {
				t.Errorf("%s: is inert, and it started %q", line, marks)
			}
		}
	}
	if neutral < 60 || inert < 4 {
		t.Errorf("%d neutral and %d inert calls: too few to say anything", neutral, inert)
	}
	// A git that does not know GIT_NO_LAZY_FETCH asks no remote either.
	others := slices.DeleteFunc(slices.Clone(git.Settle), func(v string) bool { return strings.HasPrefix(v, "GIT_NO_LAZY_FETCH=") })
	fetch := slices.Concat([]string{"git"}, git.Neutral, []string{"log", "--stat", "-1", "lost"})
	if marks := repo.run(t, fetch, others); len(others) == len(git.Settle) || len(marks) > 0 {
		t.Errorf("a missing object, without GIT_NO_LAZY_FETCH: started %q", marks)
	}
	// Without the words the same calls do start what the repository names.
	for _, want := range []string{"pager", "fsmonitor", "gpg.openpgp.program", "gpg.ssh.program", "gpg.x509.program", "transport"} {
		if !bare[want] {
			t.Errorf("without the neutral words nothing started %s: the test plants it wrongly", want)
		}
	}
}

// Calls that no word in front of the subcommand can make inert: the entry may
// not call them neutral.
func TestGitReadsThatStartPrograms(t *testing.T) {
	repo := newHostileRepo(t)
	git := catalog.New().Entry("git")
	if git == nil {
		t.Fatal("there is no entry for git")
	}
	for _, test := range []struct{ line, mark string }{
		{"git log -p -9", "textconv"},
		{"git log -Smore", "textconv"},
		{"git show second", "textconv"},
		{"git blame f.txt", "textconv"},
		{"git diff first second", "driver"},
		{"git diff --stat", "clean"},
		{"git status", "clean"},
		{"git ls-files -m", "clean"},
		{"git describe --dirty --always", "clean"},
		{"git hash-object f.txt", "clean"},
		{"git cat-file --filters HEAD:f.txt", "smudge"},
		{"git archive --format=x HEAD", "tar"},
		{"git interpret-trailers f.txt", "trailer"},
		{"git help log", "man"},
		{"git log --help", "man"},
	} {
		argv, err := shell.Fields(test.line, nil)
		if err != nil {
			t.Fatal(err)
		}
		words := make([]catalog.Word, len(argv))
		for i, w := range argv {
			words[i] = catalog.Word{Text: w}
		}
		if use := git.Interpret(words); use.Neutral && use.Effects == detail.Unsettled {
			t.Errorf("%s is neutral, and it starts the repository's %s", test.line, test.mark)
		}
		marks := repo.run(t, slices.Concat(argv[:1], git.Neutral, argv[1:]), git.Settle)
		if !slices.Contains(marks, test.mark) {
			t.Errorf("%s started %q, want %s among them: is the neutral list stronger than the entry says?", test.line, marks, test.mark)
		}
	}
}

// hostileRepo is a repository whose configuration, attributes and hooks name a
// program wherever git would start one. Each program appends a mark.
type hostileRepo struct {
	git, dir, log string
	env           []string
	runs          int64
}

func newHostileRepo(t *testing.T) *hostileRepo {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	base := t.TempDir()
	r := &hostileRepo{git: git, dir: filepath.Join(base, "repo"), log: filepath.Join(base, "marks")}
	r.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + base, "TERM=xterm", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.history(t)
	r.configure(t, base)
	if err := os.RemoveAll(r.log); err != nil {
		t.Fatal(err)
	}
	return r
}

// history makes commits: plain ones, ones with signatures of three kinds, and
// one with a blob that only a remote would have.
func (r *hostileRepo) history(t *testing.T) {
	t.Helper()
	r.must(t, "", "init", "-q", "-b", "main", ".")
	r.write(t, "f.txt", "one\n")
	r.write(t, "same.txt", "same\n")
	r.write(t, ".gitattributes", "*.txt diff=d filter=f merge=m\n")
	r.must(t, "", "add", ".")
	r.must(t, "", "commit", "-q", "-m", "first")
	r.must(t, "", "branch", "first")
	r.write(t, "f.txt", "one\nmore\n")
	r.must(t, "", "commit", "-q", "-a", "-m", "second")
	r.must(t, "", "branch", "second")
	tree := r.must(t, "", "rev-parse", "HEAD^{tree}")
	for _, kind := range []string{"PGP SIGNATURE", "SSH SIGNATURE", "SIGNED MESSAGE"} {
		parent := r.must(t, "", "rev-parse", "HEAD")
		commit := r.must(t, "tree "+tree+"\nparent "+parent+"\nauthor a <a@b> 1700000000 +0000\ncommitter a <a@b> 1700000000 +0000\n"+
			"gpgsig -----BEGIN "+kind+"-----\n \n AAAA\n -----END "+kind+"-----\n\nsigned\n", "hash-object", "-w", "-t", "commit", "--stdin")
		r.must(t, "", "update-ref", "refs/heads/main", commit)
	}
	head := r.must(t, "", "rev-parse", "HEAD")
	tag := r.must(t, "object "+head+"\ntype commit\ntag v1\ntagger a <a@b> 1700000000 +0000\n\nx\n-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n",
		"hash-object", "-w", "-t", "tag", "--stdin")
	r.must(t, "", "update-ref", "refs/tags/v1", tag)
	r.write(t, "f.txt", "one\nmore\nstashed\n")
	r.must(t, "", "stash", "-q")
	blob := r.must(t, "lost", "hash-object", "-w", "--stdin")
	lostTree := r.must(t, "100644 blob "+blob+"\tlost.bin\n", "mktree")
	lost := r.must(t, "lost\n", "commit-tree", "-p", head, lostTree)
	r.must(t, "", "update-ref", "refs/heads/lost", lost)
	if err := os.Remove(filepath.Join(r.dir, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	r.write(t, "f.txt", "one\nmore\ndirty\n")
	r.write(t, "new.txt", "new\n")
}

func (r *hostileRepo) configure(t *testing.T, base string) {
	t.Helper()
	program := func(name, then string) string {
		path := filepath.Join(base, "run-"+name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+name+" >>'"+r.log+"'\n"+then+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var text strings.Builder
	set := func(section, key, value string) {
		text.WriteString("[" + section + "]\n\t" + key + " = \"" + strings.ReplaceAll(value, `"`, `\"`) + "\"\n")
	}
	pager := program("pager", "cat >/dev/null")
	set("core", "pager", pager)
	for _, command := range []string{"log", "show", "diff", "status", "branch", "tag", "grep", "config", "reflog", "stash", "blame", "ls-files",
		"rev-parse", "rev-list", "cat-file", "ls-tree", "for-each-ref", "var", "remote", "show-ref", "shortlog", "fsck", "check-ref-format"} {
		set("pager", command, pager)
	}
	set("core", "fsmonitor", program("fsmonitor", `printf '/\0'`))
	set("diff", "external", program("driver", ""))
	set(`diff "d"`, "command", program("driver", ""))
	set(`diff "d"`, "textconv", program("textconv", `cat "$1"`))
	set(`filter "f"`, "clean", program("clean", "cat"))
	set(`filter "f"`, "smudge", program("smudge", "cat"))
	set(`merge "m"`, "driver", program("merge", ""))
	set("log", "showSignature", "true")
	set("gpg", "program", program("gpg.openpgp.program", "exit 1"))
	for _, format := range []string{"openpgp", "x509", "ssh"} {
		set(`gpg "`+format+`"`, "program", program("gpg."+format+".program", "exit 1"))
	}
	set(`gpg "ssh"`, "allowedSignersFile", os.DevNull)
	transport := program("transport", "exit 1")
	set("core", "sshCommand", transport)
	set("core", "gitProxy", transport)
	set(`remote "origin"`, "url", "ext::"+transport+" x")
	set(`remote "origin"`, "uploadpack", transport)
	set(`remote "origin"`, "promisor", "true")
	set(`protocol "ext"`, "allow", "always")
	set("core", "repositoryFormatVersion", "1")
	set("extensions", "partialClone", "origin")
	set("uploadpack", "packObjectsHook", transport)
	set("credential", "helper", "!"+program("credential", ""))
	set("core", "askPass", program("askpass", ""))
	set("core", "alternateRefsCommand", program("alternates", ""))
	set("core", "editor", program("editor", ""))
	set("sequence", "editor", program("editor", ""))
	set(`trailer "x"`, "key", "X")
	set(`trailer "x"`, "command", program("trailer", ""))
	set(`tar "x"`, "command", program("tar", "cat"))
	set("man", "viewer", "x")
	set(`man "x"`, "cmd", program("man", ""))
	set("help", "browser", "x")
	set(`browser "x"`, "cmd", program("browser", ""))
	set("interactive", "diffFilter", program("difffilter", "cat"))
	set("diff", "submodule", "diff")
	set("diff", "autoRefreshIndex", "true")
	set("gc", "auto", "1")
	alias := program("alias", "")
	for _, command := range strings.Fields(r.must(t, "", "--list-cmds=main")) {
		if !strings.Contains(command, "--") {
			set("alias", command, "!"+alias)
		}
	}
	set("alias", "unknown-to-git", "!"+alias)
	hook := program("hook", "")
	for _, event := range []string{"post-index-change", "reference-transaction", "post-checkout", "pre-commit", "pre-auto-gc", "post-rewrite", "fsmonitor-watchman"} {
		if err := os.Symlink(hook, filepath.Join(r.dir, ".git", "hooks", event)); err != nil {
			t.Fatal(err)
		}
		set(`hook "h"`, "event", event)
	}
	set(`hook "h"`, "command", hook)
	path := filepath.Join(r.dir, ".git", "config")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(old, text.String()...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs argv on a terminal, since some programs are started only there,
// and returns the marks that it left, each once.
func (r *hostileRepo) run(t *testing.T, argv, env []string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// The same content with another time than the index remembers makes git
	// look into the file.
	r.runs++
	stale := time.Unix(1_000_000_000+r.runs, 0)
	if err := os.Chtimes(filepath.Join(r.dir, "same.txt"), stale, stale); err != nil {
		t.Fatal(err)
	}
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(io.Discard, master) // ends with an error when the last writer is gone
	}()
	cmd := exec.CommandContext(ctx, r.git, argv[1:]...)
	cmd.Dir, cmd.Env = r.dir, slices.Concat(r.env, env)
	cmd.Stdout, cmd.Stderr = terminal, terminal
	_ = cmd.Run() // many of the calls fail here by their nature
	terminal.Close()
	<-drained
	master.Close()
	if ctx.Err() != nil {
		t.Fatalf("%q did not end", argv)
	}
	marks, err := os.ReadFile(r.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(r.log); err != nil {
		t.Fatal(err)
	}
	out := strings.Fields(string(marks))
	slices.Sort(out)
	return slices.Compact(out)
}

// must runs git while the repository is still harmless.
func (r *hostileRepo) must(t *testing.T, stdin string, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), r.git, words...)
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(words, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

func (r *hostileRepo) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
