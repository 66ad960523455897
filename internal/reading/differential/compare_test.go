//go:build linux && (amd64 || arm64)

package differential

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// fault is something that happened and was not claimed.
type fault struct {
	Class  class
	Key    string // what two faults of one kind have in common
	Detail string
}

type class int

// The classes, gravest first.
const (
	faultPanic   class = iota // the reader broke down
	faultProgram              // a program started that was not named
	faultInert                // the project's settings started a program in a line called inert
	faultWrite                // something changed in a line that changes nothing
	faultDelete               // a file was deleted in a line that destroys nothing
	faultNetwork              // the network was used
	faultEffect               // a program started that does more than was claimed
	faultSink                 // a file that executes later was written and not called so
	faultSignal               // another process got a signal in a line that only reads
	faultParse                // parse_ok for what bash does not accept
	faultRefused              // no parse_ok for what bash accepts
	faultPath                 // something changed that is not among the paths
	faultRead                 // a file was read that is not among the paths
	faultClaim                // the claim contradicts itself
	classes
)

func (c class) String() string {
	return [classes]string{"panic", "program", "inert", "write", "delete", "network", "effect", "sink", "signal", "parse", "refused", "path", "read", "claim"}[c]
}

// second tells whether a class is about detail, while no effect was hidden.
func (c class) second() bool { return c == faultPath || c == faultRead || c == faultRefused }

// changes tells whether e is about a file.
func (e event) changes() bool {
	switch e.Op {
	case opOpen, opCreate, opDelete, opRmdir, opRename, opChange:
		return true
	}
	return false
}

// planted tells whether git started what the project's own settings name.
func (e event) planted() bool {
	return e.Op == opExec && e.within("git") &&
		(strings.HasPrefix(e.Path, plantedDir+"/") || strings.HasPrefix(e.Path, workDir+"/.git/hooks/"))
}

// by is the program that did it.
func (e event) by() string { return e.Chain[len(e.Chain)-1] }

// within tells whether a program of that name led to e, the first shell aside.
func (e event) within(names ...string) bool {
	return slices.ContainsFunc(e.Chain[1:], func(name string) bool { return slices.Contains(names, name) })
}

// compare gives what happened in r and was not claimed.
func compare(c claim, r run) []fault {
	var faults []fault
	add := func(class class, key string, what any) {
		f := fault{class, key, fmt.Sprint(what)}
		if !slices.ContainsFunc(faults, func(old fault) bool { return old.Class == class && old.Key == key }) {
			faults = append(faults, f)
		}
	}
	if c.Panic != "" {
		add(faultPanic, c.Panic, c.Panic)
		return faults
	}
	if c.ParseOK && !r.Parses {
		add(faultParse, "", "bash -n does not accept it")
	}
	if !c.ParseOK && r.Parses {
		add(faultRefused, "", "bash -n accepts it")
	}
	if why := c.contradiction(); why != "" {
		add(faultClaim, why, why)
	}
	for i, e := range r.Events {
		if c.Inert && e.planted() {
			add(faultInert, e.Path, e)
		}
		if e.changes() {
			e.Passing, e.Replaced = r.passing(e), r.replaced(i)
		}
		if c.ReadOnly && e.changes() && !harmless(e) {
			add(faultWrite, e.Op, e)
		}
		if c.complete() && c.answers(e) {
			for class, key := range c.missing(e) {
				add(class, key, e)
			}
		}
	}
	return faults
}

// answers tells whether a complete claim answers for e. Where content is
// executed, that is for what the line's own shell does, as long as it does not
// read that content itself.
func (c claim) answers(e event) bool {
	if !c.Executes {
		return true
	}
	own := !slices.ContainsFunc(c.Programs, func(name string) bool { return name == "." || name == "source" })
	return own && len(e.Chain) == 1
}

// makes tells whether e puts something at a path, and where.
func (e event) makes() (string, bool) {
	switch {
	case e.Op == opCreate, e.Op == opOpen && e.Flags&unix.O_CREAT != 0:
		return e.Path, true
	case e.Op == opRename:
		return e.Other, true
	}
	return "", false
}

// passing tells whether e is about a file that its program made and took away
// again: a temporary one.
func (r run) passing(e event) bool {
	made := false
	for _, other := range r.Events {
		if other.Path != e.Path || other.by() != e.by() {
			continue
		}
		switch other.Op {
		case opCreate, opOpen:
			made = made || other.Fresh
		case opDelete, opRmdir, opRename:
			if made {
				return true
			}
		}
	}
	return false
}

// replaced tells whether the program puts something new at the path of event i.
func (r run) replaced(i int) bool {
	e := r.Events[i]
	return slices.ContainsFunc(r.Events[i+1:], func(later event) bool {
		path, makes := later.makes()
		return makes && path == e.Path && later.by() == e.by()
	})
}

// contradiction names a claim that cannot be true by its own terms.
func (c claim) contradiction() string {
	for _, rule := range []struct {
		broken bool
		why    string
	}{
		{c.ReadOnly && !c.ParseOK, "read_only without parse_ok"},
		{c.ReadOnly && (c.Writes || c.Network || c.Destructive || c.Privilege), "read_only with an effect"},
		{c.ReadOnly && c.Opaque, "read_only and opaque"},
		{c.Inert && (c.Opaque || c.Executes), "inert, but opaque or executing"},
		{c.ParseOK && !c.Opaque && slices.Contains(c.Programs, "?"), "an unknown program, but not opaque"},
	} {
		if rule.broken {
			return rule.why
		}
	}
	return ""
}

// missing gives the classes, with keys, by which e is more than a complete
// claim.
func (c claim) missing(e event) map[class]string {
	found := map[class]string{}
	switch e.Op {
	case opExec:
		name := path.Base(e.Path)
		if !c.names(e, name) {
			found[faultProgram] = name
		}
		if strings.HasPrefix(e.Path, workDir+"/") && !e.Fresh && !e.planted() && !c.Executes {
			found[faultProgram] = "of the project"
		}
		if effect := c.understated(e, name); effect != "" {
			found[faultEffect] = name + " " + effect
		}
	case opConnect:
		if !c.Network {
			found[faultNetwork] = e.by()
		}
	case opRead:
		// It opens no files itself, so that its dynamic loader did.
		if e.by() == "ls" && strings.HasSuffix(e.Path, ".so") && !c.Executes {
			found[faultProgram] = "library"
		}
		if !c.More && !e.ignored() && !claims(c.Reading, e.Path, false) && !claims(c.Writing, e.Path, false) {
			found[faultRead] = e.by()
		}
	case opSignal:
		if c.ReadOnly && !e.within("git", "timeout") {
			found[faultSignal] = e.by()
		}
	default:
		if harmless(e) {
			return nil
		}
		if !c.Writes {
			found[faultWrite] = e.Op
		}
		if destroys(e) && !c.Destructive {
			found[faultDelete] = e.by()
		}
		if sink := e.sink(); sink != "" && !c.More && !claims(c.Sinks, sink, false) {
			found[faultSink] = sink
		}
		if !c.More && !c.touches(e) {
			found[faultPath] = e.by()
		}
	}
	return found
}

// ignored tells whether e reads what a program reads for itself: git, a shell
// or another interpreter. What is read of a script is another event's matter.
func (e event) ignored() bool {
	return e.within("git") || strings.Contains(e.Path, "/.git/") || e.Path == homeDir+"/.bashrc"
}

// names tells whether a started program is named, or implied by one that is.
func (c claim) names(e event, name string) bool {
	if slices.Contains(c.Programs, name) {
		return true
	}
	switch by := e.by(); {
	case e.planted():
		return !c.Inert // the project's own settings, which only an inert line excludes
	case e.within("git") && (strings.HasPrefix(name, "git-") || name == "git"):
		return true // its parts
	case by == "git":
		return name == "sh" || name == "man" || name == "crontab" || name == "systemctl" // for settings, help, and git maintenance
	case strings.HasPrefix(by, "git-"):
		return slices.Contains(gitScripts, name)
	case slices.Contains(parts[by], name):
		return true
	case name == "sh":
		return slices.Contains(systemCallers, by) || by == "sh" && e.within("less")
	case name == "echo":
		return by == "xargs" // its default
	}
	return e.within("tar") && slices.Contains(compressors, name)
}

// gitScripts are what those parts of git that are shell scripts start.
var gitScripts = strings.Fields("sh basename sed uname cat expr perl sleep mkdir cut sort grep rm cp mv true diff tr env envsubst gettext ls")

// parts are what programs start that leave their work to others.
var parts = map[string][]string{
	"sdiff": {"diff"}, "diff3": {"diff"}, "diff": {"pr"}, "zcat": {"gzip"}, "gunzip": {"gzip"}, "patch": {"ed"},
}

// systemCallers start what they are given by the shell of system(3), which has
// no name in the text.
var systemCallers = strings.Fields("awk gawk mawk sed split flock perl python3 tar m4 ed bc dc sqlite3 less make patch diff3 sdiff")

// compressors are what tar starts for its own options.
var compressors = strings.Fields("gzip bzip2 xz zstd lzma compress")

// doing is what programs do that are not the real ones here, when they are
// given anything to do.
var doing = map[string]func(claim) bool{
	"rm": func(c claim) bool { return c.Writes && c.Destructive }, "shred": func(c claim) bool { return c.Writes && c.Destructive },
	"curl": func(c claim) bool { return c.Network }, "wget": func(c claim) bool { return c.Network },
	"ssh": func(c claim) bool { return c.Network }, "scp": func(c claim) bool { return c.Network }, "ping": func(c claim) bool { return c.Network },
	"sudo": func(c claim) bool { return c.Privilege }, "doas": func(c claim) bool { return c.Privilege },
	"killall": func(c claim) bool { return c.Destructive }, "pkill": func(c claim) bool { return c.Destructive },
	"chown": func(c claim) bool { return c.Writes },
}

// understated names the effect of a stand-in's original that is not claimed.
func (c claim) understated(e event, name string) string {
	stated, known := doing[name]
	operands := slices.ContainsFunc(e.Argv[min(1, len(e.Argv)):], func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	options := slices.ContainsFunc(e.Argv[min(1, len(e.Argv)):], func(arg string) bool {
		return slices.Contains([]string{"--help", "--version", "-V", "-h", "-l", "-L", "-0"}, arg)
	})
	if !known || !operands || options || stated(c) {
		return ""
	}
	return "does more"
}

// devicePath matches what can be written to without a change: devices that keep
// nothing, and descriptors that were opened before under their own name.
var devicePath = regexp.MustCompile(`^/dev/(null|zero|full|tty|std(in|out|err)|fd/\d+)$|^/proc/(self|thread-self|\d+)/(task/\d+/)?fd/\d+$|^(pipe|socket|anon_inode):|^/(.*/)?(pipe|socket):\[\d+\]$`)

// shellTemporary matches the files in which bash keeps long here-documents.
var shellTemporary = regexp.MustCompile(`^/tmp/sh-thd\.\w+$`)

// harmless tells whether a change is none by the meaning of "writes".
func harmless(e event) bool {
	if devicePath.MatchString(e.Path) || shellTemporary.MatchString(e.Path) || e.Passing && e.Op != opRename {
		return true
	}
	// Reading commands of git refresh what it remembers of the files' times.
	return e.by() == "git" && path.Base(e.Path) == "index.lock"
}

// destroys tells whether a file was deleted, and not only replaced, moved or
// given up as temporary, or whether a device or a file of the system was
// written over.
func destroys(e event) bool {
	if e.Op == opOpen && e.Flags&unix.O_TRUNC != 0 && e.by() == "bash" {
		return strings.HasPrefix(e.Path, "/etc/") || strings.HasPrefix(e.Path, "/dev/")
	}
	if e.Op != opDelete || e.Fresh || e.Replaced {
		return false
	}
	switch e.by() {
	case "mv", "gzip", "bzip2", "xz", "zstd":
		return false
	}
	if e.within("git") {
		// All else can be had back, as can what git stash deletes by git clean.
		return path.Base(e.Path) == "untracked.txt" && strings.Count(strings.Join(e.Chain, " "), "git") == 1
	}
	return true
}

// sinkPath matches files that everybody must take for what executes or steers
// later. The catalog's table is longer.
var sinkPath = regexp.MustCompile(`^(` + workDir + `/\.git/(config|hooks/[^/]+)|` + homeDir + `/(\.bashrc|\.gitconfig|\.ssh/[^/]+))$`)

// sink is the file of that kind that e put something into, if any. What git
// itself keeps there is its commands' own meaning.
func (e event) sink() string {
	for _, name := range []string{e.Path, e.Other} {
		if sinkPath.MatchString(name) && !(e.Passing && name == e.Path) && e.Op != opDelete && e.Op != opChange && !e.within("git") {
			return name
		}
	}
	return ""
}

// touches tells whether the paths of the claim name what e changed.
func (c claim) touches(e event) bool {
	for _, touched := range []string{e.Path, e.Other} {
		switch {
		case touched == "":
		case e.within("git") && (strings.Contains(touched, "/.git/") || strings.HasSuffix(touched, "/.git")):
		case e.Passing && touched == e.Path:
		case e.by() == "mktemp":
		case !claims(c.Writing, touched, e.Op == opCreate) && !claims(c.Deleting, touched, false):
			return false
		}
	}
	return true
}
