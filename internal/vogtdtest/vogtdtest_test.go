package vogtdtest

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestLives takes one daemon through every kind of end, with the parent and,
// where sockets can be passed, without it.
func TestLives(t *testing.T) {
	for _, serve := range []bool{false, true} {
		if serve && runtime.GOOS == "windows" {
			continue
		}
		d := Start(t, Options{Serve: serve})
		owner := d.Owner()
		agent := d.API.Agent(owner, "helper")
		id := agent.Ask("uptime").ID
		d.Kill()
		if _, err := agent.Try("GET", authoritytest.GrantPath(id), nil); err == nil {
			t.Error("a killed vogtd answers")
		}
		d.Restart()
		if serve {
			d.Restart() // stops what runs
		} else {
			d.AwaitWorker(d.KillWorker())
		}
		owner.Approve(id, grant.Once, 0)
		d.API.Consume(id, agent.Token(id)).Want(200)
		kinds := map[string]int{}
		for _, r := range d.Records() {
			kinds[r.Type]++
		}
		if kinds["intent"] != 1 || kinds["decision"] != 1 || kinds["request"] != 1 {
			t.Errorf("the log has %v", kinds)
		}
		if !strings.Contains(d.Log(), "msg=serving") {
			t.Errorf("vogtd's log: %s", d.Log())
		}
		d.Stop()
	}
}

func TestRefuse(t *testing.T) {
	r := Refuse(t, Options{Config: "nothing_of_ours = 1\n"})
	if r.Code != 78 || !strings.Contains(r.Output, "nothing_of_ours") {
		t.Errorf("got %+v", r)
	}
}

func TestFailure(t *testing.T) {
	for line, want := range map[string]bool{
		`time=2026-01-01T00:00:00Z level=INFO msg=serving data=/tmp/TestPanic/data`: false,
		`time=2026-01-01T00:00:00Z level=WARN msg="the disk is nearly full"`:        false,
		`time=2026-01-01T00:00:00Z level=ERROR msg="a call failed"`:                 true,
		`{"time":"2026-01-01T00:00:00Z","level":"ERROR","msg":"a call failed"}`:     true,
		"panic: runtime error: index out of range":                                  true,
		"fatal error: concurrent map writes":                                        true,
		"vogtd: cannot listen on 127.0.0.1:8648":                                    false,
	} {
		if failure(line) != want {
			t.Errorf("%s: %v, want %v", line, !want, want)
		}
	}
}
