package confine

import (
	"os"
	"path/filepath"
	"testing"
)

// monitor is a setting of git that starts a program with every `git status`.
const monitor = `'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = touch $HOME/ran;false\n'`

// TestLater plants in a box what git outside would run afterwards, and uses git
// there as people do: nothing of it may start.
func TestLater(t *testing.T) {
	need(t, "git")
	link := identity + "git init -q $p; git -C $p commit -q --allow-empty -m x; printf " + monitor + " > $p/.git/config; git update-index --add --cacheinfo 160000,$(git -C $p rev-parse HEAD),$p\n"
	for _, tt := range []struct{ name, before, box, after string }{
		{"new repository", "", "git init -q n; printf " + monitor + " > n/.git/config", "git -C n status"},
		// What git takes for a repository and the search does not.
		{"objects is a file", "", "mkdir -p ev/refs; echo ref: refs/heads/main > ev/HEAD; touch ev/objects; chmod 755 ev/objects; printf " + monitor + " > ev/config; ln -s ev x; printf 'gitdir: ev \\n' > .git; mv ev 'ev '", "git status"},
		{"link to a gitfile", "", "mkdir -p ev/refs; echo ref: refs/heads/main > ev/HEAD; touch ev/objects; chmod 755 ev/objects; printf " + monitor + " > ev/config; echo gitdir: ev > g; ln -s g .git", "git status"},
		{"commondir with a space", "", "mkdir -p ev/worktrees/x 'ev/worktrees/.. /refs' 'ev/worktrees/.. /objects' 'ev/.. /refs' 'ev/.. /objects'; echo ref: refs/heads/main > ev/worktrees/x/HEAD; printf '../.. \\n' > ev/worktrees/x/commondir; printf " + monitor + " > 'ev/.. /config'; cp 'ev/.. /config' 'ev/worktrees/.. /config'; echo gitdir: ev/worktrees/x > .git", "git status"},
		// Where the search does not go, a link in the index leads git.
		{"in node_modules", identity + "git init -q; git commit -q --allow-empty -m one", "p=node_modules/x; " + link, "git status"},
		{"deep", identity + "git init -q; git commit -q --allow-empty -m one", "p=1/2/3/4/5/6/7/8/9/10; " + link, "git status"},
		{"in a folder that cannot be listed", identity + "git init -q; git commit -q --allow-empty -m one", "mkdir d; p=d/n; " + link + "chmod 311 d", "git status"},
		// What keeps it from being put aside.
		{"read-only folder", "", "git init -q n; printf " + monitor + " > n/.git/config; chmod 555 n/.git", "git -C n status"},
		{"names are taken", "", "git init -q n; printf " + monitor + " > n/.git/config; cd n/.git; touch config.vogt-quarantine; for i in {2..1000}; do : > config.vogt-quarantine-$i; done", "git -C n status"},
		{"something else cannot be compared", "", "git init -q n; printf " + monitor + " > n/.git/config; mkdir -p a/.git/hooks; chmod 0 a/.git/hooks", "git -C n status"},
		{"a watched name without end", identity + "git init -q; git commit -q --allow-empty -m one", "truncate -s 100M .git/commondir; git init -q n; printf " + monitor + " > n/.git/config", "git -C n status"},
		{"a watched name that cannot be read", identity + "git init -q; git commit -q --allow-empty -m one", "mkdir -m 0 .git/commondir; git init -q n; printf " + monitor + " > n/.git/config", "git -C n status"},
		{"more in a watched folder than is compared", "", "git init -q n; printf " + monitor + " > n/.git/config; mkdir -p .opencode/plugin; cd .opencode/plugin; seq 20010 | xargs touch", "git -C n status"},
		{"a pipe as .git", "", "git init -q n; printf " + monitor + " > n/.git/config; mkdir a; mkfifo a/.git", "git -C n status"},
		{"a .git without end", "", "git init -q n; printf " + monitor + " > n/.git/config; mkdir a z; truncate -s 1T a/.git; ln -s /dev/zero n/.git/commondir; ln -s /dev/zero z/.git", "rm -f n/.git/commondir; git -C n status"},
		{"more folders than are looked at", "", "git init -q n; printf " + monitor + " > n/.git/config; mkdir m; cd m; seq 50010 | xargs mkdir", "git -C n status"},
		// What is reported and left.
		{"hooks are a link", identity + "git init -q; git commit -q --allow-empty -m one; rm -r .git/hooks; mkdir ../hooks; ln -s $PWD/../hooks .git/hooks", "rm .git/hooks; mkdir .git/hooks; printf '#!/bin/sh\ntouch $HOME/ran\n' > .git/hooks/post-checkout; chmod 755 .git/hooks/post-checkout", "git checkout -q -b x"},
		{"commondir", identity + "git init -q; git commit -q --allow-empty -m one", "mkdir 'c '; cp -r .git/objects .git/refs 'c /'; printf " + monitor + " > 'c /config'; echo '../c ' > .git/commondir", "git status"},
		// What has another name, which an earlier box has made.
		{"hard link", "git init -q n; ln n/.git/config c", "printf " + monitor + " > c", "git -C n status"},
		{"hard link that goes away", "git init -q n; ln n/.git/config c", "printf " + monitor + " > c; rm c", "git -C n status"},
		// What is not protected.
		{"worktree elsewhere", identity + "git init -q; git commit -q --allow-empty -m one; git worktree add -q ../w", "mkdir c; cp -r .git/objects .git/refs c; printf " + monitor + " > c/config; echo $PWD/c > .git/worktrees/w/commondir", "git -C ../w status"},
		{"submodule of the repository of a worktree", identity + "mkdir ../m ../lib; git -C ../lib init -q; git -C ../lib commit -q --allow-empty -m one; cd ../m; git init -q; git -c protocol.file.allow=always submodule -q add ../lib lib; git commit -qm one; rmdir ../app; git worktree add -q ../app", "printf " + monitor + " > ../m/.git/modules/lib/config", "git -C ../m/lib status"},
		{"remotes of old", identity + "git init -q -b main; git commit -q --allow-empty -m one", "mkdir -p node_modules .git/remotes; git init -q --bare node_modules/e; printf '#!/bin/sh\ntouch $HOME/ran\n' > node_modules/e/hooks/pre-receive; chmod 755 node_modules/e/hooks/pre-receive; echo URL: $PWD/node_modules/e > .git/remotes/origin", "git push -q origin main"},
		{"settings of a worktree elsewhere", identity + "git init -q; git commit -q --allow-empty -m one; git worktree add -q ../w; git config core.repositoryformatversion 1; git config extensions.worktreeConfig true", "printf " + monitor + " > .git/worktrees/w/config.worktree", "git -C ../w status"},
		{"hooks elsewhere in the workspace", identity + "git init -q; git commit -q --allow-empty -m one; mkdir tools; git config core.hooksPath tools", "printf '#!/bin/sh\\ntouch $HOME/ran\\n' > tools/post-checkout; chmod 755 tools/post-checkout", "git checkout -q -b x"},
		{"included settings", identity + "git init -q; git commit -q --allow-empty -m one; git config include.path ../shared; : > shared", "printf " + monitor + " > shared", "git status"},
		{"hooks link to what is missing", identity + "git init -q; git commit -q --allow-empty -m one; rm -r .git/hooks; ln -s ../later .git/hooks", "mkdir later; printf '#!/bin/sh\\ntouch $HOME/ran\\n' > later/post-checkout; chmod 755 later/post-checkout", "git checkout -q -b x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			b.outside(tt.before)
			output, out, err := b.run(tt.box)
			t.Logf("%v, exit code %d, changed %v\n%s", err, out.Code, out.Changed, output)
			b.outside(tt.after + " >/dev/null 2>&1 || true; chmod -R u+rwx .")
			if _, err := os.Lstat(filepath.Join(b.home, "ran")); err == nil {
				t.Error("git has run what the box planted")
			}
		})
	}
}
