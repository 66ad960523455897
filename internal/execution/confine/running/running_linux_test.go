package running_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vogt/internal/execution/confine"
	"vogt/internal/execution/confine/confinetest"
	"vogt/internal/execution/confine/plan"
	"vogt/internal/execution/confine/running"
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(confinetest.Main(m, helperPackage))
}

const helperPackage = "vogt/cmd/vogt-confine"

// scene is a box of an agent, and what its command writes line by line.
type scene struct {
	t      *testing.T
	agent  running.Agent
	lines  *bufio.Scanner
	first  int // the first process
	work   string
	ended  chan confine.Outcome
	failed chan error
}

// begin starts a text of bash in a box that the agent has entered.
func begin(t *testing.T, agent running.Agent, text string, level ...plan.Level) *scene {
	t.Helper()
	s := &scene{t: t, agent: agent, ended: make(chan confine.Outcome, 1), failed: make(chan error, 1)}
	read, _ := confine.Builtin("default")
	profile, err := read()
	if err != nil {
		t.Fatal(err)
	}
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.work = work
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.lines = bufio.NewScanner(r)
	entered := make(chan error, 1)
	request := confine.Request{
		Profile: profile, Workspace: work, Home: t.TempDir(), State: t.TempDir(), Environ: []string{"PATH=" + os.Getenv("PATH")},
		Program: "/bin/bash", Argv: []string{"bash", "-c", text},
		Started: func(pid int, level plan.Level) error {
			_, err := agent.Enter(context.Background(), pid, level)
			s.first = pid
			entered <- err
			return err
		},
	}
	if len(level) > 0 {
		request.Level = level[0]
	}
	helper := confinetest.Program(t, helperPackage)
	var boxes sync.WaitGroup
	boxes.Go(func() {
		out, err := confine.Run(helper, request, confine.Streams{In: in, Out: w, Err: os.Stderr})
		in.Close()
		w.Close()
		s.ended <- out
		s.failed <- err
	})
	t.Cleanup(func() {
		if _, err := agent.Kill(context.Background()); err != nil {
			t.Error(err)
		}
		boxes.Wait()
		r.Close()
	})
	select {
	case err := <-entered:
		if err != nil && !errors.Is(err, running.ErrPaused) {
			t.Fatal(err)
		}
	case out := <-s.ended:
		t.Fatalf("no box: %v %+v", <-s.failed, out)
	}
	return s
}

// next is a line that the command writes.
func (s *scene) next() string {
	s.t.Helper()
	if !s.lines.Scan() {
		s.t.Fatalf("the command writes no more: %v; the box: %+v, %v", s.lines.Err(), <-s.ended, <-s.failed)
	}
	return s.lines.Text()
}

// size is that of a file of the workspace.
func (s *scene) size(name string) int64 {
	s.t.Helper()
	st, err := os.Stat(filepath.Join(s.work, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return st.Size()
}

// states are those of everybody in the box but the first process, from outside.
func (s *scene) states() (all []string) {
	s.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		s.t.Fatal(err)
	}
	parent, state := map[int]int{}, map[int]string{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		up, err := strconv.Atoi(fields[1])
		if err != nil {
			s.t.Fatal(err)
		}
		parent[pid], state[pid] = up, fields[0]
	}
	for pid := range parent {
		for up := parent[pid]; up > 1; up = parent[up] {
			if up == s.first {
				if !firstOfNamespace(pid) {
					all = append(all, state[pid])
				}
				break
			}
		}
	}
	return all
}

// firstOfNamespace reports whether a process is the box's own helper, where bwrap has
// started that.
func firstOfNamespace(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err == nil && strings.Contains(string(text), "\t1\nNSpgid:")
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestPauseStopsEverythingAtOnce(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"a loop that writes", `while :; do echo x >> ticks; [ -s told ] || { echo on; echo 1 > told; }; done`},
		// Each process starts the next one and ends: who looks for them one by one
		// is always late.
		{"a chain of forks", `cat > chain <<'X'
echo x >> ticks
[ -s told ] || { echo on; echo 1 > told; }
bash chain &
X
for i in 1 2 3 4 5 6 7 8; do bash chain; done; sleep 1000`},
		{"orphans of another session", `setsid bash -c 'while :; do echo x >> ticks; [ -s told ] || { echo on; echo 1 > told; }; done' & sleep 1000`},
		{"one that lets others go on", `bash -c 'while :; do kill -CONT -1; done' & while :; do echo x >> ticks; [ -s told ] || { echo on; echo 1 > told; }; done`},
	} {
		for _, level := range levels() {
			t.Run(c.name+"/"+string(level), func(t *testing.T) {
				agent := running.Agent{Folder: t.TempDir()}
				s := begin(t, agent, c.text, level)
				if got := s.next(); got != "on" {
					t.Fatalf("it says %q", got)
				}
				for round := range 3 {
					if n, err := agent.Pause(limited(t)); n != 1 || err != nil {
						t.Fatalf("round %d: %d boxes paused, %v", round, n, err)
					}
					written := s.size("ticks")
					states := s.states()
					if len(states) == 0 {
						t.Fatal("there is nobody in the box")
					}
					for _, state := range states {
						if !strings.Contains("TtZX", state) {
							t.Fatalf("round %d: processes are in the states %v", round, states)
						}
					}
					if now := s.size("ticks"); now != written {
						t.Fatalf("round %d: something wrote %d bytes", round, now-written)
					}
					if n, err := agent.Resume(limited(t)); n != 1 || err != nil {
						t.Fatalf("round %d: %d boxes go on, %v", round, n, err)
					}
				}
				if n, err := agent.Kill(limited(t)); n != 1 || err != nil {
					t.Fatalf("%d boxes killed, %v", n, err)
				}
				if out := <-s.ended; out.Code != 128+9 {
					t.Errorf("the box ended with %d", out.Code)
				}
				if left := s.states(); len(left) > 0 {
					t.Errorf("processes are left: %v", left)
				}
			})
		}
	}
}

// levels are those that can be tried here: bwrap makes boxes for ordinary users.
func levels() []plan.Level {
	if _, err := os.Stat("/usr/bin/bwrap"); err == nil && os.Getuid() != 0 {
		return []plan.Level{plan.Full, plan.Bwrap, plan.Reduced}
	}
	return []plan.Level{plan.Full, plan.Reduced}
}

func TestResumeGoesOn(t *testing.T) {
	agent := running.Agent{Folder: t.TempDir()}
	s := begin(t, agent, `for i in 1 2 3 4 5 6 7 8 9; do echo $i; done; mkfifo gate; echo ready; read < gate; echo never`)
	for range 10 {
		s.next()
	}
	if _, err := agent.Pause(limited(t)); err != nil {
		t.Fatal(err)
	}
	if n, err := agent.Resume(limited(t)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for _, state := range s.states() {
		if strings.Contains("Tt", state) {
			t.Errorf("somebody is stopped still: %v", s.states())
		}
	}
}

// A signal from within is not the order: what runs in the box cannot make its
// first process let others go on, nor show a wrong state.
func TestTheBoxCannotOrder(t *testing.T) {
	agent := running.Agent{Folder: t.TempDir()}
	s := begin(t, agent, `/usr/bin/perl -e 'syscall(234, 1, $_, 40) for 1..20'; sleep 0.5; kill -40 1; kill -41 1; echo vogt-box-stop > /proc/1/comm; kill -STOP 1; kill -9 1; echo still; sleep 1000`)
	if got := s.next(); got != "still" {
		t.Fatalf("it says %q", got)
	}
	if n, err := agent.Pause(limited(t)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for _, state := range s.states() {
		if !strings.Contains("TtZX", state) {
			t.Errorf("somebody runs: %v", s.states())
		}
	}
}

func TestNothingStartsWhilePaused(t *testing.T) {
	agent := running.Agent{Folder: t.TempDir()}
	if n, err := agent.Pause(limited(t)); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	s := begin(t, agent, `echo ran`)
	<-s.ended
	if err := <-s.failed; err == nil || !strings.Contains(err.Error(), running.ErrPaused.Error()) {
		t.Errorf("a box of a paused agent: %v", err)
	}
	if s.lines.Scan() {
		t.Errorf("its command ran: %q", s.lines.Text())
	}
	if _, err := agent.Resume(limited(t)); err != nil {
		t.Fatal(err)
	}
	again := begin(t, agent, `echo ran`)
	if got := again.next(); got != "ran" {
		t.Errorf("it says %q", got)
	}
}

// Boxes that begin while somebody pauses are stopped or not started.
func TestPauseAgainstStarts(t *testing.T) {
	agent := running.Agent{Folder: t.TempDir()}
	var scenes []*scene
	paused := make(chan error, 1)
	go func() {
		_, err := agent.Pause(context.Background())
		paused <- err
	}()
	for range 6 {
		scenes = append(scenes, begin(t, agent, `while :; do :; done`))
	}
	if err := <-paused; err != nil {
		t.Fatal(err)
	}
	for _, s := range scenes {
		for _, state := range s.states() {
			if !strings.Contains("TtZX", state) {
				t.Errorf("a box runs: %v", s.states())
			}
		}
	}
}

// A record of a process that is gone, of another boot or of another process that
// has the number now, is nobody's box.
func TestStaleRecords(t *testing.T) {
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	now := strings.TrimSpace(string(boot))
	pid := strconv.Itoa(other.Process.Pid)
	for _, c := range []struct{ name, record string }{
		{"another moment", `{"process":` + pid + `,"begun":1,"boot":"` + now + `","level":"full"}`},
		{"another boot", `{"process":` + pid + `,"begun":1,"boot":"x","level":"full"}`},
		{"nobody", `{"process":4194304,"begun":1,"boot":"` + now + `","level":"full"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			agent := running.Agent{Folder: t.TempDir()}
			file := filepath.Join(agent.Folder, "boxes", "1.json")
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.record), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, do := range []func(running.Agent, context.Context) (int, error){running.Agent.Pause, running.Agent.Kill} {
				if n, err := do(agent, limited(t)); n != 0 || err != nil {
					t.Errorf("%d boxes, %v", n, err)
				}
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("the record is kept")
			}
			if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err != nil || strings.Contains(string(stat), ") T ") || strings.Contains(string(stat), ") Z ") {
				t.Errorf("the other process was touched: %s %v", stat, err)
			}
		})
	}
}

// TestAsUser pauses boxes as an ordinary user, also those that the system's bwrap
// makes.
func TestAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the other tests are run as one already")
	}
	home, err := os.MkdirTemp("", "user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	const user = 1000
	if err := os.Chown(home, user, user); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^Test(PauseStops|ResumeGoes|TheBox|Nothing|PauseAgainst)", "-test.count=1", "-test.v", "-test.timeout=2m")
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "HOME="+home, "TMPDIR="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
