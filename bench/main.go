// Bench measures Vogt as its users meet it: whole processes of the built
// binaries, a real authority on loopback with a real disk under it, and beside
// each figure a floor that no program can beat (an empty Go program, /bin/true,
// raw transactions on the same disk).
//
// It owns measuring and printing a Markdown report. Tests never use it, since
// a timing is no property.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

func main() {
	bin := flag.String("bin", "bin", "folder with the built binaries")
	seconds := flag.Int("seconds", 3, "length of each load measurement")
	only := flag.String("only", "", "one part: sizes, reading, processes, confine, load, memory, standing or million")
	rounds := flag.Int("rounds", 40, "runs of each whole-process measurement")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *bin, time.Duration(*seconds)*time.Second, *rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run of all measurements.
type bench struct {
	ctx    context.Context
	bin    string
	dir    string
	length time.Duration
	rounds int
}

func run(ctx context.Context, bin string, length time.Duration, rounds int, only string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "vogt-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{ctx: ctx, bin: bin, dir: dir, length: length, rounds: rounds}
	fmt.Printf("# Measurements\n\n%s, %d CPUs, %s\n", runtime.Version(), runtime.NumCPU(), kernel())
	for _, part := range []struct {
		name string
		run  func() error
	}{{"sizes", b.sizes}, {"reading", b.readingInProcess}, {"processes", b.processes}, {"confine", b.confinement}, {"load", b.load}, {"memory", b.memory}, {"standing", b.standing}, {"million", b.million}} {
		if only != "" && only != part.name {
			continue
		}
		if err := part.run(); err != nil {
			return err
		}
	}
	return nil
}

func kernel() string {
	out, err := exec.Command("uname", "-sr").Output()
	if err != nil {
		return runtime.GOOS
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) sizes() error {
	fmt.Print("\n## Binaries\n\n| binary | MB |\n|---|---|\n")
	for _, name := range []string{"vogt", "vogtd", "vogt-assistant", "vogt-confine", "vogt-elevated"} {
		info, err := os.Stat(filepath.Join(b.bin, name))
		if err != nil {
			return fmt.Errorf("%w (run make build first)", err)
		}
		fmt.Printf("| %s | %.1f |\n", name, float64(info.Size())/1e6)
	}
	return nil
}
