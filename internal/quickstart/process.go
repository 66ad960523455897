package quickstart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// longestLog is the size at which the log is put aside before a start.
const longestLog = 16 << 20

func logFile(data string) string { return filepath.Join(data, "vogtd.log") }

// FindDaemon returns the absolute path of vogtd: beside the executable vogt
// itself, else on the PATH. A relative entry of the PATH is never followed.
func FindDaemon(vogt string) (string, error) {
	name := "vogtd" + exeSuffix
	if real, err := filepath.EvalSymlinks(vogt); err == nil {
		beside := filepath.Join(filepath.Dir(real), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", exitf(CodeUnavailable, "%s is neither beside %s nor on the PATH (%w); install both binaries into one folder", name, vogt, err)
	}
	return path, nil
}

// process is a vogtd that was started here.
type process struct {
	cmd    *exec.Cmd
	data   string
	mark   int64 // size of the log before
	done   chan struct{}
	result error // of cmd.Wait, after done
}

// start runs vogtd. Its goroutine ends with it.
func start(o Options) (*process, error) {
	args := []string{"--data", o.Paths.Data}
	if o.Listen != "" {
		args = append(args, "--listen", o.Listen)
	}
	if o.Bearer != "" {
		args = append(args, "--bearer-decisions", o.Bearer)
	}
	p := &process{cmd: exec.Command(o.Daemon, args...), data: o.Paths.Data, done: make(chan struct{})}
	p.cmd.Env = daemonEnv(o.Env)
	p.cmd.Dir = o.Paths.Data
	if o.Foreground {
		p.cmd.Stdout, p.cmd.Stderr = os.Stderr, os.Stderr
		p.cmd.SysProcAttr = attached()
	} else {
		log, err := openLog(o.Paths.Data)
		if err != nil {
			return nil, exitf(CodeUnavailable, "cannot write the log: %w", err)
		}
		defer log.Close()
		if info, err := log.Stat(); err == nil {
			p.mark = info.Size()
		}
		// Only files: no pipe of the caller stays open in the daemon.
		p.cmd.Stdout, p.cmd.Stderr = log, log
		p.cmd.SysProcAttr = detached()
	}
	if err := p.cmd.Start(); err != nil {
		return nil, exitf(CodeUnavailable, "cannot start the authority: %w", err)
	}
	go func() {
		defer close(p.done)
		p.result = p.cmd.Wait()
	}()
	return p, nil
}

// openLog opens the log for appending; a large one is put aside first.
func openLog(data string) (*os.File, error) {
	path := logFile(data)
	if info, err := os.Stat(path); err == nil && info.Size() > longestLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// daemonEnv is the part of the caller's environment that vogtd needs. Keys and
// tokens of other programs, and variables that change how programs load, stay
// out of a process that outlives the caller.
func daemonEnv(env []string) []string {
	names := []string{
		"HOME", "USER", "LOGNAME", "PATH", "TMPDIR", "TZ", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SystemRoot", "APPDATA", "LOCALAPPDATA", "AppData", "LocalAppData", "ProgramData", "USERPROFILE", "TEMP", "TMP",
	}
	prefixes := []string{"VOGT_", "XDG_", "LC_", "OTEL_"}
	var kept []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if slices.Contains(names, name) || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			kept = append(kept, e)
		}
	}
	return kept
}

// wait waits until the daemon answers on its control socket.
func (p *process) wait(ctx context.Context, control *Control, limit time.Duration) (Status, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		status, err := control.Status(ctx)
		if err == nil {
			return status, nil
		}
		if !errors.Is(err, ErrNotRunning) && ctx.Err() == nil {
			p.stop()
			return Status{}, exitf(CodeUnavailable, "the authority started, but its control socket cannot be used: %w%s", err, p.lastWords())
		}
		select {
		case <-tick.C:
		case <-p.done:
			return Status{}, p.ended()
		case <-late.C:
			p.stop()
			return Status{}, exitf(CodeUnavailable, "the authority did not serve within %v and was stopped%s", limit, p.lastWords())
		case <-ctx.Done():
			p.stop()
			return Status{}, context.Cause(ctx)
		}
	}
}

// ended tells why the daemon ended. A code that names its reason is passed on.
func (p *process) ended() error {
	if p.result == nil {
		return nil
	}
	code := CodeUnavailable
	if c := p.cmd.ProcessState.ExitCode(); c == CodeNotYet || c == CodeConfig {
		code = c
	}
	return exitf(code, "the authority ended (%v)%s", p.result, p.lastWords())
}

// foundTaken reports whether the daemon has ended because another holds its
// port or its data.
func (p *process) foundTaken() bool {
	select {
	case <-p.done:
	default:
		return false
	}
	code := p.cmd.ProcessState.ExitCode()
	return code == CodeUnavailable || code == CodeNotYet
}

// stop ends the daemon and waits for it: asked first, killed after a while.
func (p *process) stop() {
	terminate(p.cmd.Process)
	select {
	case <-p.done:
		return
	case <-time.After(15 * time.Second):
	}
	_ = p.cmd.Process.Kill() // it fails only when the process has ended
	<-p.done
}

// lastWords quotes the last lines that the daemon wrote into its log.
func (p *process) lastWords() string {
	if p.cmd.Stderr == os.Stderr {
		return "; see its messages above"
	}
	const most = 8 << 10
	path := logFile(p.data)
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	from := p.mark
	if info, err := f.Stat(); err == nil {
		from = max(from, info.Size()-most)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, from, most))
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return fmt.Sprintf(". It wrote nothing into %s", path)
	}
	lines = lines[max(0, len(lines)-10):]
	return fmt.Sprintf(". The end of %s:\n  %s", path, bytes.Join(lines, []byte("\n  ")))
}
