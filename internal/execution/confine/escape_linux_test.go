package confine

import (
	"errors"
	"flag"
	"io"
	"os"
	"testing"

	"vogt/internal/execution/confine/confinetest"
	"vogt/internal/execution/confine/plan"
)

// helperPackage is the program that puts up the walls.
const helperPackage = "vogt/cmd/vogt-confine"

func TestMain(m *testing.M) {
	if helper := os.Getenv(starterVariable); helper != "" {
		os.Exit(starter(helper))
	}
	flag.Parse()
	if fuzzing := flag.Lookup("test.fuzz"); fuzzing != nil && fuzzing.Value.String() != "" {
		os.Exit(m.Run()) // it starts no box, and keeps what it finds on the disk
	}
	os.Exit(confinetest.Main(m, helperPackage))
}

// TestEscapes makes every attempt of package confinetest in boxes of all
// levels, as root and as an ordinary user.
func TestEscapes(t *testing.T) {
	helper := confinetest.Program(t, helperPackage)
	confinetest.Run(t, []string{confinetest.Full, confinetest.Own, confinetest.HostView, confinetest.Bwrap, confinetest.Reduced}, func(t testing.TB, c confinetest.Command) confinetest.Result {
		return inBox(t, helper, c)
	})
}

// inBox runs a command in a box of the default profile, as far as the level
// does not change it.
func inBox(t testing.TB, helper string, c confinetest.Command) confinetest.Result {
	parse, _ := Builtin("default")
	p, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Profile: p, Workspace: c.Workspace, Home: c.Home, Program: c.Argv[0], Argv: c.Argv, Environ: os.Environ(), Terminal: c.Terminal}
	p.Read = append(p.Read, c.Argv[0])
	if gifts := os.Getenv("CONFINETEST_GIFTS"); gifts != "" {
		p.Read = append(p.Read, gifts)
	}
	switch c.Level {
	case confinetest.Own:
		p.Sockets = plan.OwnSockets
	case confinetest.HostView:
		p.Root = plan.HostView
	case confinetest.Bwrap:
		if !confinetest.Closed() {
			r.Level = plan.Bwrap // else it is what comes of it
		}
	case confinetest.Reduced:
		r.Level = plan.Reduced
	}
	input, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	if c.Terminal {
		input = os.Stdin
	}
	output, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	printed := drain(output)
	out, err := Run(helper, r, Streams{input, w, os.Stderr})
	w.Close()
	result := confinetest.Result{Stdout: <-printed, Exit: out.Code}
	if c.Level == confinetest.Bwrap && out.Report.Level != "" && out.Report.Level != plan.Bwrap {
		t.Fatalf("the box is %s", out.Report.Level)
	}
	for _, change := range out.Changed {
		result.Reported = append(result.Reported, change.Path)
	}
	if err != nil {
		result.Note = err.Error()
		if _, ok := errors.AsType[*RefusedError](err); ok {
			result.Exit = 126
		}
	}
	return result
}

// drain reads everything from a pipe.
func drain(r io.Reader) <-chan []byte {
	all := make(chan []byte, 1)
	go func() {
		data, _ := io.ReadAll(r)
		all <- data
	}()
	return all
}
