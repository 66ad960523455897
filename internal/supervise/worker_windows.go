package supervise

import (
	"net"
	"os"
	"os/exec"
	"strings"
)

// pass passes nothing: see the package comment.
func (p *parent) pass(*exec.Cmd) (*pipeLine, error) {
	return &pipeLine{Reader: strings.NewReader("")}, nil
}

// terminate kills: Windows has no signal that asks. The worker's database
// survives that, and `vogt down` asks by the control socket before.
func (w *worker) terminate() error { return w.cmd.Process.Kill() }

// Listener always returns false: sockets are not passed on Windows.
func Listener(string) (net.Listener, bool, error) { return nil, false, nil }

func readyPipe() (*os.File, error) { return nil, nil }
