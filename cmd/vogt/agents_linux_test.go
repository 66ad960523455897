package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"vogt/internal/client/clienttest"
	"vogt/internal/sshkey"
)

// agentProgram is a program of an agent as people install it, and how a model asks
// it for what the test wants.
type agentProgram struct {
	name    string
	pack    string // of npm, with its version
	node    int    // the least version of node that it wants, or 0 for none
	install func(from, home string) error
	// settings are files that it reads from its home, in which SERVICE stands for
	// the address of the model's service.
	settings map[string]string
	environ  []string
	argv     []string // to do a task without a person
	shell    func(line string) step
	read     func(file string) []step // before an edit, where it has to be
	edit     func(file, old, new string) step
	write    func(file, text string) step
	// A person at a terminal: arguments, what is seen first, and what answers it.
	screen []string
	talk   [][2]string
	own    string // its settings in a project
	makes  string // what it makes in a project by itself
}

func agentPrograms() []agentProgram {
	patch := func(text string) step { return step{tool: "apply_patch", text: text} }
	return []agentProgram{{
		name: "claude", pack: "@anthropic-ai/claude-code-linux-x64@2.1.332", own: ".claude/settings.json",
		// As its own installer does.
		install: func(from, home string) error {
			return errors.Join(
				place(filepath.Join(from, "@anthropic-ai/claude-code-linux-x64/claude"), filepath.Join(home, ".local/share/claude/versions/2.1.332")),
				link("../share/claude/versions/2.1.332", filepath.Join(home, ".local/bin/claude")))
		},
		settings: map[string]string{
			".claude/settings.json": `{"skipWebFetchPreflight": true, "theme": "dark", "skipDangerousModePermissionPrompt": true}`,
			".claude.json":          `{"hasCompletedOnboarding": true, "projects": {"PROJECT": {"hasTrustDialogAccepted": true}}, "customApiKeyResponses": {"approved": ["test"], "rejected": []}, "theme": "dark"}`,
		},
		environ: []string{"ANTHROPIC_BASE_URL=SERVICE", "ANTHROPIC_API_KEY=test", "NODE_EXTRA_CA_CERTS=CERTIFICATE", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1"},
		argv:    []string{"-p", "GO", "--model", "claude-sonnet-4-5", "--output-format", "stream-json", "--verbose", "--permission-mode", "bypassPermissions"},
		shell: func(line string) step {
			return step{tool: "Bash", args: object{"command": line, "description": "look"}}
		},
		read: func(file string) []step { return []step{{tool: "Read", args: object{"file_path": file}}} },
		edit: func(file, old, new string) step {
			return step{tool: "Edit", args: object{"file_path": file, "old_string": old, "new_string": new}}
		},
		write: func(file, text string) step {
			return step{tool: "Write", args: object{"file_path": file, "content": text}}
		},
		screen: []string{"--model", "claude-sonnet-4-5", "--permission-mode", "bypassPermissions"},
		talk:   [][2]string{{"bypass", "GO"}, {"GO", "\r"}, {lastWord, "\x03"}, {"again", "\x03"}},
	}, {
		name: "codex", pack: "@openai/codex@0.171.0", own: ".codex/config.toml", node: 16,
		install: globally("@openai/codex", "bin/codex.js", "codex"),
		settings: map[string]string{".codex/config.toml": `model = "gpt-5.5"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
enable_request_compression = false
plugins = false
[model_providers.fake]
name = "fake"
base_url = "SERVICE/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
[projects."PROJECT"]
trust_level = "trusted"
`},
		environ: []string{"FAKE_KEY=test", "SSL_CERT_FILE=CERTIFICATE", "CODEX_CA_CERTIFICATE=CERTIFICATE"},
		argv:    []string{"exec", "--json", "--skip-git-repo-check", "GO"},
		shell:   func(line string) step { return step{tool: "exec_command", args: object{"cmd": line}} },
		edit: func(file, old, new string) step {
			return patch("*** Begin Patch\n*** Update File: " + file + "\n@@\n-" + old + "\n+" + new + "\n*** End Patch\n")
		},
		write: func(file, text string) step {
			return patch("*** Begin Patch\n*** Add File: " + file + "\n+" + text + "\n*** End Patch\n")
		},
		screen: []string{"--dangerously-bypass-approvals-and-sandbox", "--model", "gpt-6.2-sol", "GO"},
		talk:   [][2]string{{lastWord, "/quit"}, {"exit", "\r"}},
	}, {
		name: "opencode", pack: "opencode-linux-x64@1.18.33", own: "opencode.json", makes: ".opencode",
		// As its own installer does.
		install: func(from, home string) error {
			return place(filepath.Join(from, "opencode-linux-x64/bin/opencode"), filepath.Join(home, ".opencode/bin/opencode"))
		},
		settings: map[string]string{".config/opencode/opencode.json": `{"model": "fake/m1", "small_model": "fake/m1", "autoupdate": false, "share": "disabled", "permission": {"edit": "allow", "bash": "allow", "external_directory": "allow"},
"provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": {"baseURL": "SERVICE/v1", "apiKey": "test"},
"models": {"m1": {"name": "m1", "tool_call": true, "limit": {"context": 100000, "output": 4000}}}}}}`},
		environ: []string{"NODE_EXTRA_CA_CERTS=CERTIFICATE", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"},
		argv:    []string{"run", "--format", "json", "GO"},
		shell: func(line string) step {
			return step{tool: "bash", args: object{"command": line, "description": "look"}}
		},
		read: func(file string) []step { return []step{{tool: "read", args: object{"filePath": file}}} },
		edit: func(file, old, new string) step {
			return step{tool: "edit", args: object{"filePath": file, "oldString": old, "newString": new}}
		},
		write: func(file, text string) step {
			return step{tool: "write", args: object{"filePath": file, "content": text}}
		},
	}, {
		name: "gemini", pack: "@google/gemini-cli@0.61.0", own: ".gemini/settings.json", node: 20,
		install:  globally("@google/gemini-cli", "bundle/gemini.js", "gemini"),
		settings: map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}, "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}}`},
		environ:  []string{"GEMINI_API_KEY=test", "GOOGLE_GEMINI_BASE_URL=SERVICE", "GEMINI_TELEMETRY_ENABLED=false", "NO_COLOR=1", "NODE_EXTRA_CA_CERTS=CERTIFICATE"},
		argv:     []string{"-p", "GO", "-m", "gemini-2.5-flash", "--output-format", "json", "--approval-mode", "yolo"},
		shell: func(line string) step {
			return step{tool: "run_shell_command", args: object{"command": line, "description": "look"}}
		},
		edit: func(file, old, new string) step {
			return step{tool: "replace", args: object{"file_path": file, "instruction": "change it", "old_string": old, "new_string": new}}
		},
		write: func(file, text string) step {
			return step{tool: "write_file", args: object{"file_path": file, "content": text}}
		},
	}}
}

// TestAgents starts agents' own programs in a box, as a person does. The model
// that they talk to asks for what it may have, and for what it may not.
func TestAgents(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the packages of the programs are those for amd64")
	}
	if testing.Short() {
		t.Skip("the programs are some hundred megabytes")
	}
	if os.Getenv(townVariable) == "" {
		for _, a := range agentPrograms() {
			if _, err := npmPackage(a.pack); err != nil {
				t.Logf("%s is not there: %v", a.name, err)
			}
		}
	}
	if !inTown(t) {
		return
	}
	served := &model{}
	certificate := publish(t, served)
	for _, a := range agentPrograms() {
		t.Run(a.name, func(t *testing.T) {
			from, err := npmPackage(a.pack)
			if err != nil {
				t.Skipf("npm does not bring %s: %v", a.pack, err)
			}
			if have := nodeVersion(); have < a.node {
				t.Skipf("it wants node %d, and this machine has %d", a.node, have)
			}
			n := newDesk(t, a, from, certificate)
			n.work(served)
			if a.screen != nil {
				n.sit(served)
			}
		})
	}
}

// nodeVersion is the version of node on this machine, or 0.
func nodeVersion() int {
	out, err := exec.Command("node", "-p", "process.versions.node.split('.')[0]").Output()
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		return 0
	}
	return n
}

// desk is the home of a person who has an agent, and a project in it.
type desk struct {
	t           *testing.T
	program     agentProgram
	home        string
	project     string
	outside     string
	service     string
	vogt        string
	certificate string // in the project
}

const privateKey = "THE-PRIVATE-KEY"

func newDesk(t *testing.T, a agentProgram, from, certificate string) *desk {
	t.Helper()
	// The home must not be as long as a temporary folder of a test: programs make
	// sockets in it (unix(7)).
	home, err := os.MkdirTemp("", "vogt-desk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	n := &desk{t: t, program: a, home: home, project: filepath.Join(home, "project"), outside: filepath.Join(home, "other"), vogt: program(t, "vogt"),
		service: fmt.Sprintf("https://%s:%d", publicHost, publicPort), certificate: filepath.Join(home, "project", "certificate.pem")}
	pem, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		n.certificate:                           string(pem),
		filepath.Join(n.project, "notes.txt"):   "alpha\nbeta\n",
		filepath.Join(n.project, a.own):         "{}\n",
		filepath.Join(n.outside, "notes.txt"):   "alpha\n",
		filepath.Join(home, ".ssh", "id"):       privateKey + "\n",
		filepath.Join(home, ".claude.json"):     "{}\n",
		filepath.Join(home, ".codex/auth.json"): "{}\n",
	} {
		if strings.HasSuffix(name, ".toml") {
			text = "# nothing\n"
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.install(from, home); err != nil {
		t.Fatal(err)
	}
	n.run(n.project, "git", "init", "-q")
	key, public, err := sshkey.Generate(rand.Reader, "owner")
	if err != nil {
		t.Fatal(err)
	}
	if err := sshkey.WriteNew(filepath.Join(home, "owner-key"), key, public); err != nil {
		t.Fatal(err)
	}
	authority := clienttest.New(t)
	authority.AddPerson(ownerEmail, "", public)
	n.run(n.project, n.vogt, "login", ownerEmail, "--idp", authority.URL, "--key", filepath.Join(home, "owner-key"))
	n.run(n.project, n.vogt, "agent", "add", "bot")
	for name, text := range a.settings {
		cmd := n.start("sh", "-c", `mkdir -p "$(dirname ~/"$0")" && cat > ~/"$0"`, name)
		cmd.Stdin = strings.NewReader(n.fill(text))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("write %s: %v\n%s", name, err, out)
		}
	}
	return n
}

func (n *desk) fill(text string) string {
	return strings.NewReplacer("SERVICE", n.service, "PROJECT", n.project, "CERTIFICATE", n.certificate).Replace(text)
}

// taskLimit ends a program that hangs.
const taskLimit = time.Minute

func (n *desk) command(dir, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), taskLimit)
	n.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the box ends with it
	bins := []string{filepath.Dir(n.vogt)}
	for _, dir := range []string{".local/bin", ".npm-global/bin", ".opencode/bin"} {
		bins = append(bins, filepath.Join(n.home, dir))
	}
	cmd.Env = []string{"HOME=" + n.home, "PATH=" + strings.Join(append(bins, "/usr/local/bin:/usr/bin:/bin"), ":"), "LANG=C.UTF-8", "TERM=xterm-256color"}
	return cmd
}

func (n *desk) run(dir, name string, args ...string) {
	n.t.Helper()
	if out, err := n.command(dir, name, args...).CombinedOutput(); err != nil {
		n.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// start is a command in the agent's box.
func (n *desk) start(argv ...string) *exec.Cmd {
	line := []string{"agent", "start", "bot", "--ask=false", "--allow", fmt.Sprintf("%s:%d", publicHost, publicPort), "--", "env"}
	for _, v := range n.program.environ {
		line = append(line, n.fill(v))
	}
	return n.command(n.project, n.vogt, append(line, argv...)...)
}

// work lets the program do a task, and looks at what has come of it.
func (n *desk) work(served *model) {
	t, a := n.t, n.program
	notes, elsewhere, own := filepath.Join(n.project, "notes.txt"), filepath.Join(n.outside, "notes.txt"), filepath.Join(n.project, a.own)
	looks := fmt.Sprintf("cat ~/.ssh/id %s/.ssh/id %s; echo here > made.txt; echo x > %s/made.txt; echo x >> %s; curl -sk --noproxy '*' https://%s:%d/directly; curl -sk %s/by-proxy; curl -s https://other.example/; true",
		n.home, elsewhere, n.outside, own, publicAddress, publicPort, n.service)
	steps := []step{a.shell(looks)}
	if a.read != nil {
		steps = append(steps, a.read(notes)...)
	}
	steps = append(steps, a.edit(notes, "alpha", "changed"), a.write(filepath.Join(n.outside, "written.txt"), "x"), a.write(own, "x"), step{})
	served.follow(steps)
	before := n.files()
	cmd := n.start(append([]string{a.name}, a.argv...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	asked := served.requests()
	if err != nil || len(asked) < len(steps)-1 {
		t.Errorf("%v, %d requests", err, len(asked))
	}
	after := n.files()
	want := map[string]string{notes: "changed\nbeta\n", filepath.Join(n.project, "made.txt"): "here\n"}
	for name, text := range want {
		if after[name] != text {
			t.Errorf("%s holds %q, want %q", name, after[name], text)
		}
		delete(after, name)
		delete(before, name)
	}
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s was %q and is %q", name, text, after[name])
		}
		delete(after, name)
	}
	for name, text := range after {
		t.Errorf("%s has been made: %q", name, text)
	}
	all := strings.Join(asked, "\n")
	if strings.Contains(all, privateKey) || strings.Contains(out.String(), privateKey) {
		t.Error("the model or the output got a secret")
	}
	if strings.Contains(all, "GET /directly") {
		t.Error("there is a way beside the proxy")
	}
	if !strings.Contains(all, "GET /by-proxy") {
		t.Error("the shell of the agent has no way to the granted host")
	}
	n.record()
	if t.Failed() {
		t.Logf("the program prints:\n%s", out.String())
		for _, body := range asked {
			t.Logf("request: %.300s … %s", body, body[max(0, len(body)-1500):])
		}
	}
}

// files are what is in the project, beside it, and the user's own settings.
func (n *desk) files() map[string]string {
	n.t.Helper()
	out := map[string]string{}
	for _, root := range []string{n.project, n.outside, filepath.Join(n.home, ".ssh"), filepath.Join(n.home, ".claude.json"), filepath.Join(n.home, ".claude"), filepath.Join(n.home, ".codex"), filepath.Join(n.home, ".gemini"), filepath.Join(n.home, ".config", "opencode")} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if d.Name() == ".git" || d.Name() == n.program.makes {
				return fs.SkipDir
			}
			if d.IsDir() {
				if name != root {
					out[name] = "a folder"
				}
				return nil
			}
			data, err := os.ReadFile(name)
			out[name] = string(data)
			return err
		})
		if err != nil {
			n.t.Fatal(err)
		}
	}
	return out
}

// record looks at what the proxy has written down: the granted host was reached,
// and the other one was not.
func (n *desk) record() {
	data, err := os.ReadFile(filepath.Join(n.home, ".local/share/vogt/egress.jsonl"))
	if err != nil {
		n.t.Error(err)
		return
	}
	reached, refused := map[string]bool{}, map[string]bool{}
	for line := range bytes.Lines(data) {
		var r struct{ Host, Verdict, Agent string }
		if err := json.Unmarshal(line, &r); err != nil {
			n.t.Error(err)
		}
		if r.Agent != "bot" {
			n.t.Errorf("the proxy names %q as the agent", r.Agent)
		}
		if r.Verdict == "refused" {
			refused[r.Host] = true
		} else {
			reached[r.Host] = true
		}
	}
	if len(reached) != 1 || !reached[publicHost] || !refused["other.example"] {
		n.t.Errorf("reached %v, refused %v", reached, refused)
	}
}

// sit is a person who talks to the program at a terminal.
func (n *desk) sit(served *model) {
	t, a := n.t, n.program
	served.follow(nil)
	cmd := n.start(append([]string{a.name}, a.screen...)...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	var screen, unread string
	buffer := make([]byte, 1<<16)
	said := 0
	for {
		k, err := tty.Read(buffer)
		text := string(buffer[:k])
		screen, unread = screen+text, unread+text
		for question, answer := range map[string]string{"\x1b[6n": "\x1b[1;1R", "\x1b[c": "\x1b[?62;c"} {
			fmt.Fprint(tty, strings.Repeat(answer, strings.Count(text, question)))
		}
		for said < len(a.talk) {
			_, after, seen := strings.Cut(unread, a.talk[said][0])
			if !seen {
				break
			}
			fmt.Fprint(tty, a.talk[said][1])
			unread = after
			said++
		}
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	if said < len(a.talk) {
		t.Errorf("at the terminal, %d of %d things were said; %v\n%q", said, len(a.talk), err, screen[max(0, len(screen)-3000):])
	}
}

// npmPackage installs a package of npm where it stays for later tests, and returns the
// folder that it is in. In the network of the tests it only looks there.
func npmPackage(pack string) (folder string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "vogt-tests", strings.ReplaceAll(pack, "/", "_"))
	folder = filepath.Join(dir, "node_modules")
	if _, err := os.Stat(folder); err == nil || os.Getenv(townVariable) != "" {
		return folder, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	next, err := os.MkdirTemp(filepath.Dir(dir), ".next-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(next)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", next, "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", pack)
	cmd.Dir = next
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	if err := os.Chmod(next, 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(next, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return folder, nil
}

// globally installs as npm install -g does with a prefix in the home.
func globally(pack, entry, name string) func(from, home string) error {
	return func(from, home string) error {
		to := filepath.Join(home, ".npm-global", "lib", "node_modules")
		err := filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(from, file)
			if err != nil {
				return err
			}
			return place(file, filepath.Join(to, rel))
		})
		if err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(to, pack, entry), 0o755); err != nil {
			return err
		}
		return link(filepath.Join("../lib/node_modules", pack, entry), filepath.Join(home, ".npm-global", "bin", name))
	}
}

func link(target, name string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(target, name))
}

// place makes a file the same as another one, without a copy where that can be.
func place(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	st, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	if os.Link(from, to) == nil {
		return nil
	}
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, st.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
