//go:build unix

package quickstart

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vogt/internal/api"
	"vogt/internal/config"
)

// The roles of this test binary. Their variables begin with VOGT_ because
// vogtd's environment is filtered.
const (
	roleVariable = "VOGT_TEST_ROLE"
	failVariable = "VOGT_TEST_FAIL"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "vogtd":
		os.Exit(fakeDaemon(os.Args[1:]))
	case "up":
		os.Exit(upProcess())
	case "stranger":
		os.Exit(stranger())
	}
	var err error
	if buildFolder, err = os.MkdirTemp("", "vogt-build"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(buildFolder)
	os.Exit(code)
}

// fakeDaemon is a vogtd that has a control socket and a health page and keeps
// its owner in a file.
func fakeDaemon(args []string) int {
	flag := func(name, otherwise string) string {
		if i := slices.Index(args, name); i >= 0 {
			return args[i+1]
		}
		return otherwise
	}
	switch fail := os.Getenv(failVariable); fail {
	case "":
	case "hang":
		select {}
	default:
		fmt.Fprintln(os.Stderr, "fake vogtd: the moon is in the wrong place")
		code, _ := strconv.Atoi(fail)
		return code
	}
	data := flag("--data", "")
	l, err := net.Listen("tcp", flag("--listen", "127.0.0.1:0"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 69
	}
	f := &fakeAuthority{
		data: data, listen: l.Addr().String(), bearer: flag("--bearer-decisions", "none"),
		logKey: "vogt+1+" + strings.Repeat("A", 43), digits: "4711",
	}
	if key := os.Getenv("VOGT_TEST_LOG_KEY"); key != "" {
		f.logKey = key
	}
	socket := filepath.Join(data, SocketName)
	os.Remove(socket)
	control, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 70
	}
	go http.Serve(l, http.HandlerFunc(f.health))
	http.Serve(control, f.control(func() {
		os.Remove(socket)
		syscall.Kill(os.Getpid(), syscall.SIGKILL) // quicker than the end of a binary with race detection
	}))
	return 0
}

// fakeAuthority answers as the contract of the control socket says. Its page
// is the method visit.
type fakeAuthority struct {
	mu             sync.Mutex
	data, listen   string
	bearer, logKey string
	digits         string
	state          string
	tries          int
}

func (f *fakeAuthority) issuer() string { return "http://" + f.listen }

func (f *fakeAuthority) health(w http.ResponseWriter, r *http.Request) {
	if r.Host != f.listen || r.URL.Path != api.PathHealth {
		http.Error(w, "no", http.StatusMisdirectedRequest)
		return
	}
	json.NewEncoder(w).Encode(api.Health{Status: "ok", Issuer: f.issuer(), Bearer: f.bearer, LogKey: f.logKey})
}

func (f *fakeAuthority) ownerFile() string { return filepath.Join(f.data, "owner") }

func (f *fakeAuthority) owner() string {
	text, _ := os.ReadFile(f.ownerFile())
	return string(text)
}

func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(api.Problem{Title: http.StatusText(status), Status: status, Detail: detail})
}

func (f *fakeAuthority) control(shutdown func()) http.Handler {
	mux := http.NewServeMux()
	locked := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			h(w, r)
		}
	}
	mux.HandleFunc("GET /status", locked(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(Status{
			PID: os.Getpid(), Issuer: f.issuer(), Pages: "http://vogt.localhost:1", Version: "1", SetUp: f.owner() != "", Listen: f.listen, Epoch: 1, LogKey: f.logKey,
		})
	}))
	mux.HandleFunc("POST /owner", locked(func(w http.ResponseWriter, r *http.Request) {
		var o Owner
		json.NewDecoder(r.Body).Decode(&o)
		line := o.Email + " " + o.PublicKey
		switch have := f.owner(); have {
		case "":
			os.WriteFile(f.ownerFile(), []byte(line), 0o600)
			w.WriteHeader(http.StatusCreated)
		case line:
		default:
			problem(w, http.StatusConflict, "there is an owner already")
			return
		}
		json.NewEncoder(w).Encode(map[string]string{"email": o.Email})
	}))
	mux.HandleFunc("POST /setup", locked(func(w http.ResponseWriter, _ *http.Request) {
		f.state, f.tries = "offered", 0
		w.WriteHeader(http.StatusCreated)
		json.NewEncoder(w).Encode(Link{URL: "http://vogt.localhost:1/setup/secret", ExpiresAt: time.Now().Add(10 * time.Minute).Unix()})
	}))
	mux.HandleFunc("GET /setup", func(w http.ResponseWriter, r *http.Request) {
		state := func() string { f.mu.Lock(); defer f.mu.Unlock(); return f.state }
		wait, _ := strconv.Atoi(r.URL.Query().Get("wait"))
		before := state()
		over := time.After(time.Duration(wait) * time.Second)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for waiting := wait > 0; waiting && state() == before; {
			select {
			case <-tick.C:
			case <-over:
				waiting = false
			case <-r.Context().Done():
				return
			}
		}
		json.NewEncoder(w).Encode(SetupState{State: state(), Email: f.owner()})
	})
	mux.HandleFunc("POST /setup/digits", locked(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Digits string }
		json.NewDecoder(r.Body).Decode(&body)
		if f.state != "opened" || body.Digits != f.digits {
			if f.tries++; f.tries == 3 {
				f.state = "expired"
				problem(w, http.StatusGone, "This link is no longer good")
				return
			}
			problem(w, http.StatusForbidden, fmt.Sprintf("%d tries left", 3-f.tries))
			return
		}
		f.state = "confirmed"
		json.NewEncoder(w).Encode(SetupState{State: f.state})
	}))
	mux.HandleFunc("POST /shutdown", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		if fl, ok := w.(http.Flusher); ok {
			fl.Flush()
		}
		time.AfterFunc(10*time.Millisecond, shutdown)
	})
	return mux
}

// home is a folder for one test whose path is short enough for a socket, and
// an end for whatever runs on it.
func home(t *testing.T) config.Paths {
	t.Helper()
	dir, err := os.MkdirTemp("", "vogt")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := config.FindPaths(func(name string) string {
		if name == "VOGT_HOME" {
			return dir
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	paths.System = filepath.Join(dir, "etc")
	t.Cleanup(func() {
		if _, err := Down(context.Background(), paths.Data); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return paths
}

var errNoTerminal = errors.New("no terminal in this test")

// options of a call without terminal. Out and Err are buffers.
func options(paths config.Paths, extra ...string) (Options, *bytes.Buffer, *bytes.Buffer) {
	var out, errOut bytes.Buffer
	return Options{
		Paths: paths, Daemon: os.Args[0], Listen: "127.0.0.1:0",
		Env:        append(os.Environ(), append(extra, roleVariable+"=vogtd")...),
		Terminal:   func() (Terminal, error) { return nil, errNoTerminal },
		Out:        &out,
		Err:        &errOut,
		StartLimit: 20 * time.Second,
	}, &out, &errOut
}

func code(err error) int {
	var e *ExitError
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return -1
	}
	return 0
}

var alice = &Owner{Email: "alice@example.org", Name: "Alice", PublicKey: "ssh-ed25519 AAAA alice"}

func TestHeadless(t *testing.T) {
	paths := home(t)
	o, out, told := options(paths)
	owner := *alice
	owner.KeyFile = "/home/alice/.ssh/id"
	o.Headless = &owner
	if err := Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"for programs, on standard output:\n", "Next:\n  vogt login alice@example.org --key /home/alice/.ssh/id\n  vogt agent add NAME "} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, told)
		}
	}
	addr := strings.TrimSpace(out.String())
	if !strings.HasPrefix(addr, "http://127.0.0.1:") || strings.HasSuffix(addr, ":0") || strings.Contains(addr, "\n") {
		t.Fatalf("standard output is not the one address: %q", out.String())
	}
	status, err := NewControl(paths.Data).Status(t.Context())
	if err != nil || !status.SetUp {
		t.Fatalf("status %+v, %v", status, err)
	}
	client, err := config.Load[config.Client](filepath.Join(paths.Config, "vogt.toml"))
	if err != nil || client.Authority != addr || client.AuthorityKey == "" {
		t.Fatalf("the client does not know the authority: %+v, %v", client, err)
	}
	for path, want := range map[string]os.FileMode{paths.Data: 0o700, logFile(paths.Data): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %o", path, info.Mode(), err, want)
		}
	}
	if sid, err := unix.Getsid(status.PID); err != nil || sid != status.PID {
		t.Errorf("vogtd has not left the caller's session: %d, %v", sid, err)
	}

	t.Run("again", func(t *testing.T) {
		o, again, errOut := options(paths)
		o.Headless = alice
		if err := Up(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if again.String() != out.String() || !strings.Contains(errOut.String(), "runs already") {
			t.Fatalf("got %q and %q", again, errOut)
		}
	})
	t.Run("without terminal, since it is set up", func(t *testing.T) {
		o, _, _ := options(paths)
		if err := Up(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("another owner", func(t *testing.T) {
		o, _, _ := options(paths)
		o.Headless = &Owner{Email: "mallory@example.org"}
		if err := Up(t.Context(), o); code(err) != CodeConfig {
			t.Fatalf("got %v", err)
		}
		if _, err := NewControl(paths.Data).Status(t.Context()); err != nil {
			t.Fatalf("an authority that ran before was stopped: %v", err)
		}
	})
	t.Run("other settings", func(t *testing.T) {
		o, _, _ := options(paths)
		o.Listen, o.Bearer = "127.0.0.1:9", "high"
		err := Up(t.Context(), o)
		want := "vogt down && vogt up --listen 127.0.0.1:9 --bearer-decisions high"
		if code(err) != CodeConfig || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v, want %q", err, want)
		}
	})
	t.Run("foreground", func(t *testing.T) {
		o, _, _ := options(paths)
		o.Foreground = true
		if err := Up(t.Context(), o); code(err) != CodeNotYet {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("down and up on the same address", func(t *testing.T) {
		if ran, err := Down(t.Context(), paths.Data); !ran || err != nil {
			t.Fatal(ran, err)
		}
		if ran, err := Down(t.Context(), paths.Data); ran || err != nil {
			t.Fatal(ran, err)
		}
		o, again, _ := options(paths)
		o.Listen, o.JSON = "", true
		if err := Up(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		var r Report
		if err := json.Unmarshal(again.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.State != "started" || r.Issuer != addr || !r.SetUp || r.LogKey != client.AuthorityKey || r.Bearer != "none" {
			t.Fatalf("%+v", r)
		}
	})
}

func TestNoTerminalNoKey(t *testing.T) {
	paths := home(t)
	o, out, _ := options(paths)
	err := Up(t.Context(), o)
	if code(err) != CodeConfig {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"no controlling terminal", "no --owner-key", "--headless --owner EMAIL --owner-key FILE.pub"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("message lacks %q: %v", want, err)
		}
	}
	if out.Len() > 0 {
		t.Errorf("an address was printed: %q", out)
	}
	if _, err := NewControl(paths.Data).Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("an authority without owner was left running: %v", err)
	}
}

func TestNoWait(t *testing.T) {
	paths := home(t)
	o, out, errOut := options(paths)
	o.NoWait = true
	if err := Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "http://127.0.0.1:") || !strings.Contains(errOut.String(), "no owner yet") {
		t.Fatalf("got %q and %q", out, errOut)
	}
}

func TestDaemonThatDoesNotServe(t *testing.T) {
	tests := []struct {
		fail string
		code int
		want string
	}{
		{"1", CodeUnavailable, "the moon is in the wrong place"},
		{"69", CodeUnavailable, "exit status 69"},
		{"75", CodeNotYet, "the moon is in the wrong place"},
		{"78", CodeConfig, "the moon is in the wrong place"},
		{"hang", CodeUnavailable, "did not serve within"},
	}
	for _, test := range tests {
		t.Run(test.fail, func(t *testing.T) {
			t.Parallel()
			paths := home(t)
			o, _, _ := options(paths, failVariable+"="+test.fail)
			if test.fail == "hang" {
				o.StartLimit = 50 * time.Millisecond
			}
			os.MkdirAll(paths.Data, 0o700)
			os.WriteFile(logFile(paths.Data), []byte("words of yesterday\n"), 0o600)
			err := Up(t.Context(), o)
			if code(err) != test.code || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "yesterday") {
				t.Fatalf("got %d, %v", code(err), err)
			}
		})
	}
}

func TestDaemonMissing(t *testing.T) {
	o, _, _ := options(home(t))
	o.Daemon = filepath.Join(t.TempDir(), "vogtd")
	if err := Up(t.Context(), o); code(err) != CodeUnavailable {
		t.Fatalf("got %v", err)
	}
}

func TestPinnedKeyIsNotReplaced(t *testing.T) {
	paths := home(t)
	o, _, _ := options(paths)
	o.Headless = alice
	if err := Up(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, err := Down(t.Context(), paths.Data); err != nil {
		t.Fatal(err)
	}
	o, _, _ = options(paths, "VOGT_TEST_LOG_KEY=vogt+2+"+strings.Repeat("B", 43))
	err := Up(t.Context(), o)
	if code(err) != CodeConfig || !strings.Contains(err.Error(), "authority_key") {
		t.Fatalf("a changed log key is accepted: %v", err)
	}
}

func TestAnotherAuthorityIsNotReplaced(t *testing.T) {
	paths := home(t)
	os.MkdirAll(paths.Config, 0o700)
	os.WriteFile(filepath.Join(paths.Config, "vogt.toml"), []byte("authority = \"https://vogt.example.org\"\n"), 0o600)
	o, _, _ := options(paths)
	err := Up(t.Context(), o)
	if code(err) != CodeConfig || !strings.Contains(err.Error(), "https://vogt.example.org") {
		t.Fatalf("got %v", err)
	}
	if _, err := NewControl(paths.Data).Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Fatal("an authority was started nevertheless")
	}
}

// TestTwoUps: calls at once make one authority.
func TestTwoUps(t *testing.T) {
	paths := home(t)
	var wg sync.WaitGroup
	states := make(chan string, 4)
	for range cap(states) {
		wg.Go(func() {
			o, out, _ := options(paths)
			o.Headless, o.JSON = alice, true
			var r Report
			if err := Up(t.Context(), o); err != nil {
				t.Error(err)
			} else if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Error(err)
			}
			states <- r.State
		})
	}
	wg.Wait()
	close(states)
	count := map[string]int{}
	for s := range states {
		count[s]++
	}
	if count["started"] != 1 || count["running"] != cap(states)-1 {
		t.Fatalf("states %v", count)
	}
}

// TestNoPipeStaysOpen: a caller that reads `vogt up` to its end gets there
// while vogtd still runs.
func TestNoPipeStaysOpen(t *testing.T) {
	paths := home(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=up", "GORACE=atexit_sleep_ms=0", "VOGT_HOME="+filepath.Dir(paths.Data), "A_SECRET=x")
	out, err := cmd.CombinedOutput() // returns only when all copies of the pipe are closed
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	status, err := NewControl(paths.Data).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", status.PID))
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	for _, fd := range fds {
		target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", status.PID, fd.Name()))
		if n, _ := strconv.Atoi(fd.Name()); n <= 2 && target != os.DevNull && target != logFile(paths.Data) {
			t.Errorf("descriptor %s of vogtd is %s", fd.Name(), target)
		}
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", status.PID))
	if err != nil || bytes.Contains(env, []byte("A_SECRET")) || !bytes.Contains(env, []byte("VOGT_HOME")) {
		t.Errorf("environment of vogtd: %q, %v", env, err)
	}
}

func upProcess() int {
	paths, err := config.FindPaths(os.Getenv)
	if err == nil {
		paths.System = filepath.Join(paths.Data, "none")
		env := append(os.Environ(), roleVariable+"=vogtd")
		err = Up(context.Background(), Options{
			Paths: paths, Daemon: os.Args[0], Listen: "127.0.0.1:0", Env: env, Headless: alice, Out: os.Stdout, Err: os.Stderr,
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestForeground: vogtd stays with the caller, and the end of the caller's
// context ends it.
func TestForeground(t *testing.T) {
	paths := home(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o, _, _ := options(paths)
	r, w := io.Pipe()
	o.Out, o.Foreground, o.Headless = w, true, alice
	result := make(chan error, 1)
	go func() { result <- Up(ctx, o) }()
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	status, err := NewControl(paths.Data).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if sid, _ := unix.Getsid(status.PID); sid == status.PID {
		t.Error("vogtd left the session")
	}
	cancel()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(status.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Fatalf("vogtd outlives the foreground call: %v", err)
	}
}

func TestFindDaemon(t *testing.T) {
	dir := t.TempDir()
	beside := filepath.Join(dir, "bin", "vogtd")
	os.MkdirAll(filepath.Dir(beside), 0o755)
	vogt := filepath.Join(dir, "bin", "vogt")
	link := filepath.Join(dir, "vogt")
	os.WriteFile(vogt, nil, 0o755)
	os.Symlink(vogt, link)

	t.Setenv("PATH", ".")
	t.Chdir(dir)
	os.WriteFile("vogtd", []byte("#!/bin/sh\n"), 0o755)
	if got, err := FindDaemon(vogt); err == nil {
		t.Errorf("found %s by a relative entry of the PATH", got)
	}
	t.Setenv("PATH", "/nonexistent:"+dir)
	if got, err := FindDaemon(vogt); got != filepath.Join(dir, "vogtd") || err != nil {
		t.Errorf("on the PATH: %s, %v", got, err)
	}
	os.WriteFile(beside, []byte("#!/bin/sh\n"), 0o755)
	for _, self := range []string{vogt, link} {
		if got, err := FindDaemon(self); got != beside || err != nil {
			t.Errorf("beside %s: %s, %v", self, got, err)
		}
	}
}

func TestDaemonEnv(t *testing.T) {
	got := daemonEnv([]string{"HOME=/h", "LD_PRELOAD=/x.so", "AWS_SECRET_ACCESS_KEY=s", "VOGT_HOME=/v", "XDG_DATA_HOME=/d", "GODEBUG=x", "HOMEX=1", "HTTPS_PROXY=p"})
	want := []string{"HOME=/h", "VOGT_HOME=/v", "XDG_DATA_HOME=/d", "HTTPS_PROXY=p"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}
