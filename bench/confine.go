package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vogt/internal/execution/confine"
)

// confineRounds is how many runs of a box there are for each one of another
// measurement: the differences are a few milliseconds.
const confineRounds = 5

// bwrap is the way that the others are compared with, where it is installed.
const bwrap = "bwrap"

// boxed is a way to run a command.
type boxed struct {
	name string
	run  func(argv []string) error
}

// confinement measures how long a command takes in a box that does nothing, and
// without one, in turns, so that a slow moment of the machine meets all of them.
func (b *bench) confinement() error {
	workspace, home := filepath.Join(b.dir, "home", "work"), filepath.Join(b.dir, "home")
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		return err
	}
	if out, err := exec.Command("git", "init", "-q", workspace).CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	ways, missing, err := b.ways(workspace, home)
	if err != nil {
		return err
	}
	commands := [][]string{{"/bin/true"}, {"/bin/ls"}}
	rounds := confineRounds * b.rounds
	fmt.Printf("\n## Boxes\n\nStart to end of a command in a workspace with one small repository, %d runs each, in turns, as uid %d.\n", rounds, os.Getuid())
	for _, argv := range commands {
		times := make([][]time.Duration, len(ways))
		for round := range rounds + 1 {
			for i, way := range ways {
				t := time.Now()
				if err := way.run(argv); err != nil {
					return fmt.Errorf("%s: %w", way.name, err)
				}
				if round > 0 { // the first one fills caches
					times[i] = append(times[i], time.Since(t))
				}
			}
			if err := b.ctx.Err(); err != nil {
				return err
			}
		}
		fmt.Printf("\n| `%s` | median ms | p95 ms | × bare | over bare, ms | × bwrap |\n|---|---|---|---|---|---|\n", argv[0])
		bare := median(times[0])
		other := slices.IndexFunc(ways, func(w boxed) bool { return w.name == bwrap })
		for i, way := range ways {
			m := median(times[i])
			beside := "" // of each round by itself, as the machine has slow moments
			if other >= 0 {
				beside = fmt.Sprintf("%.2f", medianRatio(times[i], times[other]))
			}
			fmt.Printf("| %s | %.2f | %.2f | %.1f | %.2f | %s |\n", way.name, ms(m), ms(percentile(times[i], 95)), float64(m)/float64(bare), ms(m-bare), beside)
		}
	}
	for _, name := range missing {
		fmt.Printf("\nNot measured: %s\n", strings.TrimSpace(name))
	}
	if err := b.boxMemory(workspace, append(os.Environ(), "HOME="+home, "VOGT_HOME="+filepath.Join(home, "vogt"))); err != nil {
		return err
	}
	return b.proxyCost()
}

// ways are the boxes to compare, no box first, and the names of those that this
// machine lacks or that do not work on it.
func (b *bench) ways(workspace, home string) (ways []boxed, missing []string, err error) {
	environ := append(os.Environ(), "HOME="+home, "VOGT_HOME="+filepath.Join(home, "vogt"))
	outside := func(name string, before ...string) {
		run := func(argv []string) error {
			line := append(slices.Clip(before), argv...)
			cmd := exec.CommandContext(b.ctx, line[0], line[1:]...)
			cmd.Dir, cmd.Env = workspace, environ
			var text bytes.Buffer
			cmd.Stderr = &text
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%w: %s", err, text.Bytes())
			}
			return nil
		}
		if err := run([]string{"/bin/true"}); err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", name, err))
			return
		}
		ways = append(ways, boxed{name, run})
	}
	outside("no box")
	outside("vogt confine", filepath.Join(b.bin, "vogt"), "confine", "--")
	parse, _ := confine.Builtin("default")
	profile, err := parse()
	if err != nil {
		return nil, nil, err
	}
	ways = append(ways, boxed{"in a process that runs (a daemon)", func(argv []string) error { return b.inProcess(profile, workspace, home, argv) }})
	outside(bwrap, "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", workspace, workspace,
		"--unshare-all", "--die-with-parent", "--new-session")
	environ = nil // these want to find what they keep in the user's own home
	outside("srt", "srt")
	outside("codex sandbox", "codex", "sandbox", "-P", ":workspace", "--")
	return ways, missing, nil
}

// inProcess runs a command in a box as a daemon does.
func (b *bench) inProcess(profile *confine.Profile, workspace, home string, argv []string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	out, err := confine.Run(filepath.Join(b.bin, "vogt-confine"), confine.Request{
		Profile: profile, Workspace: workspace, Home: home, State: filepath.Join(home, "vogt", "data"),
		Program: argv[0], Argv: argv, Environ: os.Environ(),
	}, confine.Streams{In: null, Out: null, Err: os.Stderr})
	if err == nil && (out.Code != 0 || len(out.Changed) > 0) {
		err = fmt.Errorf("exit code %d, changed %v", out.Code, out.Changed)
	}
	return err
}

// medianRatio is the median of the ratios of times that were measured one after the
// other.
func medianRatio(times, others []time.Duration) float64 {
	ratios := make([]float64, len(times))
	for i := range times {
		ratios[i] = float64(times[i]) / float64(others[i])
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func percentile(times []time.Duration, p int) time.Duration {
	times = slices.Clone(times)
	slices.Sort(times)
	return times[min(len(times)*p/100, len(times)-1)]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
