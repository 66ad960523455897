package confine

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"vogt/internal/execution/confine/confinetest"
)

// TestPeers makes the attempts in the boxes of others too, and prints how many go
// through: a measurement. What fails in it gave no answer, and did not go through. VOGT_PEERS is a folder that all
// users can read, with npm packages in it: @anthropic-ai/sandbox-runtime and
// @openai/codex (npm install --prefix, with --ignore-scripts).
func TestPeers(t *testing.T) {
	folder := os.Getenv("VOGT_PEERS")
	if folder == "" {
		t.Skip("VOGT_PEERS names no folder with the programs to compare with")
	}
	helper := confinetest.Program(t, helperPackage)
	modules := filepath.Join(folder, "node_modules")
	settings := filepath.Join(os.TempDir(), "srt.json")
	if err := os.WriteFile(settings, []byte(`{"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": {"denyRead": ["~/.ssh"], "allowWrite": ["."], "denyWrite": []}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	confinetest.Compare(t, []confinetest.Way{
		{Name: "Vogt", Level: confinetest.Full, Run: func(t testing.TB, c confinetest.Command) confinetest.Result { return inBox(t, helper, c) }},
		{Name: "bwrap", Run: peer(func(c confinetest.Command) []string {
			return []string{"/usr/bin/bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", c.Workspace, c.Workspace, "--unshare-all", "--die-with-parent", "--new-session", "--"}
		})},
		{Name: "srt", Run: peer(func(confinetest.Command) []string {
			return []string{"/usr/bin/node", filepath.Join(modules, "@anthropic-ai/sandbox-runtime/dist/cli.js"), "--settings", settings}
		})},
		{Name: "codex", Run: peer(func(confinetest.Command) []string {
			return []string{filepath.Join(modules, "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"), "sandbox", "-P", ":workspace", "--"}
		})},
	})
}

// peerLimit ends an attempt that hangs in a box: in srt, those of 32-bit calls do.
const peerLimit = 20 * time.Second

// peer runs commands in another's box, in a home as the command has it.
func peer(before func(confinetest.Command) []string) confinetest.Runner {
	return func(t testing.TB, c confinetest.Command) confinetest.Result {
		line := append(before(c), c.Argv...)
		ctx, cancel := context.WithTimeout(context.Background(), peerLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, line[0], line[1:]...)
		cmd.WaitDelay = time.Second // what it has left may keep the pipes
		cmd.Dir, cmd.Env = c.Workspace, append(os.Environ(), "HOME="+c.Home, "TMPDIR=/tmp")
		if c.Terminal {
			cmd.Stdin = os.Stdin
		}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // what it prints tells
		return confinetest.Result{Stdout: stdout.Bytes(), Exit: cmd.ProcessState.ExitCode(), Note: stderr.String()}
	}
}
