package confinetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Variables by which the processes of a test know what they are.
const (
	programsVariable = "CONFINETEST_PROGRAMS" // what was built, as JSON
	jailVariable     = "CONFINETEST_JAIL"     // set: enter the jail; "in": it is around
	onceVariable     = "CONFINETEST_ONCE"     // one run of a runner, as JSON
	giftsVariable    = "CONFINETEST_GIFTS"    // folder with what root made for a user
)

// probePackage is the program that makes the attempts.
const probePackage = "vogt/internal/execution/confine/confinetest/probe"

// yard is where scenes are in a jail, in memory.
const yard = "/srv"

// Main runs the tests of a package that calls Run, and returns the exit code.
// It builds the probe and the programs that are named by their import paths;
// Program says where they are.
//
// For root, the tests run in mount, process, network, IPC and UTS namespaces, in
// which all disks are read-only and scenes are in memory: an attempt that
// succeeds more than it should changes nothing.
func Main(m *testing.M, programs ...string) int {
	if os.Getenv(jailVariable) == "enter" {
		return enter()
	}
	if os.Getenv(programsVariable) != "" {
		return m.Run()
	}
	folder, err := build(append(programs, probePackage))
	if err != nil {
		fmt.Fprintf(os.Stderr, "confinetest: %v\n", err)
		return 1
	}
	defer os.RemoveAll(folder)
	if os.Getuid() != 0 {
		return m.Run()
	}
	cmd := exec.Command("/proc/self/exe", arguments()...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), jailVariable+"=enter")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL, Setsid: true,
	}
	if err := cmd.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "confinetest: the tests in the jail: %v\n", err)
		return 1
	}
	return 0
}

// arguments are those of this test program without the files that the go
// command wants to have, which cannot be written in a jail.
func arguments() []string {
	var out []string
	for _, a := range os.Args[1:] {
		if name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "="); !slices.Contains([]string{"test.testlogfile", "test.outputdir", "test.coverprofile", "test.gocoverdir"}, name) {
			out = append(out, a)
		}
	}
	return out
}

// build makes the programs, and notes where they are for this process and those
// that it starts.
func build(packages []string) (folder string, err error) {
	folder, err = os.MkdirTemp("", sceneName)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(folder)
		}
	}()
	if err := os.Chmod(folder, 0o755); err != nil {
		return "", err
	}
	built := map[string]string{}
	for _, p := range packages {
		to := filepath.Join(folder, path.Base(p))
		cmd := exec.Command("go", "build", "-trimpath", "-o", to, p)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", p, err, out)
		}
		built[p] = to
	}
	return folder, note(built)
}

func note(built map[string]string) error {
	text, err := json.Marshal(built)
	if err != nil {
		return err
	}
	return os.Setenv(programsVariable, string(text))
}

func programs() (built map[string]string, err error) {
	err = json.Unmarshal([]byte(os.Getenv(programsVariable)), &built)
	return built, err
}

// Program returns the path of a program that Main built.
func Program(t testing.TB, packagePath string) string {
	t.Helper()
	built, err := programs()
	if err != nil || built[packagePath] == "" {
		t.Fatalf("%s was not built: call confinetest.Main in TestMain and name it there", packagePath)
	}
	return built[packagePath]
}

// enter makes the jail around this process, the first one in it, and runs the
// tests there.
func enter() int {
	if err := wall(); err != nil {
		fmt.Fprintf(os.Stderr, "confinetest: make the jail: %v\n", err)
		return 1
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), jailVariable+"=in", "TMPDIR="+yard, "HOME="+yard+"/root", "XDG_RUNTIME_DIR="+yard+"/root/run")
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintf(os.Stderr, "confinetest: start the tests in the jail: %v\n", err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// wall makes everything on a disk read-only, and folders in memory. What the
// kernel shows in /proc, /sys and /dev stays as it is: attempts only open it.
func wall() error {
	built, err := programs()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		point := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\134`, `\`).Replace(strings.Fields(line)[1])
		if point != "/" && slices.Contains([]string{"proc", "sys", "dev"}, strings.Split(point, "/")[1]) {
			continue
		}
		err := unix.MountSetattr(unix.AT_FDCWD, point, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("make %s read-only: %w", point, err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", yard, "tmpfs", 0, "mode=755,size=512m"); err != nil {
		return err
	}
	if err := move(built, filepath.Join(yard, sceneName+"programs")); err != nil {
		return err
	}
	for _, folder := range []string{"/tmp", "/run", "/dev/shm"} {
		if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=1777,size=64m"); err != nil {
			return fmt.Errorf("mount a folder in memory on %s: %w", folder, err)
		}
	}
	if err := os.MkdirAll(yard+"/root/run", 0o700); err != nil {
		return err
	}
	if err := standIn("/etc/passwd"); err != nil {
		return err
	}
	return loopback()
}

// move copies the programs to where the jail shows them.
func move(built map[string]string, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for p, from := range built {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		built[p] = filepath.Join(to, filepath.Base(from))
		if err := os.WriteFile(built[p], data, 0o755); err != nil {
			return err
		}
	}
	return note(built)
}

// standIn puts a writable copy over a file of the machine.
func standIn(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	copied := filepath.Join(yard, "root", filepath.Base(name))
	if err := os.WriteFile(copied, data, 0o644); err != nil {
		return err
	}
	return unix.Mount(copied, name, "", unix.MS_BIND, "")
}

func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// jailed reports whether this process may attack as the user that it is.
func jailed() bool { return os.Getuid() != 0 || os.Getenv(jailVariable) == "in" }

// gifts makes what only root can give to a user's scene: programs with more
// rights than who runs them.
func gifts(t testing.TB) string {
	t.Helper()
	folder := filepath.Join(yard, sceneName+"gifts")
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	for _, name := range []string{"setuid", "filecap"} {
		if err := copyFile(Program(t, probePackage), filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Chmod(filepath.Join(folder, "setuid"), 0o755|unix.S_ISUID); err != nil {
		t.Fatal(err)
	}
	netRaw := [20]byte{0: 1, 3: 2, 5: 0x20} // effective, version 2; CAP_NET_RAW permitted
	if err := unix.Setxattr(filepath.Join(folder, "filecap"), "security.capability", netRaw[:], 0); err != nil {
		t.Fatal(err)
	}
	return folder
}

func copyFile(from, to string, mode os.FileMode) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
