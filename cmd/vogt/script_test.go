package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vogt/internal/client/clienttest"
	"vogt/internal/sshkey"
)

// installed builds the programs once, as they are installed: the transcripts
// start them hundreds of times, and a binary with tests and the race detector
// in it starts slowly.
var installed = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "vogt-bin-"); err != nil {
		return "", err
	}
	installedDir = dir
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "vogt/cmd/vogt", "vogt/cmd/vogtd", "vogt/cmd/vogt-confine")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, err
})

// installedDir is what TestMain has to remove.
var installedDir string

// program returns the path of an installed program.
func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

func TestMain(m *testing.M) {
	code := m.Run()
	if installedDir != "" {
		os.RemoveAll(installedDir)
	}
	os.Exit(code)
}

const ownerEmail = "owner@example.com"

// scripts is where the transcripts lie. They run against the authority in
// miniature and against the real one, so that the two cannot drift apart.
const scripts = "../../testdata/script"

func TestScripts(t *testing.T) {
	bin := filepath.Dir(program(t, "vogt"))
	testscript.Run(t, testscript.Params{
		Dir: scripts, Cmds: commands(),
		Setup: func(env *testscript.Env) error {
			public, err := setUp(env, bin)
			if err != nil {
				return err
			}
			a := clienttest.New(t)
			a.AddPerson(ownerEmail, "", public)
			env.Setenv("IDP", a.URL)
			return nil
		},
	})
}

func TestScriptsAgainstVogtd(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the control socket is a Unix socket")
	}
	bin := filepath.Dir(program(t, "vogtd"))
	// Those of the folder below need what only vogtd judges.
	var files []string
	for _, folder := range []string{scripts, filepath.Join(scripts, "vogtd")} {
		found, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no scripts in %s: %v", folder, err)
		}
		files = append(files, found...)
	}
	testscript.Run(t, testscript.Params{
		Files: files, Cmds: commands(),
		Setup: func(env *testscript.Env) error {
			public, err := setUp(env, bin)
			if err != nil {
				return err
			}
			issuer, err := startVogtd(env, filepath.Join(bin, "vogtd"), public)
			env.Setenv("IDP", issuer)
			return err
		},
	})
}

// setUp makes the owner's key and an empty home, and puts bin on the PATH.
func setUp(env *testscript.Env, bin string) (sshkey.Public, error) {
	pem, public, err := sshkey.Generate(rand.Reader, "owner")
	if err != nil {
		return public, err
	}
	key := filepath.Join(env.WorkDir, "owner-key")
	env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
	env.Setenv("OWNER", ownerEmail)
	env.Setenv("OWNER_KEY", key)
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("VOGT_HOME", filepath.Join(env.WorkDir, "home"))
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG", "VOGT_AGENT"} {
		env.Setenv(name, "")
	}
	return public, sshkey.WriteNew(key, pem, public)
}

// startVogtd starts a real authority with the owner, as a quick start does.
func startVogtd(env interface{ Defer(func()) }, vogtd string, owner sshkey.Public) (issuer string, err error) {
	// The path of a Unix socket is short (unix(7)).
	home, err := os.MkdirTemp("", "v")
	if err != nil {
		return "", err
	}
	env.Defer(func() { os.RemoveAll(home) })
	var log bytes.Buffer
	cmd := exec.Command(vogtd, "--listen", "127.0.0.1:0")
	cmd.Env = []string{"VOGT_HOME=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	env.Defer(func() {
		cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			cmd.Process.Kill()
			<-ended
		}
	})
	control := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(home, "data", "control.sock"))
	}}}
	var status struct {
		Issuer string `json:"issuer"`
	}
	limit := time.Now().Add(20 * time.Second)
	for {
		resp, err := control.Get("http://control/status")
		if err == nil {
			err = json.NewDecoder(resp.Body).Decode(&status)
			resp.Body.Close()
		}
		if err == nil && status.Issuer != "" {
			break
		}
		select {
		case exit := <-ended:
			ended <- exit
			return "", fmt.Errorf("vogtd ended: %v\n%s", exit, log.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(limit) {
			return "", fmt.Errorf("vogtd does not answer: %v", err)
		}
	}
	body, err := json.Marshal(map[string]string{"email": ownerEmail, "name": "Owner", "public_key": owner.String()})
	if err != nil {
		return "", err
	}
	resp, err := control.Post("http://control/owner", "application/json", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(resp.Body)
		return "", fmt.Errorf("owner: %s %s", resp.Status, text)
	}
	return status.Issuer, nil
}

// commands are what the transcripts use beside testscript's own.
func commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"exits": exits, "json": fromJSON, "await": await,
	}
}

// exits CODE PROGRAM [ARGUMENT…] demands an exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// fromJSON implements json VARIABLE PATH [!] PROGRAM [ARGUMENT…]: it runs the
// program and puts a part of the JSON that it prints into a variable. The path
// is names and indexes with dots between. After "!" the program must fail.
func fromJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: json VARIABLE PATH [!] PROGRAM [ARGUMENT…]")
	}
	variable, path, program := args[0], args[1], args[2:]
	fails := program[0] == "!"
	if fails {
		program = program[1:]
	}
	if err := ts.Exec(program[0], program[1:]...); (err != nil) != fails {
		ts.Fatalf("%s: %v", program[0], err)
	}
	value, err := part([]byte(ts.ReadFile("stdout")), path)
	ts.Check(err)
	ts.Setenv(variable, value)
}

// part takes a text out of JSON.
func part(data []byte, path string) (string, error) {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return "", err
	}
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return "", fmt.Errorf("no element %q of %d", name, len(in))
			}
			v = in[i]
		}
	}
	text, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s is %v, not a text", path, v)
	}
	return text, nil
}

// await VARIABLE waits until a request waits for the owner and puts its
// identifier into the variable.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await VARIABLE")
	}
	limit := time.Now().Add(20 * time.Second)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for ; ; <-look.C {
		ts.Check(ts.Exec("vogt", "grant", "inbox", "--json", "--limit", "1"))
		if id, err := part([]byte(ts.ReadFile("stdout")), "0.id"); err == nil {
			ts.Setenv(args[0], id)
			return
		}
		if time.Now().After(limit) {
			ts.Fatalf("nothing waits for the owner")
		}
	}
}
