package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"vogt/internal/api"
	"vogt/internal/grant"
)

func median(times []time.Duration) time.Duration {
	times = slices.Clone(times)
	slices.Sort(times)
	return times[len(times)/2]
}

// processes measures whole processes, from start to exit, interleaved so that
// a slow moment of the machine meets all of them.
func (b *bench) processes() error {
	hello, err := b.hello()
	if err != nil {
		return err
	}
	in, err := b.start(filepath.Join(b.dir, "process"))
	if err != nil {
		return err
	}
	defer in.stop()
	vogt := filepath.Join(b.bin, "vogt")
	agent := []string{"VOGT_HOME=" + filepath.Join(b.dir, "agent-home")}
	owner := []string{"VOGT_HOME=" + filepath.Join(b.dir, "owner-home")}
	for _, login := range []struct {
		env        []string
		email, key string
	}{{agent, in.agentEmail, "agent"}, {owner, ownerEmail, "owner"}} {
		if err := b.quiet(login.env, vogt, "login", login.email, "--idp", in.issuer, "--key", filepath.Join(b.dir, login.key)); err != nil {
			return err
		}
	}
	// One request that the owner allows for good, so that runs are covered.
	if err := b.allow(in, agent, vogt); err != nil {
		return err
	}
	cases := []struct {
		name string
		env  []string
		argv []string
	}{
		{"/bin/true", nil, []string{"/bin/true"}},
		{"Go hello world", nil, []string{hello}},
		{"vogt read --json -- 'git status --short'", nil, []string{vogt, "read", "--json", "--", "git status --short"}},
		{"vogt read --json on a line of seven programs", nil, []string{vogt, "read", "--json", "--", "cd src && find . -name '*.go' | xargs wc -l | sort -rn | head -20; sudo env A=1 rm -rf build"}},
		{"vogt whoami", agent, []string{vogt, "whoami"}},
		{"vogt run --wait -- true, covered by an always grant", agent, []string{vogt, "run", "--wait", "--", "true"}},
	}
	times := make([][]time.Duration, len(cases))
	for range b.rounds {
		for i, c := range cases {
			t := time.Now()
			if err := b.quiet(c.env, c.argv...); err != nil {
				return err
			}
			times[i] = append(times[i], time.Since(t))
		}
	}
	fmt.Printf("\n## Whole processes\n\nMedian of %d runs each, interleaved.\n\n| process | ms | × hello world |\n|---|---|---|\n", b.rounds)
	base := median(times[1])
	for i, c := range cases {
		m := median(times[i])
		fmt.Printf("| %s | %.1f | %.1f |\n", c.name, float64(m.Microseconds())/1000, float64(m)/float64(base))
	}
	latency, err := b.approveToRun(in, agent, vogt)
	if err != nil {
		return err
	}
	fmt.Printf("\nFrom the answer to an approval until the waiting `vogt run --wait -- true` has ended, median of %d: %.1f ms.\n", len(latency), float64(median(latency).Microseconds())/1000)
	return nil
}

func (b *bench) hello() (string, error) {
	src := filepath.Join(b.dir, "hello.go")
	if err := os.WriteFile(src, []byte("package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"hello\\n\") }\n"), 0o600); err != nil {
		return "", err
	}
	out := filepath.Join(b.dir, "hello")
	cmd := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, src)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, text)
	}
	return out, nil
}

func (b *bench) quiet(env []string, argv ...string) error {
	cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = b.dir
	var text bytes.Buffer
	cmd.Stderr = &text
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%v: %w: %s", argv, err, text.Bytes())
	}
	return nil
}

// pendingGrant runs a command that has to wait and returns the grant's id.
func (b *bench) pendingGrant(env []string, argv ...string) (string, error) {
	cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = append(os.Environ(), env...), b.dir
	out, err := cmd.Output()
	if err == nil || cmd.ProcessState.ExitCode() != 75 {
		return "", fmt.Errorf("%v: want exit code 75, got %v", argv, cmd.ProcessState)
	}
	var pending struct {
		Grant string `json:"grant"`
	}
	err = json.Unmarshal(out, &pending)
	return pending.Grant, err
}

func (b *bench) allow(in *instance, agent []string, vogt string) error {
	id, err := b.pendingGrant(agent, vogt, "run", "--json", "--", "true")
	if err != nil {
		return err
	}
	return in.call("POST", api.PathGrants+"/"+id+"/approve", in.ownerToken, api.Decide{GrantType: grant.Always}, nil)
}

// approveToRun measures how long a person's yes takes to become a finished
// command in a process that waits for it.
func (b *bench) approveToRun(in *instance, agent []string, vogt string) ([]time.Duration, error) {
	var times []time.Duration
	for i := range max(5, b.rounds/4) {
		argv := []string{vogt, "run", "--wait", "--reason", fmt.Sprint("round ", i), "--", "true", fmt.Sprint(i)}
		cmd := exec.CommandContext(b.ctx, argv[0], argv[1:]...)
		cmd.Env, cmd.Dir = append(os.Environ(), agent...), b.dir
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		id, err := in.waiting(b)
		if err != nil {
			return nil, err
		}
		time.Sleep(100 * time.Millisecond) // a person is never faster; the client waits by now
		t := time.Now()
		if err := in.call("POST", api.PathGrants+"/"+id+"/approve", in.ownerToken, api.Decide{GrantType: grant.Once}, nil); err != nil {
			return nil, err
		}
		if err := cmd.Wait(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(t))
	}
	return times, nil
}

func (in *instance) waiting(b *bench) (string, error) {
	for b.ctx.Err() == nil {
		var list api.List
		if err := in.call("GET", api.PathGrants+"?status=pending", in.ownerToken, nil, &list); err != nil {
			return "", err
		}
		if len(list.Data) == 1 {
			return list.Data[0].ID, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return "", b.ctx.Err()
}
