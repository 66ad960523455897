//go:build unix

package terminal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"
)

func TestIsTerminal(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	if err := pty.Setsize(slave, &pty.Winsize{Rows: 5, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.Close()
	for _, tt := range []struct {
		name  string
		file  *os.File
		is    bool
		width int
	}{{"terminal", slave, true, 77}, {"pipe", r, false, 0}, {"closed", w, false, 0}, {"none", nil, false, 0}} {
		if got := IsTerminal(tt.file); got != tt.is {
			t.Errorf("IsTerminal(%s) = %v", tt.name, got)
		}
		if got := Width(tt.file); got != tt.width {
			t.Errorf("Width(%s) = %d, want %d", tt.name, got, tt.width)
		}
	}
}

const helperVariable = "VOGT_TEST_TTY"

// TestMain lets the test binary play the program that asks: it needs a session
// of its own to have a controlling terminal.
func TestMain(m *testing.M) {
	mode := os.Getenv(helperVariable)
	if mode == "" {
		os.Exit(m.Run())
	}
	if err := ask(mode); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// ask prompts on the controlling terminal and reports on standard output, which
// is a pipe.
func ask(mode string) error {
	tty, err := OpenTTY()
	if err != nil {
		return err
	}
	defer tty.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch mode {
	case "raw":
		if _, err := term.MakeRaw(int(tty.in.Fd())); err != nil {
			return err
		}
	case "cancel": // when the test says so
		go func() {
			bufio.NewReader(os.Stdin).ReadString('\n')
			cancel()
		}()
	case "cancelled":
		cancel()
	}
	answer, err := tty.Prompt(ctx, "digits? ")
	switch {
	case errors.Is(err, io.EOF):
		fmt.Println("end")
	case errors.Is(err, context.Canceled):
		fmt.Println("cancelled")
	case err != nil:
		return err
	default:
		fmt.Printf("answer %q\n", answer)
	}
	return nil
}

// start starts the helper on a new controlling terminal, with pipes for its
// standard input and output, and returns when the question has been read.
func start(t *testing.T, mode string) (master *os.File, stdin io.WriteCloser, finish func() string) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), helperVariable+"="+mode, "GORACE=atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.ExtraFiles = []*os.File{slave}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	if stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	t.Cleanup(func() { cmd.Process.Kill() })
	question := make([]byte, len("digits? "))
	if _, err := io.ReadFull(master, question); err != nil || string(question) != "digits? " {
		t.Fatalf("the terminal shows %q, %v", question, err)
	}
	return master, stdin, func() string {
		cmd.Wait() // what the helper says tells success from failure
		return strings.TrimSpace(out.String())
	}
}

func TestPrompt(t *testing.T) {
	tests := []struct{ name, mode, typed, want string }{
		{"line", "line", "12 34\n", `answer "12 34"`},
		{"empty line", "line", "\n", `answer ""`},
		{"Enter key", "line", "1\r", `answer "1"`},
		{"corrected by the terminal", "line", "13\x7f2\n", `answer "12"`},
		{"end of input", "line", "\x04", "end"},
		{"raw mode, Enter", "raw", "1234\r", `answer "1234"`},
		{"raw mode, Ctrl-C", "raw", "12\x03", "end"},
		{"raw mode, Ctrl-D", "raw", "\x04", "end"},
		{"raw mode, endless", "raw", strings.Repeat("a", maxLine), "error: terminal: the answer is longer than 4096 bytes"},
		{"no time left", "cancelled", "", "cancelled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			master, _, finish := start(t, tt.mode)
			for rest := tt.typed; rest != ""; { // a terminal takes only so much at once
				n := min(512, len(rest))
				if _, err := io.WriteString(master, rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if got := finish(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPromptEndsWithContext(t *testing.T) {
	_, stdin, finish := start(t, "cancel")
	io.WriteString(stdin, "\n")
	if got := finish(); got != "cancelled" {
		t.Errorf("got %q", got)
	}
}

func TestOpenTTYWithout(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), helperVariable+"=line", "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "there is no terminal to ask on") {
		t.Errorf("got %q, %v", out, err)
	}
}
