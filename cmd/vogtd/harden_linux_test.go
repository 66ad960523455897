package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// hardenRole makes the test binary play a part in TestMemoryIsClosed.
const hardenRole = "VOGT_TEST_HARDEN"

// TestHardenChild is no test of its own: it is the child of TestMemoryIsClosed.
func TestHardenChild(t *testing.T) {
	role, arg, _ := strings.Cut(os.Getenv(hardenRole), " ")
	switch role {
	case "":
		return
	case "closed":
		if err := harden(); err != nil {
			t.Fatal(err)
		}
		fallthrough
	case "open":
		fmt.Println("ready")
		bufio.NewReader(os.Stdin).ReadString('\n') // until the parent has looked
	case "look":
		_, err := os.OpenFile("/proc/"+arg+"/mem", os.O_RDWR, 0)
		fmt.Println("open:", err == nil)
	}
}

// TestMemoryIsClosed: another process of the same unprivileged user can open
// the memory of a process that has not hardened itself, and not that of one
// that has.
func TestMemoryIsClosed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to run processes as another user")
	}
	child := func(role string) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestHardenChild$", "-test.v=false")
		cmd.Env = []string{hardenRole + "=" + role}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		return cmd
	}
	for role, want := range map[string]string{"open": "open: true", "closed": "open: false"} {
		cmd := child(role)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%s: %q %v", role, line, err)
		}
		got, err := child("look " + strconv.Itoa(cmd.Process.Pid)).Output()
		if err != nil {
			t.Fatal(err)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got), want) {
			t.Errorf("%s: another process of the user sees %q, want %q", role, got, want)
		}
	}
}
