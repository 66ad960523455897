package confinetest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// Group is a part of the attempts, for tables.
type Group struct {
	Name  string
	Cases []Case
}

// Groups are the attempts by what they are after, and in the order of Cases.
func Groups() []Group {
	return []Group{
		{"read secrets and files elsewhere", secretCases()},
		{"change files elsewhere", outsideCases()},
		{"change what the workspace's programs obey", append(append(guardedCases(), nameCases()...), repositoryCases()...)},
		{"/proc and devices", append(procCases(), deviceCases()...)},
		{"other processes", processCases()},
		{"more rights for oneself", rightCases()},
		{"kernel calls nobody needs, and the machine", append(callCases(), machineCases()...)},
		{"namespaces and mounts", append(namespaceCases(), mountCases()...)},
		{"type into the terminal", terminalCases()},
		{"shared memory and queues", shareCases()},
		{"unix sockets of the machine", unixCases()},
		{"network and odd sockets", append(networkCases(), socketCases()...)},
	}
}

// Way is a box of any kind, for Compare.
type Way struct {
	Name  string
	Level string // whose answers count as held, for the runner
	Run   Runner
}

// Compare makes, as the ordinary user, every attempt that succeeds without a box
// and that a full box holds, in boxes of all kinds. It returns a table of how many
// went through, and the names of those; nothing of it is judged. For root it does
// so as user 1000, and logs the table.
func Compare(t *testing.T, ways []Way) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the attempts are those of Linux on amd64")
	}
	if !jailed() {
		t.Fatal("as root, attempts are made in a jail only: call confinetest.Main in TestMain")
	}
	s := &suite{name: t.Name()}
	s.run = func(t testing.TB, c Command) Result {
		for _, w := range ways {
			if w.Name == c.Level {
				c.Level = w.Level
				return w.Run(t, c)
			}
		}
		t.Fatalf("there is no box %s", c.Level)
		return Result{}
	}
	if once := os.Getenv(onceVariable); once != "" {
		s.once(t, once)
		return
	}
	if os.Getuid() == 0 {
		s.asUser(t, false)
		return
	}
	var table, open strings.Builder
	fmt.Fprint(&table, "| attempts | made |")
	for _, w := range ways {
		fmt.Fprintf(&table, " %s |", w.Name)
	}
	fmt.Fprintf(&table, "\n|---|---|%s\n", strings.Repeat("---|", len(ways)))
	total := make([]int, len(ways)+1)
	for _, g := range Groups() {
		made, through := 0, make([]int, len(ways))
		for _, c := range g.Cases {
			if c.unfit(os.Getuid()) || strings.Contains(c.Full, "free") || strings.Contains(c.Full, "open") || !s.goesThrough(t, c, "") {
				continue
			}
			made++
			for i, w := range ways {
				if s.goesThrough(t, c, w.Name) {
					through[i]++
					fmt.Fprintf(&open, "%s: %s\n", w.Name, c.Try)
				}
			}
		}
		fmt.Fprintf(&table, "| %s | %d |", g.Name, made)
		total[0] += made
		for i, n := range through {
			fmt.Fprintf(&table, " %d |", n)
			total[i+1] += n
		}
		fmt.Fprintln(&table)
	}
	fmt.Fprint(&table, "| all |")
	for _, n := range total {
		fmt.Fprintf(&table, " %d |", n)
	}
	t.Logf("\n%s\n\n%s", table.String(), open.String())
}

// goesThrough reports whether an attempt succeeds in a box, or without one.
func (s *suite) goesThrough(t *testing.T, c Case, way string) (ok bool) {
	t.Run(way+c.name(), func(t *testing.T) {
		scene := newScene(t)
		if argv, missing := c.argv(scene); missing == "" {
			a, _, _ := s.try(t, c, way, argv, scene)
			ok = a.OK
		}
	})
	return ok
}
