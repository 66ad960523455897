//go:build linux && (amd64 || arm64)

package differential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

const workerName = "vogt-differential-worker"

// TestMain lets the test binary also be the processes that it starts.
func TestMain(m *testing.M) {
	switch os.Args[0] {
	case workerName:
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case launcherName:
		fmt.Fprintln(os.Stderr, launch(os.Args[1:]))
		os.Exit(125)
	}
	os.Exit(m.Run())
}

// jail runs lines, as many at a time as it has workers.
type jail struct {
	idle chan *warder
}

// warder is this process's side of one worker.
type warder struct {
	cmd    *exec.Cmd
	in     *json.Encoder
	out    *json.Decoder
	stderr *bytes.Buffer
	closer func()
}

// newJail starts workers, or says what the machine lacks.
func newJail(t *testing.T, workers int) *jail {
	t.Helper()
	for _, name := range []string{"bash", "git"} {
		if _, err := exec.LookPath(name); err != nil {
			lacking(t, fmt.Sprintf("%s is not installed", name))
		}
	}
	prepared := prepare(t)
	outside, err := namespaces()
	if err != nil {
		lacking(t, "no namespaces: "+err.Error())
	}
	prepared.Outside = outside
	j := &jail{idle: make(chan *warder, workers)}
	for i := range workers {
		if os.Getuid() == 0 {
			// Its own, since the limit of processes is a user's, on the whole machine.
			prepared.UID = 61000 + os.Getpid()%250*16 + i%16
		}
		w, err := newWarder(prepared)
		if err != nil {
			lacking(t, "no namespaces: "+err.Error())
		}
		t.Cleanup(w.closer)
		j.idle <- w
	}
	return j
}

// lacking ends the test: it fails in continuous integration, where everything
// can be installed, and is left out elsewhere.
func lacking(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

func newWarder(prepared settings) (*warder, error) {
	w := &warder{cmd: exec.Command("/proc/self/exe"), stderr: &bytes.Buffer{}}
	w.cmd.Args = []string{workerName}
	w.cmd.Env = []string{"GOMAXPROCS=2"}
	w.cmd.Stderr = w.stderr
	w.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if uid := os.Getuid(); uid != 0 {
		w.cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		w.cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		w.cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	stdin, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	var once sync.Once
	w.closer = func() {
		once.Do(func() {
			stdin.Close()
			_ = w.cmd.Wait() // its end takes every process of its namespaces along
		})
	}
	w.in, w.out = json.NewEncoder(stdin), json.NewDecoder(stdout)
	var ready run
	err = w.in.Encode(prepared)
	if err == nil {
		err = w.out.Decode(&ready)
	}
	if err != nil {
		w.closer()
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(w.stderr.Bytes()))
	}
	return w, nil
}

// run runs one line. It may be called from several goroutines.
func (j *jail) run(line string) (run, error) {
	w := <-j.idle
	defer func() { j.idle <- w }()
	var result run
	err := w.in.Encode([]byte(line))
	if err == nil {
		err = w.out.Decode(&result)
	}
	if err == nil && result.Err != "" {
		err = fmt.Errorf("%s", result.Err)
	}
	if err != nil {
		return result, fmt.Errorf("running %q: %w: %s", line, err, bytes.TrimSpace(w.stderr.Bytes()))
	}
	return result, nil
}

const (
	lineLimit = 3 * time.Second // a line that waits for ever
	lineGrace = time.Second     // what a line left in the background
)
