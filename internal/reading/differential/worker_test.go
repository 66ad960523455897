//go:build linux && (amd64 || arm64)

package differential

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// settings are what a worker is told before the first line.
type settings struct {
	UID      int               // whose rights lines have; 0 where there is only one user
	Outside  map[string]string // the test's own namespaces, by kind
	Bash     string            // the real one
	Project  []file            // made anew for each line
	Programs []file            // binDir and plantedDir, which no line can change
	Real     []string
	GitExec  string // git --exec-path
	Limit    time.Duration
	Grace    time.Duration
}

// file is a file, folder or link of the prepared project.
type file struct {
	Path string
	Mode os.FileMode
	Data []byte // a link's target
}

// run is what one line did.
type run struct {
	Parses   bool // bash -n accepts it
	TimedOut bool
	Status   string
	Events   []event
	Err      string // the worker could not run it
}

// worker is the first process of its namespaces. It runs one line at a time.
type worker struct {
	settings
	real  map[string]bool
	fresh bool // the project is as it was made
}

// work serves lines from in until it ends. It never returns to the tests.
func work(in io.Reader, out io.Writer) error {
	runtime.LockOSThread() // ptrace belongs to the thread that started the line
	decoder := json.NewDecoder(bufio.NewReader(in))
	encoder := json.NewEncoder(out)
	w := worker{real: map[string]bool{}}
	if err := decoder.Decode(&w.settings); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	for _, name := range w.Real {
		w.real[name] = true
	}
	if err := w.alone(); err != nil {
		return err
	}
	if err := w.enclose(); err != nil {
		return err
	}
	if err := enclosed(); err != nil {
		return err
	}
	if err := encoder.Encode(run{Status: "ready"}); err != nil {
		return err
	}
	for {
		var line []byte
		if err := decoder.Decode(&line); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		result, err := w.run(string(line))
		if err != nil {
			result.Err = err.Error()
		}
		if err := encoder.Encode(result); err != nil {
			return err
		}
	}
}

// namespaces are those of the calling process that a worker must not share.
func namespaces() (map[string]string, error) {
	found := map[string]string{}
	for _, kind := range []string{"mnt", "pid", "net", "ipc", "uts", "user"} {
		name, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return nil, err
		}
		found[kind] = name
	}
	return found, nil
}

// alone makes sure that mounting, removing and killing concern nobody else.
func (w *worker) alone() error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("the worker is process %d, not the first of its own namespace: nothing is run", pid)
	}
	mine, err := namespaces()
	if err != nil {
		return err
	}
	if w.UID > 0 {
		delete(mine, "user") // another user is enough
	}
	for kind, name := range mine {
		if outside := w.Outside[kind]; outside == "" || outside == name {
			return fmt.Errorf("the worker shares the %s namespace %s with the test: nothing is run", kind, name)
		}
	}
	return nil
}

// enclosed makes sure that nothing but an own /tmp can be written to.
func enclosed() error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	own := false
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		fields := strings.Fields(line) // proc_pid_mountinfo(5)
		if len(fields) < 10 {
			return fmt.Errorf("mountinfo: %q is not understood: nothing is run", line)
		}
		if fields[4] == root {
			own = strings.Contains(line, " - tmpfs ")
		} else if !slices.Contains(strings.Split(fields[5], ","), "ro") {
			return fmt.Errorf("%s can be written to: nothing is run", fields[4])
		}
	}
	if !own {
		return fmt.Errorf("%s is not an own file system: nothing is run", root)
	}
	return nil
}

// enclose turns the new mount namespace into a read-only view of the machine
// with an empty /tmp, /dev and /run.
func (w *worker) enclose() error {
	step := func(what string, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	if err := step("private mounts", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
		return err
	}
	if err := step("/proc", unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")); err != nil {
		return err
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := step("read-only mounts", unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &readOnly)); err != nil {
		return err
	}
	if err := step("/dev", devices()); err != nil {
		return err
	}
	for _, dir := range []string{"/run", "/var/run"} {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			if err := step(dir, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "size=4k")); err != nil {
				return err
			}
		}
	}
	// Start files of the machine are no matter of the line.
	for _, name := range []string{"/etc/profile", "/etc/bash.bashrc", "/etc/bashrc"} {
		if _, err := os.Stat(name); err == nil {
			if err := step(name, unix.Mount(os.DevNull, name, "", unix.MS_BIND, "")); err != nil {
				return err
			}
		}
	}
	if err := step(root, unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64m,mode=1777")); err != nil {
		return err
	}
	unix.Umask(0)
	for _, dir := range []string{binDir, plantedDir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	for _, f := range w.Programs {
		if err := f.make(-1); err != nil {
			return err
		}
	}
	for _, dir := range []string{binDir, plantedDir} {
		if err := step(dir, unix.Mount(dir, dir, "", unix.MS_BIND, "")); err != nil {
			return err
		}
		if err := step(dir, unix.MountSetattr(unix.AT_FDCWD, dir, 0, &readOnly)); err != nil {
			return err
		}
	}
	return nil
}

// devices mounts a /dev that has only harmless ones. It is built under /tmp,
// which is covered afterwards.
func devices() error {
	if err := unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID, "size=64k,mode=755"); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o666); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+name, filepath.Join(root, name), "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			return err
		}
	}
	if err := unix.Mount(root, "/dev", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/dev", 0, &readOnly); err != nil {
		return err
	}
	return unix.Unmount(root, unix.MNT_DETACH)
}

// make creates f for the given user; -1 leaves the owner.
func (f file) make(uid int) error {
	var err error
	switch {
	case f.Mode.IsDir():
		err = os.Mkdir(f.Path, f.Mode.Perm())
	case f.Mode&os.ModeSymlink != 0:
		err = os.Symlink(string(f.Data), f.Path)
	default:
		err = os.WriteFile(f.Path, f.Data, f.Mode.Perm())
	}
	if err != nil {
		return err
	}
	if uid > 0 {
		return os.Lchown(f.Path, uid, uid)
	}
	return nil
}

// prepare makes the project anew, unless the last line left it alone.
func (w *worker) prepare() error {
	if w.fresh {
		return nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := filepath.Join(root, entry.Name())
		if name == binDir || name == plantedDir {
			continue
		}
		if err := os.RemoveAll(name); err != nil {
			return err
		}
	}
	for _, f := range w.Project {
		if err := f.make(w.UID); err != nil {
			return err
		}
	}
	w.fresh = true
	return nil
}

var environment = []string{
	"PATH=" + binDir, "HOME=" + homeDir, "PWD=" + workDir, "LC_ALL=C", "TERM=dumb", "USER=user", "LOGNAME=user",
	"SHELL=/bin/sh", "GIT_CONFIG_NOSYSTEM=1",
}

const launcherName = "vogt-differential-launcher"

func (w *worker) run(line string) (run, error) {
	var result run
	if err := w.prepare(); err != nil {
		return result, fmt.Errorf("preparing the project: %w", err)
	}
	attr := &syscall.SysProcAttr{Setsid: true}
	if w.UID > 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(w.UID), Gid: uint32(w.UID)}
	}
	var err error
	if result.Parses, err = w.parses(line, attr); err != nil {
		return result, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return result, err
	}
	defer null.Close()
	traced := *attr
	traced.Ptrace = true
	pid, err := syscall.ForkExec("/proc/self/exe",
		[]string{launcherName, w.Bash, "--norc", "--noprofile", "-c", "--", line},
		&syscall.ProcAttr{Dir: workDir, Env: environment, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}, Sys: &traced})
	if err != nil {
		return result, fmt.Errorf("starting bash: %w", err)
	}
	// This process is the first of its namespace: -1 is every other one.
	kill := func() { _ = unix.Kill(-1, unix.SIGKILL) }
	expired := make(chan struct{})
	limit := time.AfterFunc(w.Limit, func() { close(expired); kill() })
	defer limit.Stop()
	t := tracer{may: w.may, kill: kill, grace: w.Grace}
	if err := t.follow(pid); err != nil {
		kill()
		return result, err
	}
	select {
	case <-expired:
		result.TimedOut = true
	default:
	}
	if len(t.events) == 0 {
		return result, fmt.Errorf("the launcher did not become bash: status %#x", int(t.status))
	}
	for _, e := range t.events {
		if len(e.Chain) > 0 { // else it is the launcher, which becomes the shell
			result.Events = append(result.Events, e)
			w.fresh = w.fresh && (!e.changes() || strings.HasPrefix(e.Path, "/dev/"))
		}
	}
	result.Status = fmt.Sprintf("exit %d", t.status.ExitStatus())
	if t.status.Signaled() {
		result.Status = t.status.Signal().String()
	}
	return result, nil
}

// parses tells whether bash accepts the line. It is asked again when it was
// ended by a signal, which says nothing.
func (w *worker) parses(line string, attr *syscall.SysProcAttr) (bool, error) {
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), w.Limit)
		parse := exec.CommandContext(ctx, w.Bash, "--norc", "--noprofile", "-n", "-c", "--", line)
		parse.Dir, parse.Env, parse.SysProcAttr = workDir, environment, attr
		var complaints bytes.Buffer
		parse.Stderr = &complaints
		err := parse.Run()
		cancel()
		var failed *exec.ExitError
		switch {
		case err == nil:
			// Its status is 0 for what is wrong within [[ ]]; warnings look different.
			return !bytes.Contains(complaints.Bytes(), []byte(": -c: line ")), nil
		case !errors.As(err, &failed):
			return false, fmt.Errorf("bash -n: %w", err)
		case failed.Exited():
			return false, nil
		}
	}
	return false, errors.New("bash -n was ended by a signal three times")
}

// may tells what a line may really do. Programs with an absolute path outside
// of the prepared folders run only if they are among the harmless ones. The
// file systems are read-only and the network is empty besides.
func (w *worker) may(e event) bool {
	switch e.Op {
	case opConnect:
		return false
	case opSignal:
		return !strings.HasSuffix(e.Path, " to 1") // the worker
	}
	if len(e.Chain) == 0 || e.Op != opExec {
		return true
	}
	if strings.HasPrefix(e.Path, root+"/") || strings.HasPrefix(e.Path, "/proc/self/fd/") {
		return true
	}
	dir, name := path.Split(e.Path)
	switch dir {
	case "/bin/", "/usr/bin/":
		return w.real[name]
	}
	return w.GitExec != "" && strings.HasPrefix(e.Path, w.GitExec+"/")
}

// launch gives up every right, sets limits and becomes the program of args.
func launch(args []string) error {
	const mega = 1 << 20
	limit := func(resource int, value uint64) error {
		if err := unix.Prlimit(0, resource, &unix.Rlimit{Cur: value, Max: value}, nil); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
		return nil
	}
	for resource, value := range map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_CPU: 1, unix.RLIMIT_FSIZE: 4 * mega, unix.RLIMIT_NOFILE: 128,
		unix.RLIMIT_NPROC: 100, unix.RLIMIT_MEMLOCK: 64 * 1024,
	} {
		if err := limit(resource, value); err != nil {
			return err
		}
	}
	runtime.LockOSThread() // rights and filter are the thread's
	for capability := range uintptr(unix.CAP_LAST_CAP + 1) {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0) // fails where there is nothing to drop
	}
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	if err := confine(); err != nil {
		return err
	}
	environ := os.Environ()
	if err := limit(unix.RLIMIT_DATA, 256*mega); err != nil { // last, since this program has more
		return err
	}
	return syscall.Exec(args[0], args, environ)
}
