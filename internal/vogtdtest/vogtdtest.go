// Package vogtdtest runs the real vogtd for tests: the binary, built once for a
// test run, on a home of its own and a loopback port.
//
// It owns building, starting, killing, starting again on the same data, and the
// end of that process, and looks at the end of every test whether the audit log
// verifies and whether vogtd logged a failure. It kills only what it started.
// It leaves out the calls themselves, which are those of package authoritytest,
// and what answers mean.
package vogtdtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
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

	"vogt/internal/audit"
	"vogt/internal/authoritytest"
	"vogt/internal/quickstart"
)

// folderVariable names the folder for binaries to the tests, and to further
// processes of the same test binary.
const folderVariable = "VOGTDTEST_BINARIES"

// Main runs the tests of a package and removes the binaries afterwards. A
// package that uses this one has
//
//	func TestMain(m *testing.M) { os.Exit(vogtdtest.Main(m)) }
func Main(m *testing.M) int {
	if os.Getenv(folderVariable) != "" {
		return m.Run() // a further process of a test, whose folder this is
	}
	dir, err := os.MkdirTemp("", "vogtd-")
	if err == nil {
		err = os.Chmod(dir, 0o711) // a test may run the binary as another user
	}
	if err == nil {
		err = os.Setenv(folderVariable, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vogtdtest:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	return m.Run()
}

var (
	normal = sync.OnceValues(func() (string, error) { return build("vogtd") })
	armed  = sync.OnceValues(func() (string, error) { return build("vogtd-fault", "-tags=vogtfault") })
)

// Binary returns the path of vogtd, with fault points armed or without.
func Binary(t testing.TB, faults bool) string {
	t.Helper()
	get := normal
	if faults {
		get = armed
	}
	path, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(name string, flags ...string) (string, error) {
	dir := os.Getenv(folderVariable)
	if dir == "" {
		return "", errors.New("vogtdtest: there is no folder for binaries: call vogtdtest.Main in the package's TestMain")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	// Under its name it is complete.
	part := path + "." + strconv.Itoa(os.Getpid())
	args := append([]string{"build", "-buildvcs=false", "-o", part}, flags...)
	cmd := exec.Command("go", append(args, "vogt/cmd/vogtd")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("vogtdtest: go %s: %w\n%s", strings.Join(cmd.Args[1:], " "), err, out)
	}
	return path, os.Rename(part, path)
}

// Options say what is started. The zero value is vogtd as `vogt up` starts it,
// on a new home and a free port.
type Options struct {
	Home   string   // VOGT_HOME; "" makes one
	Config string   // content of vogtd.toml; "" leaves it as it is
	Args   []string // further flags
	Env    []string // further variables, NAME=VALUE
	// Serve runs `vogtd serve` without its parent. The test holds the listening
	// socket, as systemd would, so that the port is the same in every life. It
	// needs descriptors to be passed and does not work on Windows.
	Serve bool
	// Fault arms the fault points: the first life dies at this one, NAME or
	// NAME:N. It needs Serve, since a parent would pass it to every worker.
	Fault string
	// Command, when set, changes the command before it is started.
	Command func(*exec.Cmd)
}

// Daemon is a running vogtd, or one that a test has killed.
type Daemon struct {
	// API makes calls to it and has its issuer and the origin of its pages.
	API  *authoritytest.Server
	Home string

	t        testing.TB
	opts     Options
	socket   *net.TCPListener // with Serve
	admit    func()           // ends the refusal of calls between two lives
	control  *quickstart.Control
	status   quickstart.Status // of the worker that was seen last
	cmd      *exec.Cmd
	ended    chan struct{} // closed when cmd has ended
	running  bool
	expected []string
}

// Start starts vogtd and waits until it answers on its control socket. When the
// test ends, so does vogtd: it must then stop when asked, with code 0, its
// audit log must verify, and its own log must show no failure but those of
// [Daemon.Expect]. With a fault it may die before it answers; API is then unset
// until [Daemon.Restart].
func Start(t testing.TB, o Options) *Daemon {
	t.Helper()
	d := &Daemon{t: t, opts: o, Home: o.Home}
	if d.Home == "" {
		d.Home = NewHome(t)
	}
	if o.Fault != "" && !o.Serve {
		t.Fatal("vogtdtest: Fault needs Serve")
	}
	if o.Config != "" {
		WriteConfig(t, d.Home, o.Config)
	}
	if o.Serve {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		d.socket = l.(*net.TCPListener)
	}
	d.control = quickstart.NewControl(d.Data())
	t.Cleanup(d.finish)
	if err := d.launch(o.Fault); err != nil && o.Fault == "" {
		t.Fatalf("vogtd did not start: %v", err)
	}
	return d
}

// NewHome makes a folder for VOGT_HOME whose path is short enough for the
// control socket in it.
func NewHome(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if len(dir)+len("/data/control.sock") <= maxSocketPath {
		return dir
	}
	// The folder of a test bears the test's name, which may be long.
	dir, err := os.MkdirTemp("", "vogt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// maxSocketPath is the longest path of a socket on all systems (unix(4)).
const maxSocketPath = 103

// WriteConfig writes vogtd.toml into a home.
func WriteConfig(t testing.TB, home, content string) (path string) {
	t.Helper()
	dir := filepath.Join(home, "config")
	path = filepath.Join(dir, "vogtd.toml")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Data is the data directory.
func (d *Daemon) Data() string { return filepath.Join(d.Home, "data") }

// LogFile is where vogtd writes what it has to say.
func (d *Daemon) LogFile() string { return filepath.Join(d.Home, "log") }

// Log returns what vogtd has written so far, in all its lives.
func (d *Daemon) Log() string {
	d.t.Helper()
	b, err := os.ReadFile(d.LogFile())
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

// Expect says that lines with this text in vogtd's log are no failure.
func (d *Daemon) Expect(text string) { d.expected = append(d.expected, text) }

// environment is vogtd's: the test's own without what would configure it.
func environment(home string, more []string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "VOGT_") || strings.HasPrefix(e, "LISTEN_")
	})
	env = append(env, "VOGT_HOME="+home, "VOGT_MANAGEMENT_TOKEN="+authoritytest.ManagementToken)
	return append(env, more...)
}

// command is vogtd with these options, not yet started.
func command(t testing.TB, o Options, home, listen string) *exec.Cmd {
	t.Helper()
	var args []string
	if o.Serve {
		args = append(args, "serve")
	}
	args = append(append(args, "--listen", listen), o.Args...)
	cmd := exec.Command(Binary(t, o.Fault != ""), args...)
	cmd.Env = environment(home, o.Env)
	endWithTest(cmd)
	if o.Command != nil {
		o.Command(cmd)
	}
	return cmd
}

// launch starts one life and waits until it answers. The error tells that it
// ended instead.
func (d *Daemon) launch(fault string) error {
	d.t.Helper()
	listen := "127.0.0.1:0"
	if d.status.Listen != "" {
		listen = d.status.Listen // clients and tokens know the port
	}
	cmd := command(d.t, d.opts, d.Home, listen)
	if fault != "" {
		cmd.Env = append(cmd.Env, "VOGT_FAULT="+fault)
	}
	log, err := os.OpenFile(d.LogFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if d.socket != nil {
		file := d.pass(cmd)
		defer file.Close()
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // cmd.ProcessState tells how it ended
	}()
	if d.socket != nil {
		d.refuseAfter(ended)
	}
	d.cmd, d.ended, d.running = cmd, ended, true
	old := d.status.PID
	Await(d.t, "vogtd answers on its control socket", func() bool {
		select {
		case <-ended:
			d.running = false
			return true
		default:
		}
		s, err := d.control.Status(context.Background())
		if err == nil && s.PID != old {
			d.status = s
			return true
		}
		return false
	})
	if !d.running {
		return &endError{cmd.ProcessState, d.Log()}
	}
	if d.API == nil {
		d.API = authoritytest.Remote(d.t, d.status.Issuer, d.status.Pages, d.status.Listen)
	}
	return nil
}

// pass gives the test's socket to cmd, as sd_listen_fds(3) has it and as
// vogtd's parent names itself.
func (d *Daemon) pass(cmd *exec.Cmd) *os.File {
	d.t.Helper()
	if d.admit != nil {
		d.admit() // whoever calls from now on is served by this life
	}
	file, err := d.socket.File()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{file}
	cmd.Env = append(cmd.Env, "LISTEN_FDS=1", "LISTEN_FDNAMES=http", "VOGT_PARENT_PID="+strconv.Itoa(os.Getpid()))
	return file
}

// refuseAfter closes every connection to the test's socket from the end of a
// life until admit is called, so that no call waits for a vogtd that a test has
// killed. Its goroutines end with admit.
func (d *Daemon) refuseAfter(ended <-chan struct{}) {
	stop, done := make(chan struct{}), make(chan struct{})
	d.admit = sync.OnceFunc(func() { close(stop); <-done })
	go func() {
		defer close(done)
		select {
		case <-ended:
		case <-stop:
			return
		}
		// A listener of its own: that of the test is in whatever mode the
		// process left it in.
		file, err := d.socket.File()
		if err != nil {
			return
		}
		l, err := net.FileListener(file)
		file.Close()
		if err != nil {
			return
		}
		go func() { <-stop; l.Close() }()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
}

// endError is a vogtd that ended instead of serving.
type endError struct {
	state *os.ProcessState
	log   string
}

func (e *endError) Error() string { return fmt.Sprintf("it ended: %v\n%s", e.state, e.log) }

// limit is how long a condition may take on a slow machine.
const limit = time.Minute

// Await waits until the condition holds, and fails the test if it does not
// within a minute.
func Await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited for a minute in vain: %s", what)
		}
	}
}

// Owner makes the first person through the control socket, with a new SSH key,
// and logs it in.
func (d *Daemon) Owner() *authoritytest.Principal {
	d.t.Helper()
	p := &authoritytest.Principal{
		Client: authoritytest.Client{S: d.API}, Email: authoritytest.OwnerEmail, Name: "Owner", Key: d.API.NewKey(authoritytest.OwnerEmail),
	}
	if err := d.control.MakeOwner(context.Background(), quickstart.Owner{Email: p.Email, Name: p.Name, PublicKey: p.Key.Line}); err != nil {
		d.t.Fatal(err)
	}
	return p.Login()
}

// Control returns the client of its control socket.
func (d *Daemon) Control() *quickstart.Control { return d.control }

// Status asks the worker that runs now; ok is false when none answers.
func (d *Daemon) Status() (s quickstart.Status, ok bool) {
	s, err := d.control.Status(context.Background())
	if err == nil {
		d.status = s
	}
	return s, err == nil
}

// AwaitWorker waits for another worker than that with the process id old.
func (d *Daemon) AwaitWorker(old int) quickstart.Status {
	d.t.Helper()
	var s quickstart.Status
	Await(d.t, "another worker answers", func() (ok bool) {
		select {
		case <-d.ended:
			d.t.Fatalf("vogtd ended instead of starting another worker: %v", d.cmd.ProcessState)
		default:
		}
		s, ok = d.Status()
		return ok && s.PID != old
	})
	return s
}

// PID is the process that was started: the parent or, with Serve, the worker.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Signal sends a signal to the process that was started.
func (d *Daemon) Signal(s os.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// KillWorker kills the worker, as kill -9 does, waits until it has ended and
// returns its process id. A parent starts another.
func (d *Daemon) KillWorker() (pid int) {
	d.t.Helper()
	s, ok := d.Status()
	if !ok {
		s = d.AwaitWorker(0)
	}
	d.Expect("the worker died; it is started again")
	p, err := os.FindProcess(s.PID)
	if err == nil {
		err = p.Kill()
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Fatal(err)
	}
	d.await(s.PID)
	d.API.Disconnect()
	return s.PID
}

// Kill kills the process that was started, as kill -9 does, and waits until it
// and the worker have ended.
func (d *Daemon) Kill() {
	d.t.Helper()
	if err := d.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Fatal(err)
	}
	d.Wait()
}

// Wait waits until the process that was started and the worker have ended and
// returns how the former did.
func (d *Daemon) Wait() *os.ProcessState {
	d.t.Helper()
	Await(d.t, "vogtd ends", func() bool {
		select {
		case <-d.ended:
			return true
		default:
			return false
		}
	})
	d.running = false
	if d.API != nil {
		d.await(d.status.PID)
		d.API.Disconnect()
	}
	return d.cmd.ProcessState
}

// Ended is closed when the process that was started has ended.
func (d *Daemon) Ended() <-chan struct{} { return d.ended }

// await waits until a process has ended, whoever collects it.
func (d *Daemon) await(pid int) {
	d.t.Helper()
	Await(d.t, fmt.Sprintf("process %d ends", pid), func() bool { return !alive(pid) })
}

// Stop asks vogtd to stop and waits until it has.
func (d *Daemon) Stop() {
	d.t.Helper()
	if !d.running {
		return
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Fatal(err)
	}
	if state := d.Wait(); state.ExitCode() != 0 {
		d.t.Errorf("vogtd, asked to stop, ended with %v", state)
	}
}

// Restart starts another life on the same home and port, without a fault. What
// runs is stopped first.
func (d *Daemon) Restart() {
	d.t.Helper()
	d.Stop()
	d.opts.Fault = ""
	const unavailable = 69
	var err error
	Await(d.t, "the port is free again", func() bool {
		// Without a socket that the test holds, a connection from elsewhere
		// may have been given the port for a moment.
		var early *endError
		err = d.launch("")
		return !errors.As(err, &early) || early.state.ExitCode() != unavailable
	})
	if err != nil {
		d.t.Fatalf("vogtd did not start again: %v", err)
	}
}

// Records returns the audit log as GET /api/audit/export gives it, verified
// against every checkpoint that clients were shown.
func (d *Daemon) Records() []audit.Record {
	d.t.Helper()
	body := d.API.Manager().Get("/api/audit/export").Want(200).Body
	if _, err := audit.VerifyExport(bytes.NewReader(body), d.status.LogKey, d.API.Seen(d.status.LogKey)); err != nil {
		d.t.Fatalf("the audit log does not verify: %v", err)
	}
	e, _, err := audit.ReadExport(bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	var all []audit.Record
	if err := e.Records(func(r audit.Record) error { all = append(all, r); return nil }); err != nil {
		d.t.Fatal(err)
	}
	return all
}

// finish ends vogtd with the test and looks for failures.
func (d *Daemon) finish() {
	if d.running && !d.t.Failed() {
		d.Records()
	}
	d.end()
	if d.admit != nil {
		d.admit()
	}
	log, err := os.ReadFile(d.LogFile())
	if err != nil {
		d.t.Error(err)
	}
	for line := range strings.Lines(string(log)) {
		if failure(line) && !slices.ContainsFunc(d.expected, func(text string) bool { return strings.Contains(line, text) }) {
			d.t.Errorf("vogtd logged a failure: %s", line)
		}
	}
	if d.t.Failed() {
		d.t.Logf("vogtd's log:\n%s", log)
	}
}

// end stops what runs, by force where asking does not help.
func (d *Daemon) end() {
	if !d.running {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // where it cannot be asked, it is killed below
	select {
	case <-d.ended:
		if code := d.cmd.ProcessState.ExitCode(); code != 0 {
			d.t.Errorf("vogtd, asked to stop, ended with %v", d.cmd.ProcessState)
		}
	case <-time.After(limit / 2):
		d.t.Errorf("vogtd did not stop within %s", limit/2)
		_ = d.cmd.Process.Kill()
		<-d.ended
	}
}

// failure reports whether a line of the log tells of one.
func failure(line string) bool {
	for _, sign := range []string{"level=ERROR", `"level":"ERROR"`, "panic: ", "fatal error: ", "WARNING: DATA RACE"} {
		if strings.Contains(line, sign) {
			return true
		}
	}
	return false
}

// Refusal is a vogtd that would not serve.
type Refusal struct {
	Code   int
	Output string
}

// Refuse runs vogtd where it is expected to refuse, and returns how it did.
func Refuse(t testing.TB, o Options) Refusal {
	t.Helper()
	home := o.Home
	if home == "" {
		home = NewHome(t)
	}
	if o.Config != "" {
		WriteConfig(t, home, o.Config)
	}
	cmd := command(t, o, home, "127.0.0.1:0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // a worker may hold the pipe
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // the state tells
	if !timer.Stop() {
		t.Fatalf("vogtd serves instead of refusing:\n%s", out.String())
	}
	return Refusal{cmd.ProcessState.ExitCode(), out.String()}
}
