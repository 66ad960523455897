package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"vogt/internal/execution/confine/plan"
)

// needGroup skips a test where this user can make no group, or none with the
// controllers.
func needGroup(t *testing.T, controllers ...string) {
	t.Helper()
	parent, have := groupParent("/proc/self")
	if parent == "" {
		t.Skip("this user can make no control group (cgroup v2) here")
	}
	for _, c := range controllers {
		if !slices.Contains(have, c) {
			t.Skipf("control groups in %s have no controller %s", parent, c)
		}
	}
}

// TestGroup looks at the control group from within the box.
func TestGroup(t *testing.T) {
	needGroup(t)
	for _, level := range []plan.Level{plan.Full, plan.Reduced} {
		b := newBox(t)
		b.request.Level = level
		output, out, err := b.run("ls /sys/fs/cgroup; grep ^0:: /proc/self/cgroup; find / -name 'vogt-box-*' 2>/dev/null")
		if err != nil || !slices.Contains(out.Group, "cgroup.kill") {
			t.Errorf("%s: %v, %+v", level, err, out)
		}
		if !strings.Contains(output, "ermission denied") || level == plan.Full && !strings.Contains(output, "0::/\n") || strings.Contains(output, "/vogt-box-") && level == plan.Full {
			t.Errorf("%s: the box sees its group:\n%s", level, output)
		}
		output, out, _ = b.run("for f in $(find /sys/fs/cgroup -name cgroup.procs); do echo $$ > $f && echo left; done")
		if strings.Contains(output, "left") {
			t.Errorf("%s: the box leaves its group:\n%s, %+v", level, output, out)
		}
	}
	// Each group has a mark until it is removed; those of other users' boxes are
	// elsewhere.
	dir, err := stateDir()
	if err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*"+groupEnding)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestGroupLeft removes the group of a box whose starter was killed, and ends what
// is in it, when the next box starts; that of a box that runs stays.
func TestGroupLeft(t *testing.T) {
	needGroup(t)
	h, err := hold()
	if err != nil {
		t.Fatal(err)
	}
	g := h.group(Limits{})
	if g == nil {
		t.Fatal("there is no group")
	}
	h.gate.Close()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.fd.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := newBox(t)
	b.must("true")
	if _, err := os.Stat(g.dir); err != nil {
		t.Errorf("the group of a box that runs is removed: %v", err)
	}
	g.fd.Close()
	g.mark.Close() // as the kernel does for one that is killed
	b.must("true")
	if _, err := os.Stat(g.dir); !os.IsNotExist(err) {
		t.Errorf("the group is left: %v", err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("what was in the group: %v", err)
	}
}

// TestGroupUnmarked removes the group of a box that was killed where its mark is gone,
// too, and none that is held or has something in it.
func TestGroupUnmarked(t *testing.T) {
	needGroup(t)
	var groups [3]*group
	for i := range groups {
		h, err := hold()
		if err != nil {
			t.Fatal(err)
		}
		if groups[i] = h.group(Limits{}); groups[i] == nil {
			t.Fatal("there is no group")
		}
		h.gate.Close()
		if err := os.Remove(groups[i].mark.Name()); err != nil {
			t.Fatal(err)
		}
		groups[i].mark.Close()
	}
	left, held, full := groups[0], groups[1], groups[2]
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(full.fd.Fd())}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	left.fd.Close()
	full.fd.Close()
	newBox(t).must("true")
	for g, want := range map[*group]bool{left: false, held: true, full: true} {
		if _, err := os.Stat(g.dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", g.dir, err, want)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	held.fd.Close()
	newBox(t).must("true")
	for _, g := range groups {
		if _, err := os.Stat(g.dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", g.dir, err)
		}
	}
}

// TestGroupLimits holds all processes of a box to one limit.
func TestGroupLimits(t *testing.T) {
	needGroup(t, "memory", "pids")
	b := newBox(t)
	b.request.Profile.Limits.Memory, b.request.Profile.Limits.Processes = 64<<20, 20
	output, out, err := b.run("for i in 1 2 3 4 5 6; do (head -c 20M /dev/zero | tail -c 20M | sleep 1) & done; wait; echo; for i in {1..40}; do sleep 1 & done; wait")
	if err != nil || !slices.Contains(out.Group, "memory.max") || !slices.Contains(out.Group, "pids.max") {
		t.Errorf("%v, %+v", err, out)
	}
	if !strings.Contains(output, "Resource temporarily unavailable") {
		t.Errorf("more processes than the limit:\n%s", output)
	}
}

// TestGroupParent finds the place for groups in trees of files.
func TestGroupParent(t *testing.T) {
	for _, tt := range []struct {
		name, cgroup, mount string
		files               map[string]string // below the mount point: what is in cgroup.subtree_control
		dir                 string
		controllers         string
	}{
		{"v1 alone", "5:pids:/a\n", "cgroup", nil, "", ""},
		{"no v2 mount", "0::/a\n", "cgroup", map[string]string{"a": ""}, "", ""},
		{"user session", "0::/user/app/term.scope\n", "cgroup2", map[string]string{"user": "cpu memory pids", "user/app": "memory pids cpu", "user/app/term.scope": ""}, "user/app", "memory pids cpu"},
		{"above gives more", "0::/user/app/term.scope\n", "cgroup2", map[string]string{"user": "cpu memory pids", "user/app": "pids", "user/app/term.scope": ""}, "user", "memory pids cpu"},
		{"none has controllers", "0::/user/x\n", "cgroup2", map[string]string{"user": "", "user/x": ""}, "user/x", ""},
		{"a name that leads out", "0::/../x\n", "cgroup2", map[string]string{"x": "memory pids cpu"}, "", ""},
	} {
		root, proc := t.TempDir(), t.TempDir()
		for name, text := range tt.files {
			dir := filepath.Join(root, name)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"cgroup.subtree_control": text, "cgroup.procs": "", "cgroup.controllers": ""} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		for file, text := range map[string]string{"cgroup": tt.cgroup, "mountinfo": "30 23 0:26 / " + root + " rw,nosuid shared:9 - " + tt.mount + " cgroup2 rw\n"} {
			if err := os.WriteFile(filepath.Join(proc, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want := ""
		if tt.dir != "" {
			want = filepath.Join(root, tt.dir)
		}
		if dir, have := groupParent(proc); dir != want || strings.Join(have, " ") != tt.controllers {
			t.Errorf("%s: %q %v, want %q %s", tt.name, dir, have, want, tt.controllers)
		}
	}
}

// TestGroupLimit writes what a group is to hold, and leaves the rest to processes.
func TestGroupLimit(t *testing.T) {
	l := Limits{Memory: 1 << 30, Processes: 10, CPUs: 1.5}
	for _, tt := range []struct {
		controllers string
		files       map[string]string
		left        plan.Limits
	}{
		{"memory pids cpu", map[string]string{"memory.max": "1073741824", "memory.swap.max": "0", "pids.max": "10", "cpu.max": "150000 100000"}, plan.Limits{}},
		{"pids", map[string]string{"pids.max": "10"}, plan.Limits{Memory: 1 << 30}},
		{"", nil, plan.Limits{Memory: 1 << 30, Processes: 10}},
	} {
		g := &group{dir: t.TempDir()}
		g.limit(l, strings.Fields(tt.controllers))
		got := map[string]string{}
		for _, name := range g.holds {
			text, err := os.ReadFile(filepath.Join(g.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			got[name] = string(text)
		}
		for name, text := range tt.files {
			if got[name] != text {
				t.Errorf("%q: %s is %q, want %q", tt.controllers, name, got[name], text)
			}
		}
		if p := g.grouped(&plan.Plan{Limits: plan.Limits{Memory: 1 << 30, Processes: 10}}); len(got) != len(tt.files) || p.Limits != tt.left || !p.Grouped {
			t.Errorf("%q: %v, left %+v", tt.controllers, got, p.Limits)
		}
	}
}
