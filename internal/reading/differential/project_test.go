//go:build linux && (amd64 || arm64)

package differential

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// realPrograms run as themselves: they read, filter, or write only where they
// are told to, or run what they are given, which is followed. In the place of
// what is not installed is a stand-in.
var realPrograms = strings.Fields(`
	[ awk base64 basename bash cat chmod cmp comm cp cut date diff dirname du env expand expr factor false find
	flock fmt fold gawk git grep head id ionice join link ln ls mawk md5sum mkdir mkfifo mktemp mv nice nl nohup
	nproc numfmt od paste printenv printf pwd readlink realpath rev rmdir sed seq setsid sh sha256sum sort
	split stat stdbuf tac tail tee test timeout touch tr true truncate tsort uname unexpand uniq unlink
	wc which whoami xargs xxd echo install dash egrep fgrep chrt taskset perl python3 tar gzip xz bzip2 jq
	sqlite3 patch ed bc dc m4 column file less shuf cksum csplit tree zip unzip pr ptx fmt getopt
	sdiff diff3 cpio zstd b2sum sha1sum basenc look hexdump iconv ar make gunzip zcat yes mknod`)

// quietPrograms do nothing instead of what they are known for, which prints
// nothing.
var quietPrograms = strings.Fields(`
	rm sleep dd shred mkfs mkfs.ext4 chown chgrp kill pkill killall systemctl service shutdown reboot halt poweroff
	sudo doas su mount umount crontab at useradd userdel passwd`)

// knownPrograms print what a stranger could have written.
var knownPrograms = strings.Fields(`
	curl wget ssh scp rsync nc ncat netcat telnet ftp sftp dig host nslookup ping python python2 python3 perl ruby node
	php lua deno bun npm npx yarn pnpm pip pip3 cargo rustc go gcc cc make cmake docker podman kubectl helm terraform
	aws gcloud az gh jq yq tar zip unzip gzip gunzip zcat xz bzip2 vim vi nano emacs less more man ps top lsof strace
	gdb apt apt-get dnf yum brew snap dpkg journalctl ip ifconfig hostname hostnamectl tree file column rg fd ag bat
	watch script parallel busybox psql mysql sqlite3 redis-cli mongo pytest jest eslint prettier tsc black ruff mypy
	java javac mvn gradle openssl gpg base32 iconv strings uptime free df who w last groups getent tput stty clear
	zsh ksh fish ansible vagrant systemd-run unshare nsenter chroot entr direnv uv poetry`)

// A stand-in is a script whose interpreter only prints its arguments, so it
// starts nothing and needs no shell. Read as shell text, or as arithmetic, what
// it prints makes a file: whoever lets a program's output run is found out.
func standIn(name string) []byte {
	switch {
	case slices.Contains(quietPrograms, name):
		return []byte("#!/usr/bin/true\n")
	case len(name)%2 == 0:
		return []byte("#!/usr/bin/echo a[$(touch${IFS}marked)]\n")
	}
	return []byte("#!/usr/bin/echo touch marked\n")
}

// programs are the files of PATH: links to the real ones, and stand-ins for all
// other names.
func programs(names []string) (files []file, real []string) {
	done := map[string]bool{}
	for _, name := range realPrograms {
		target, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		target, err = filepath.EvalSymlinks(target)
		if err != nil || !strings.HasPrefix(target, "/usr/") && !strings.HasPrefix(target, "/bin/") || done[name] {
			continue // a program in somebody's home is not for everybody
		}
		done[name] = true
		real = append(real, name)
		files = append(files, file{filepath.Join(binDir, name), os.ModeSymlink, []byte(target)})
	}
	for _, name := range slices.Concat(quietPrograms, knownPrograms, names) {
		if !done[name] {
			done[name] = true
			files = append(files, file{filepath.Join(binDir, name), 0o755, standIn(name)})
		}
	}
	for _, name := range planted {
		files = append(files, file{filepath.Join(plantedDir, name), 0o755, []byte("#!/usr/bin/true\n")})
	}
	return files, real
}

// planted are the programs that the project's git settings name.
var planted = strings.Fields(`fsmonitor pager editor ssh askpass credential gpg clean smudge process textconv external
	merge difftool mergetool hook alias sequence difffilter trailer browser man gitproxy refs pack`)

// gitConfig is what an agent could have left in .git/config.
const gitConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	fsmonitor = /tmp/planted/fsmonitor
	pager = /tmp/planted/pager
	editor = /tmp/planted/editor
	sshCommand = /tmp/planted/ssh
	askPass = /tmp/planted/askpass
	hooksPath = /tmp/proj/.git/hooks
	gitProxy = /tmp/planted/gitproxy
	alternateRefsCommand = /tmp/planted/refs
[sequence]
	editor = /tmp/planted/sequence
[interactive]
	diffFilter = /tmp/planted/difffilter
[credential]
	helper = /tmp/planted/credential
[gpg]
	program = /tmp/planted/gpg
[log]
	showSignature = true
[diff]
	external = /tmp/planted/external
	tool = planted
[difftool "planted"]
	cmd = /tmp/planted/difftool
[merge]
	tool = planted
[mergetool "planted"]
	cmd = /tmp/planted/mergetool
[merge "planted"]
	driver = /tmp/planted/merge
[diff "planted"]
	textconv = /tmp/planted/textconv
[filter "planted"]
	clean = /tmp/planted/clean
	smudge = /tmp/planted/smudge
	required = false
[filter "process"]
	process = /tmp/planted/process
[pager]
	status = /tmp/planted/pager
	log = /tmp/planted/pager
[alias]
	st = !/tmp/planted/alias
	ci = commit
[trailer "seen"]
	command = /tmp/planted/trailer
[browser "planted"]
	cmd = /tmp/planted/browser
[man "planted"]
	cmd = /tmp/planted/man
[uploadpack]
	packObjectsHook = /tmp/planted/pack
[protocol "ext"]
	allow = always
[remote "origin"]
	url = ext::/tmp/planted/ssh %S
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
`

// plain are the project's files besides the repository.
var plain = []file{
	{"README.md", 0o644, []byte("# Project\n\nTODO: write\n")},
	{"main.go", 0o644, []byte("package main\n\nfunc main() { println(\"hello\") }\n")},
	{"a.txt", 0o644, []byte("alpha\nbeta\ngamma\n")},
	{"b.txt", 0o644, []byte("beta\ndelta\n")},
	{"data.csv", 0o644, []byte("id,name\n1,ann\n2,bob\n")},
	{"names.txt", 0o644, []byte("bob\nann\nbob\n")},
	{"file with space.txt", 0o644, []byte("spaced\n")},
	{"evil.txt", 0o644, []byte("a[$(touch marked)]\n; touch marked\n")}, // hostile data
	{"cmds.txt", 0o644, []byte("touch marked\n")},
	{".env", 0o600, []byte("TOKEN=secret\n")},
	{"Makefile", 0o644, []byte("all:\n\ttouch made\n")},
	{"package.json", 0o644, []byte("{\"scripts\":{\"test\":\"touch tested\"}}\n")},
	{"script.sh", 0o755, []byte("#!/bin/sh\ntouch scripted\n")},
	{"lib.sh", 0o644, []byte("touch sourced\n")},
	{"x.so", 0o644, []byte("no library\n")},
	{"evil", os.ModeDir | 0o755, nil},
	{"evil/ls", 0o755, []byte("#!/bin/sh\n/usr/bin/touch marked\n")},
	{"evil/cat", 0o755, []byte("#!/bin/sh\n/usr/bin/touch marked\n")},
	{"src", os.ModeDir | 0o755, nil},
	{"src/app.py", 0o644, []byte("import os\nprint(1)\n")},
	{"src/util.c", 0o644, []byte("int main(void) { return 0; }\n")},
	{"build", os.ModeDir | 0o755, nil},
	{"build/out.o", 0o644, []byte("object\n")},
	{"logs", os.ModeDir | 0o755, nil},
	{"logs/app.log", 0o644, []byte("INFO start\nERROR stop\n")},
	{"empty", os.ModeDir | 0o755, nil},
	{"current", os.ModeSymlink, []byte("a.txt")},
	{".gitattributes", 0o644, []byte("*.txt filter=planted diff=planted merge=planted\n*.proc filter=process\n")},
}

// prepare builds the project, with the real git, and lists it.
func prepare(t *testing.T) settings {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range plain {
		f.Path = filepath.Join(dir, f.Path)
		if err := f.make(-1); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"-c", "init.defaultBranch=main", "init", "-q", "--template="},
		{"add", "-A"},
		{"commit", "-q", "-m", "first"},
		{"branch", "feature"},
		{"tag", "v1"},
		{"gc", "-q"},
	} {
		git(t, dir, args...)
	}
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("b.txt", "beta\nchanged\n", 0o644)
	write("untracked.txt", "precious\n", 0o644)
	write(".git/config", gitConfig, 0o644)
	for _, hook := range []string{"pre-commit", "post-checkout", "post-index-change", "reference-transaction", "pre-push", "post-merge", "fsmonitor-watchman"} {
		if err := os.MkdirAll(filepath.Join(dir, ".git/hooks"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(plantedDir, "hook"), filepath.Join(dir, ".git/hooks", hook)); err != nil {
			t.Fatal(err)
		}
	}
	project := []file{
		{workDir, os.ModeDir | 0o755, nil},
		{homeDir, os.ModeDir | 0o755, nil},
		{homeDir + "/.gitconfig", 0o644, []byte("[user]\n\tname = User\n\temail = user@example.com\n")},
		{homeDir + "/.bashrc", 0o644, []byte("PS1='$ '\n")},
		{homeDir + "/.ssh", os.ModeDir | 0o700, nil},
		{homeDir + "/.ssh/id_ed25519", 0o600, []byte("key\n")},
	}
	names := words(samples(t))
	s := settings{Bash: bash, Project: append(project, list(t, dir)...), Limit: lineLimit, Grace: lineGrace}
	s.Programs, s.Real = programs(names)
	if out, err := exec.Command("git", "--exec-path").Output(); err == nil {
		s.GitExec = strings.TrimSpace(string(out))
	}
	return s
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=User", "GIT_AUTHOR_EMAIL=user@example.com", "GIT_COMMITTER_NAME=User", "GIT_COMMITTER_EMAIL=user@example.com",
		"GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// list reads a folder into memory, with paths as the lines will see them.
func list(t *testing.T, dir string) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		f := file{Path: filepath.Join(workDir, strings.TrimPrefix(name, dir)), Mode: info.Mode()}
		switch {
		case info.Mode().IsRegular():
			f.Data, err = os.ReadFile(name)
		case info.Mode()&os.ModeSymlink != 0:
			var target string
			target, err = os.Readlink(name)
			f.Data = []byte(target)
		case !info.IsDir():
			err = fmt.Errorf("%s is no file, folder or link", name)
		}
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
