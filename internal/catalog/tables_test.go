package catalog

import (
	"errors"
	slashpath "path"
	"slices"
	"strings"
	"testing"
)

// indexed are all patterns of an index.
func indexed(x *pathIndex) []pattern { return x.all }

// The tables that Vogt brings hold to their format, and say nothing twice.
func TestTables(t *testing.T) {
	var tables tables
	if err := errors.Join(tables.loadVariables(), tables.loadPatterns(), tables.loadHosts()); err != nil {
		t.Fatal(err)
	}
	for name := range tables.variables {
		if star := strings.IndexByte(name, '*'); star >= 0 && star != len(name)-1 {
			t.Errorf("variable %s: only the end of a name may be open", name)
		}
	}
	count, twice := map[string]int{}, map[pattern]bool{}
	for _, p := range indexed(&tables.paths) {
		kind := p.kind
		if kind != credentialKind && kind != documentationKind {
			kind = "sink"
		}
		count[kind]++
		key := pattern{kind, p.glob}
		if twice[key] {
			t.Errorf("%s %s stands twice", kind, p.glob)
		}
		twice[key] = true
		if !strings.HasPrefix(p.glob, "/") && !strings.HasPrefix(p.glob, "~/") && !strings.HasPrefix(p.glob, "**/") {
			t.Errorf("%s %s begins nowhere", kind, p.glob)
		}
		for _, s := range strings.Split(p.glob, "/") {
			if s != "**" && strings.Contains(s, "**") {
				t.Errorf("%s %s: ** is a segment of its own", kind, p.glob)
			}
		}
	}
	if count["sink"] < 500 || count[credentialKind] < 300 || count[documentationKind] < 50 {
		t.Errorf("too few patterns: %v", count)
	}
	if n := len(tables.paths.others); n > 10 {
		t.Errorf("%d patterns are tried on every path", n)
	}
	for name := range tables.hosts {
		if strings.ContainsAny(name, "*/ ") {
			t.Errorf("host %s is no host and no *.host", name)
		}
	}
}

func TestStatements(t *testing.T) {
	for _, tt := range []struct{ text, words, err string }{
		{"vogt-catalog 1\n", "", ""},
		{"vogt-catalog 1\n# a b\n\na  b\nc", "a,b;c;", ""},
		{"vogt-catalog 2\na b\n", "", `t:1: the first line is "vogt-catalog 2", want "vogt-catalog 1"`},
		{"vogt-catalog 1\na\nbad\nb\n", "a;", "t:3: no"},
	} {
		var words strings.Builder
		err := statements("t", tt.text, func(word, rest string) error {
			if word == "bad" {
				return errors.New("no")
			}
			words.WriteString(strings.TrimSuffix(word+","+rest, ",") + ";")
			return nil
		})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.err || words.String() != tt.words {
			t.Errorf("%q: %q, %q, want %q, %q", tt.text, words.String(), got, tt.words, tt.err)
		}
	}
}

func TestVariable(t *testing.T) {
	c := New()
	for _, tt := range []struct {
		want    VariableEffect
		program string
		names   string
	}{
		{Library, "ls", "PATH LD_PRELOAD LD_PRELOAD_32 LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV BASH_FUNC_ls%% GCONV_PATH GETCONF_DIR GTK_MODULES KRB5_CONFIG"},
		{Library, "git", "GIT_EXEC_PATH GIT_TEMPLATE_DIR"},
		{Library, "python3", "PYTHONPATH PYTHONSTARTUP PYTHONHOME PERL5OPT PERL5LIB RUBYOPT NODE_OPTIONS JAVA_TOOL_OPTIONS CLASSPATH PSModulePath LUA_INIT_5_4"},
		{Library, "sh", "ENV"},
		{ShellText, "git", "GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR PAGER EDITOR VISUAL LESSOPEN BROWSER RSYNC_RSH"},
		{ShellText, "bash", "PROMPT_COMMAND PS4"},
		{ProgramPath, "git", "GIT_SSH GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS"},
		{ProgramPath, "vim", "SHELL"},
		{Configures, "git", "HOME XDG_CONFIG_HOME GIT_CONFIG_GLOBAL GIT_CONFIG_KEY_0 DOCKER_HOST KUBECONFIG npm_config_script_shell PIP_INDEX_URL POSIXLY_CORRECT RIPGREP_CONFIG_PATH DBUS_SESSION_BUS_ADDRESS CARGO_TARGET_X_RUNNER LESS"},
		{Configures, "go", "CC GOFLAGS GOPROXY"},
		{Configures, "tar", "TAR_OPTIONS TAPE"},
		{WritesFile, "git", "GIT_TRACE GIT_TRACE2_EVENT LD_DEBUG_OUTPUT SSLKEYLOGFILE LESSHISTFILE NODE_V8_COVERAGE TF_LOG_PATH"},
		{ContactsHost, "curl", "http_proxy https_proxy HTTPS_PROXY ALL_PROXY AWS_ENDPOINT_URL_S3 PGHOST"},
		{Harmless, "ls", "LANG LC_ALL TZ TERM NO_COLOR DEBIAN_FRONTEND GIT_AUTHOR_NAME GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS GOOS CGO_ENABLED NODE_ENV PYTHONUNBUFFERED AWS_PROFILE AWS_REGION PGPASSWORD TF_VAR_size path MYPATH"},
		{Harmless, "npm", "ENV PROMPT_COMMAND SHELL CFLAGS_X"},
	} {
		for _, name := range strings.Fields(tt.names) {
			if got := c.Variable(name, tt.program); got != tt.want {
				t.Errorf("Variable(%q, %q) = %d, want %d", name, tt.program, got, tt.want)
			}
			if tt.want != Harmless && !c.Matters(name) {
				t.Errorf("Matters(%q) = false", name)
			}
		}
	}
	for _, name := range []string{"", "FOO", "x", "DIR", "file", "i", "IFS", "MSG", "VERSION", "NAME", "LC_ALL"} {
		if c.Matters(name) {
			t.Errorf("Matters(%q) = true", name)
		}
	}
}

func TestSink(t *testing.T) {
	c := New()
	const home = "/data/people/ann"
	for kind, paths := range map[string]string{
		"git":       "/p/.git/config /p/.git/hooks/pre-commit /p/.git/modules/lib/hooks/post-checkout /p/.gitattributes .gitmodules .git/config /p/.husky/pre-push ~/.gitconfig",
		"shell":     "~/.bashrc /home/bob/.zshenv /root/.profile /Users/bob/.config/fish/conf.d/x.fish /etc/profile.d/x.sh /mnt/c/Users/bob/Documents/PowerShell/profile.ps1",
		"direnv":    "/p/.envrc /p/.env /p/flake.nix",
		"build":     "/p/Makefile /p/sub/makefile /P/MAKEFILE /p/package.json /p/pyproject.toml /p/setup.py /p/build.rs /p/.cargo/config.toml /p/vite.config.ts /p/build.gradle.kts /p/App.csproj /p/.npmrc",
		"test":      "/p/tests/conftest.py /p/jest.config.mjs",
		"editor":    "/p/.vscode/tasks.json /p/.vscode /p/.idea/runConfigurations/x.xml /p/.devcontainer/devcontainer.json ~/.vimrc /home/bob/.config/nvim/init.lua",
		"terminal":  "~/.tmux.conf",
		"agent":     "/p/CLAUDE.md /p/docs/AGENTS.md /p/.claude/settings.local.json /p/.cursor/rules/a.mdc /p/.mcp.json ~/.claude.json",
		"vogt":      "/etc/vogt/catalog/x",
		"ci":        "/p/.github/workflows/ci.yml /p/Jenkinsfile /p/.gitlab-ci.yml",
		"deploy":    "/p/main.tf",
		"container": "/p/Dockerfile /p/Dockerfile.dev /p/compose.yaml ~/.docker/config.json",
		"cron":      "/etc/crontab /etc/cron.d/x /var/spool/cron/crontabs/root",
		"unit":      "/etc/systemd/system/x.service /home/bob/.config/systemd/user/x.timer /lib/udev/rules.d/1.rules",
		"autostart": "~/.config/autostart/x.desktop /p/x.desktop /Users/bob/Library/LaunchAgents/x.plist /Library/LaunchDaemons/x.plist",
		"dbus":      "/usr/share/dbus-1/services/x.service",
		"ssh":       "~/.ssh/authorized_keys /home/bob/.ssh/rc /etc/ssh/sshd_config",
		"account":   "/etc/sudoers /etc/sudoers.d/x /etc/pam.d/sudo /etc/polkit-1/rules.d/1.rules",
		"loader":    "/etc/ld.so.preload",
		"package":   "~/.pypirc /etc/apt/sources.list.d/x.list",
		"path":      "/usr/local/bin/ls ~/.local/bin/git /home/bob/bin/ls /p/node_modules/.bin/tsc /p/.venv/bin/python",
		"web":       "/var/www/html/x.php",
		"":          "/p/main.go /p/src/index.ts /p/README.md /p/docs/makefiles.md /p/notmakefile.txt /p/xMakefile /p/core.py /p/git/config /p/.gitignore /p/a.b/hooks/x /p/package.json.txt /tmp/out.txt ~/notes.txt /home/bob/projects/a/main.py /",
	} {
		for _, path := range strings.Fields(paths) {
			path = strings.Replace(path, "~/", home+"/", 1)
			// Some files are of two kinds; then one of them is told.
			if got := c.Sink(path, home); (got == "") != (kind == "") || got != kind && !c.ofKind(kind, path, home) {
				t.Errorf("Sink(%q) = %q, want %q", path, got, kind)
			}
		}
	}
	if got := c.Sink("/mnt/c/Users/bob/AppData/Roaming/Microsoft/Windows/Start Menu/Programs/Startup/x.cmd", home); got != "autostart" {
		t.Errorf("the start folder of Windows is %q", got)
	}
	if got := c.Sink("", home); got != "" {
		t.Errorf("no path at all is %q", got)
	}
}

// ofKind reports whether any pattern of the kind matches.
func (c *Catalog) ofKind(kind, path, home string) bool {
	return slices.ContainsFunc(indexed(&c.patterns().paths), func(p pattern) bool { return p.kind == kind && Match(p.glob, path, home) })
}

func TestCredentialAndDocumentation(t *testing.T) {
	c := New()
	const home = "/data/people/ann"
	for want, paths := range map[Class]string{
		{Credential: true}: `~/.ssh/id_ed25519 /home/bob/.ssh/id_rsa /root/.aws/credentials /p/.env /p/.env.production /p/.env.local .env ~/.netrc
			~/.config/gh/hosts.yml /etc/shadow /proc/1/environ /proc/self/environ /proc/1/root/etc/shadow ~/.mozilla/firefox/x/logins.json
			~/.local/share/keyrings/login.keyring ~/.kube/config ~/.docker/config.json /p/tls.key /p/server.pem ~/.gnupg/private-keys-v1.d/x.key
			~/.bash_history /Users/bob/Library/Keychains/login.keychain-db /home/bob/.config/google-chrome/Default/Cookies /p/terraform.tfstate
			~/.pgpass ~/.npmrc /run/secrets/db /var/lib/vogt/key /dev/sda1 /dev/mem ~/.ssh /mnt/c/Windows/System32/config/SAM ~/.claude/.credentials.json`,
		{Documentation: true}: "/usr/share/doc/bash/README /usr/share/man/man1/ls.1.gz /usr/include/stdio.h /etc/os-release /proc/cpuinfo /usr/share/zoneinfo/UTC",
		{}: `/p/main.go /p/.env.example /p/.env.sample /p/README.md /p/core.py /p/keys.go /p/environment.ts /etc/passwd /etc/hosts /dev/null
			/p/secret_test.go /p/history.md /home/bob/notes /usr/share/docs/x /usr/share/doc /home/usr/share/doc/x /opt/app/secret`,
	} {
		for _, path := range strings.Fields(paths) {
			got := c.Classify(strings.Replace(path, "~/", home+"/", 1), home)
			got.Sink = ""
			if got != want {
				t.Errorf("Classify(%q) = %+v, want %+v", path, got, want)
			}
		}
	}
}

// No pattern of documentation lies where secrets do.
func TestDocumentationHoldsNoSecrets(t *testing.T) {
	c := New()
	for _, p := range indexed(&c.patterns().paths) {
		if p.kind != documentationKind {
			continue
		}
		if path := strings.NewReplacer("**", "a/b", "*", "x").Replace(p.glob); c.Classify(path, "/home/a").Credential {
			t.Errorf("%s can be a credential", p.glob)
		}
	}
}

// The index finds what trying every pattern finds.
func TestClassifyAgainstAllPatterns(t *testing.T) {
	c := New()
	all := indexed(&c.patterns().paths)
	replacer := strings.NewReplacer("**", "a/b", "*", "xyz", "~", "/home/bob")
	for _, p := range all {
		path := replacer.Replace(p.glob)
		got, want := c.Classify(path, "/home/bob"), Class{}
		for _, q := range all {
			if Match(q.glob, path, "/home/bob") {
				want.set(q.kind)
			}
		}
		if (got.Sink == "") != (want.Sink == "") || got.Credential != want.Credential || got.Documentation != want.Documentation {
			t.Errorf("Classify(%q) = %+v, want %+v", path, got, want)
		}
	}
}

func TestHostKind(t *testing.T) {
	c := New()
	for want, hosts := range map[string]string{
		"multi-tenant": "github.com GitHub.com github.com. gist.github.com raw.githubusercontent.com me.github.io bucket.s3.amazonaws.com x.blob.core.windows.net storage.googleapis.com pastebin.com transfer.sh webhook.site a.ngrok-free.app discord.com api.telegram.org hooks.slack.com docs.google.com x.workers.dev x.vercel.app registry.npmjs.org pypi.org huggingface.co",
		"resolver":     "8.8.8.8 1.1.1.1 2001:4860:4860::8888 dns.google cloudflare-dns.com dns.quad9.net abc.dns.nextdns.io",
		"":             "example.com notgithub.com github.com.example.com evilgithub.io github.io go.dev deb.debian.org 8.8.8.80 localhost .",
	} {
		for _, host := range strings.Fields(hosts) {
			if got := c.HostKind(host); got != want {
				t.Errorf("HostKind(%q) = %q, want %q", host, got, want)
			}
		}
	}
	if got := c.HostKind(""); got != "" {
		t.Errorf("no host at all is %q", got)
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		glob, path, home string
		want             bool
	}{
		{"/etc/passwd", "/etc/passwd", "", true},
		{"/etc/passwd", "/ETC/Passwd", "", true},
		{"/etc/passwd", "/etc/passwd-", "", false},
		{"/etc/passwd", "/x/etc/passwd", "", false},
		{"/etc/*", "/etc/passwd", "", true},
		{"/etc/*", "/etc/a/b", "", false},
		{"/etc/*", "/etc", "", false},
		{"/etc/**", "/etc/a/b", "", true},
		{"/etc/**", "/etc", "", false},
		{"/etc/**", "/etcetera/a", "", false},
		{"/a/**/z", "/a/z", "", true},
		{"/a/**/z", "/a/b/c/z", "", true},
		{"/a/**/z", "/a/b/c/zz", "", false},
		{"/a/**/m/*.c", "/a/m/x/m/y.c", "", true},
		{"/a/**/m/*.c", "/a/m/x/y.c", "", false},
		{"**/x", "x", "", true},
		{"**/x", "/a/x", "", true},
		{"**/x", "/a/bx", "", false},
		{"**/x", "/a/x/b", "", false},
		{"**/.git/hooks/**", "/a/b/.git/hooks/c", "", true},
		{"**/.git/hooks/**", ".git/hooks/c", "", true},
		{"**/.git/hooks/**", "/a/.git/hooks", "", false},
		{"**/.git/hooks/**", "/a/x.git/hooks/c", "", false},
		{"**/*.tf", "/a/b.tf", "", true},
		{"**/*.tf", "/a/b.tfx", "", false},
		{"**/*.tf", "/a.tf/b", "", false},
		{"**/a*b*c", "/aXbYc", "", true},
		{"**/a*b*c", "/aXcYb", "", false},
		{"~/.bashrc", "/h/.bashrc", "/h", true},
		{"~/.bashrc", "/h/.bashrc", "/h/", true},
		{"~/.bashrc", "/h/x/.bashrc", "/h", false},
		{"~/.bashrc", "~/.bashrc", "", true},
		{"~/.bashrc", "/home/any/.bashrc", "", true},
		{"~/.bashrc", "/home/any/x/.bashrc", "", false},
		{"~/.bashrc", "/Users/any/.bashrc", "/h", true},
		{"~/.bashrc", "/root/.bashrc", "/h", true},
		{"~/.bashrc", "/rooted/.bashrc", "/h", false},
		{"~/.bashrc", "/.bashrc", "", false},
		{"~/.ssh/**", "/h/.ssh/a/b", "/h", true},
		{"~/.ssh/**", "/h/.sshx/a", "/h", false},
		{"", "", "", true},
		{"", "a", "", false},
		{"*", "", "", true},
		{"**", "a/b", "", true},
	} {
		if got := Match(tt.glob, tt.path, tt.home); got != tt.want {
			t.Errorf("Match(%q, %q, %q) = %t, want %t", tt.glob, tt.path, tt.home, got, tt.want)
		}
	}
}

// slow matches the plain way: every split is tried.
func slow(glob, path []string) bool {
	switch {
	case len(glob) == 0:
		return len(path) == 0
	case glob[0] == "**":
		for i := 0; i <= len(path); i++ {
			if (len(glob) > 1 || i > 0) && slow(glob[1:], path[i:]) {
				return true
			}
		}
		return false
	}
	return len(path) > 0 && slowSegment(glob[0], path[0]) && slow(glob[1:], path[1:])
}

func slowSegment(glob, text string) bool {
	switch {
	case glob == "":
		return text == ""
	case glob[0] == '*':
		return slowSegment(glob[1:], text) || text != "" && slowSegment(glob, text[1:])
	}
	return text != "" && lower(glob[0]) == lower(text[0]) && slowSegment(glob[1:], text[1:])
}

// Match agrees with the plain way, and ends on everything.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{
		{"**/.git/hooks/**", "/a/.git/hooks/x"}, {"/a/**/b/**/c", "/a/x/b/y/c"}, {"**/*.tf", "a.tf"}, {"**/a*a*a*b", "aaaaaaaaaaaa"},
		{"**/**/x", "x"}, {"a/**/**", "a/b"}, {"/", "/"}, {"**/a/**/a/b", "a/a/a/a/b"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, glob, path string) {
		got := Match(glob, path, "/home/a")
		if len(glob) > 40 || len(path) > 40 || strings.Count(glob, "*") > 8 || strings.HasPrefix(glob, "~/") {
			return // only that it ends
		}
		if path != slashpath.Clean(path) || glob != slashpath.Clean(glob) || path == "/" {
			return // paths are clean, and the root is no file
		}
		for _, s := range glob + path {
			if s >= 0x80 {
				return // beyond ASCII, letters fold only where paths are compared whole
			}
		}
		if want := slow(strings.Split(glob, "/"), strings.Split(path, "/")); got != want {
			t.Errorf("Match(%q, %q) = %t, want %t", glob, path, got, want)
		}
	})
}
