package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The power-cut test replays a traced run on a model of a disk that promises
// what POSIX promises and nothing more: what was written to a file is there
// after a cut only if fsync or fdatasync on that file began after the write
// and returned before the cut; a name is there, or gone, only if the same holds
// for its directory. Everything else may be there in any combination of
// 512-byte sectors. Bytes beside a written range are never harmed, which is
// what SQLite assumes of disks too (https://www.sqlite.org/psow.html).

const sector = 512

// change is one alteration of a file or directory.
type change struct {
	// Of a file: data at offset, or a new size if data is nil.
	offset int64
	data   []byte
	size   int64
	// Of a directory: name refers to node, to nothing if node is nil; in a
	// rename, was loses its meaning at the same moment.
	name string
	was  string
	node *node

	complete bool // the call returned
	durable  bool // a later sync returned
}

// node is a file or directory. changes are in the order in which they began;
// durable ones at the front are folded into base.
type node struct {
	isDir   bool
	base    []byte
	names   map[string]*node
	changes []*change
}

// descriptor is an open file.
type descriptor struct {
	node   *node
	offset int64
}

// disk is the state at one line of the trace.
type disk struct {
	root  string // only what lies below is modelled; it exists from the start
	top   *node
	files map[int64]*descriptor
	acked []int64
	// What a sync that is under way will make durable.
	syncing map[*call][]*change
	began   map[*call][]*change
}

func newDisk(root string) *disk {
	return &disk{
		root:    root,
		top:     &node{isDir: true, names: map[string]*node{}},
		files:   map[int64]*descriptor{},
		syncing: map[*call][]*change{},
		began:   map[*call][]*change{},
	}
}

// keep selects what of the unsynced changes survives a cut: sectors and names.
type keep struct {
	label string
	data  func() bool
	names func() bool
}

func always() bool { return true }
func never() bool  { return false }

// live is the state that the running process sees.
var live = keep{"everything", always, always}

// content is a file's content after a cut.
func (n *node) content(k keep) []byte {
	out := slices.Clone(n.base)
	for _, c := range n.changes {
		if c.data == nil {
			if c.durable || k.data() {
				out = resize(out, c.size)
			}
			continue
		}
		for from := int64(0); from < int64(len(c.data)); {
			to := min(int64(len(c.data)), from+sector-(c.offset+from)%sector)
			if c.durable || k.data() {
				out = resize(out, max(int64(len(out)), c.offset+to))
				copy(out[c.offset+from:], c.data[from:to])
			}
			from = to
		}
	}
	return out
}

func resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

// entries are a directory's names after a cut.
func (n *node) entries(k keep) map[string]*node {
	out := make(map[string]*node)
	for name, node := range n.names {
		out[name] = node
	}
	for _, c := range n.changes {
		if !c.durable && !k.names() {
			continue
		}
		if c.was != "" {
			delete(out, c.was)
		}
		if c.node == nil {
			delete(out, c.name)
		} else {
			out[c.name] = c.node
		}
	}
	return out
}

// fold makes the durable changes at the front part of the base.
func (n *node) fold() {
	i := 0
	for i < len(n.changes) && n.changes[i].durable {
		i++
	}
	done := &node{isDir: n.isDir, base: n.base, names: n.names, changes: n.changes[:i]}
	if n.isDir {
		n.names = done.entries(live)
	} else {
		n.base = done.content(live)
	}
	n.changes = n.changes[i:]
}

// find walks to path's directory as the running process sees it.
func (d *disk) find(path string) (dir *node, name string, err error) {
	relative, ok := strings.CutPrefix(path, d.root+"/")
	if !ok {
		return nil, "", nil // not ours
	}
	parts := strings.Split(relative, "/")
	dir = d.top
	for _, part := range parts[:len(parts)-1] {
		dir = dir.entries(live)[part]
		if dir == nil {
			return nil, "", fmt.Errorf("%s: no directory %s in the model", path, part)
		}
	}
	return dir, parts[len(parts)-1], nil
}

// begin takes note of a call that has begun and may have its effect from now
// on.
func (d *disk) begin(c *call) error {
	add := func(n *node, ch *change) {
		n.changes = append(n.changes, ch)
		d.began[c] = append(d.began[c], ch)
	}
	name := strings.TrimSuffix(c.name, "at")
	switch {
	case strings.Contains(name, "write"):
		return d.beginWrite(c, add)
	case name == "ftruncate" || c.name == "fallocate":
		return d.beginResize(c, add)
	case name == "fsync" || name == "fdatasync":
		fd, err := c.int(0)
		if err != nil || d.files[fd] == nil {
			return err
		}
		// What has completed by now is what this sync vouches for.
		for _, ch := range d.files[fd].node.changes {
			if ch.complete {
				d.syncing[c] = append(d.syncing[c], ch)
			}
		}
	case name == "mkdir" || name == "unlink" || name == "rmdir":
		dir, base, err := d.pathOf(c)
		if err != nil || dir == nil {
			return err
		}
		ch := &change{name: base}
		if name == "mkdir" {
			ch.node = &node{isDir: true, names: map[string]*node{}}
		}
		add(dir, ch)
	case name == "rename" || c.name == "renameat2":
		return d.beginRename(c, add)
	case name == "open" || name == "creat" || name == "close" || name == "lseek":
		// These count when they end.
	default:
		return fmt.Errorf("the model knows no %s", c.name)
	}
	return nil
}

// pathOf finds what the first path among a call's arguments names. A path
// relative to a descriptor occurs only where a test cleans up.
func (d *disk) pathOf(c *call) (dir *node, name string, err error) {
	i := 0
	if strings.HasSuffix(c.name, "at") {
		i = 1
	}
	path, err := c.bytes(i)
	if err != nil {
		return nil, "", err
	}
	if !filepath.IsAbs(string(path)) {
		return nil, "", nil
	}
	return d.find(string(path))
}

func (d *disk) beginWrite(c *call, add func(*node, *change)) error {
	fd, err := c.int(0)
	if err != nil {
		return err
	}
	var data []byte
	if strings.HasSuffix(strings.TrimRight(c.name, "2"), "v") {
		data, err = c.vector()
	} else {
		data, err = c.bytes(1)
	}
	if err != nil {
		return err
	}
	if int64(len(data)) < c.result {
		return fmt.Errorf("%s wrote %d bytes, %d are in the trace", c.name, c.result, len(data))
	}
	data = data[:c.result]
	if fd == 1 {
		number, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "ack ")
		id, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil {
			return fmt.Errorf("the writer printed %q", data)
		}
		d.acked = append(d.acked, id)
		return nil
	}
	f := d.files[fd]
	if f == nil {
		return nil
	}
	offset := f.offset
	if strings.HasPrefix(c.name, "p") {
		if offset, err = c.int(3); err != nil {
			return err
		}
	} else {
		f.offset += c.result
	}
	add(f.node, &change{offset: offset, data: data})
	return nil
}

func (d *disk) beginResize(c *call, add func(*node, *change)) error {
	fd, err := c.int(0)
	if err != nil || d.files[fd] == nil {
		return err
	}
	n := d.files[fd].node
	if c.name == "ftruncate" {
		size, err := c.int(1)
		if err == nil {
			add(n, &change{size: size})
		}
		return err
	}
	// fallocate with mode 0 extends; the engine uses no other mode.
	if c.args[1] != "0" {
		return fmt.Errorf("the model knows no fallocate of mode %s", c.args[1])
	}
	offset, err := c.int(2)
	if err != nil {
		return err
	}
	length, err := c.int(3)
	if err == nil {
		add(n, &change{size: max(offset+length, int64(len(n.content(live))))})
	}
	return err
}

func (d *disk) beginRename(c *call, add func(*node, *change)) error {
	from, to := 0, 1
	if c.name != "rename" {
		from, to = 1, 3
	}
	oldPath, err := c.bytes(from)
	if err != nil {
		return err
	}
	newPath, err := c.bytes(to)
	if err != nil {
		return err
	}
	oldDir, oldName, err := d.find(string(oldPath))
	if err != nil {
		return err
	}
	newDir, newName, err := d.find(string(newPath))
	if err != nil {
		return err
	}
	if oldDir == nil && newDir == nil {
		return nil
	}
	if oldDir != newDir {
		return fmt.Errorf("the model knows no rename from %s to %s", oldPath, newPath)
	}
	add(newDir, &change{name: newName, was: oldName, node: oldDir.entries(live)[oldName]})
	return nil
}

// end gives a call that has returned its certain effect.
func (d *disk) end(c *call) error {
	for _, ch := range d.began[c] {
		ch.complete = true
	}
	delete(d.began, c)
	switch {
	case c.name == "fsync" || c.name == "fdatasync":
		for _, ch := range d.syncing[c] {
			ch.durable = true
		}
		delete(d.syncing, c)
		if fd, _ := c.int(0); d.files[fd] != nil {
			d.files[fd].node.fold()
		}
	case c.name == "openat" || c.name == "open" || c.name == "creat":
		return d.endOpen(c)
	case c.name == "close":
		fd, err := c.int(0)
		delete(d.files, fd)
		return err
	case c.name == "lseek":
		if fd, _ := c.int(0); d.files[fd] != nil {
			d.files[fd].offset = c.result
		}
	}
	return nil
}

func (d *disk) endOpen(c *call) error {
	delete(d.files, c.result)
	path, err := c.bytes(strings.Count(c.name, "at")) // openat has the directory first; creat has none
	if c.name == "creat" {
		path, err = c.bytes(0)
	}
	if err != nil {
		return err
	}
	if string(path) == d.root {
		d.files[c.result] = &descriptor{node: d.top}
		return nil
	}
	dir, name, err := d.find(string(path))
	if err != nil || dir == nil {
		return err
	}
	flags := strings.Join(c.args, " ")
	if strings.Contains(flags, "O_APPEND") {
		return fmt.Errorf("the model knows no O_APPEND (%s)", path)
	}
	n := dir.entries(live)[name]
	if n == nil {
		if c.name != "creat" && !strings.Contains(flags, "O_CREAT") {
			return fmt.Errorf("%s was opened, but is not in the model", path)
		}
		n = &node{}
		dir.changes = append(dir.changes, &change{name: name, node: n, complete: true})
	} else if strings.Contains(flags, "O_TRUNC") {
		n.changes = append(n.changes, &change{size: 0, complete: true})
	}
	d.files[c.result] = &descriptor{node: n}
	return nil
}

// write puts the disk's state after a cut below dir.
func (d *disk) write(dir string, k keep) error {
	var walk func(n *node, path string) error
	walk = func(n *node, path string) error {
		if !n.isDir {
			if strings.HasSuffix(path, "-shm") {
				return nil // memory, which a cut always takes
			}
			return os.WriteFile(path, n.content(k), 0o600)
		}
		if path != dir {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
		}
		entries := n.entries(k)
		for _, name := range slices.Sorted(mapKeys(entries)) { // in order, so that a seed gives one state
			if err := walk(entries[name], filepath.Join(path, name)); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(d.top, dir)
}

func mapKeys(m map[string]*node) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// recording is what a writer below root did.
type recording struct {
	root  string
	calls []*call
}

// record runs the writer under strace.
func record(t *testing.T, c childConfig) recording {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed (on Debian: apt-get install strace), so the writer's system calls cannot be recorded")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	root := t.TempDir()
	c.Dir = filepath.Join(root, "new", "data")
	cmd := c.command(t, strace, "-f", "--seccomp-bpf", "-qq", "-xx", "-s", "16777216", "-e", "trace="+tracedCalls, "-o", trace)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		if text := complaints.String(); strings.Contains(text, "ptrace") || strings.Contains(text, "PTRACE") {
			t.Skipf("this machine forbids ptrace, so the writer's system calls cannot be recorded: %s", text)
		}
		t.Fatalf("%v: %s", err, complaints.String())
	}
	if got, want := len(parseAcks(t, string(out))), int(c.Count)*c.Openings; got != want {
		t.Fatalf("the writer acknowledged %d updates, want %d", got, want)
	}
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls, err := readTrace(f)
	if err != nil {
		t.Fatal(err)
	}
	return recording{root, calls}
}

// memoryDir makes a directory in memory where there is such a file system:
// states of the modelled disk need no real one, which syncs slowly.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "vogt-test-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// outcome counts the states of one run by how they fared.
type outcome struct {
	states, lost, broken int
}

// moments is how many there are to cut at: every call's begin and end.
func (r recording) moments() int { return 2 * len(r.calls) }

// cutPower replays the recording, makes each kind of state at each of the
// cuts, and has it examined: its data directory, what cut it was, and what was
// acknowledged before.
func (r recording) cutPower(t *testing.T, cuts map[int]bool, kinds []keep, examine func(dir, cut string, acked []int64)) {
	t.Helper()
	type event struct {
		line  int
		ends  bool
		call  *call
		order int
	}
	var events []event
	for i, c := range r.calls {
		events = append(events, event{c.begin, false, c, 2 * i}, event{c.end, true, c, 2*i + 1})
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if a.line != b.line {
			return a.line - b.line
		}
		return a.order - b.order
	})
	d := newDisk(r.root)
	scratch := memoryDir(t)
	for i, e := range events {
		step := d.begin
		if e.ends {
			step = d.end
		}
		if err := step(e.call); err != nil {
			t.Fatalf("line %d: %v", e.line, err)
		}
		if !cuts[i] {
			continue
		}
		for k, kind := range kinds {
			dir := filepath.Join(scratch, fmt.Sprintf("%d-%d", i, k))
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := d.write(dir, kind); err != nil {
				t.Fatal(err)
			}
			what := "during"
			if e.ends {
				what = "after"
			}
			examine(filepath.Join(dir, "new", "data"),
				fmt.Sprintf("%s %s in line %d, keeping %s", what, e.call.name, e.line, kind.label), d.acked)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// chooseCuts takes n of the run's moments: half of them right before or after
// a sync or an acknowledgement began or ended, the others anywhere.
func (r recording) chooseCuts(random *rand.Rand, n int) map[int]bool {
	var sharp []int
	for i, c := range r.calls {
		if strings.HasSuffix(c.name, "sync") || c.name == "write" || strings.HasPrefix(c.name, "unlink") {
			sharp = append(sharp, 2*i, 2*i+1)
		}
	}
	cuts := map[int]bool{r.moments() - 1: true} // the end
	for _, i := range random.Perm(len(sharp)) {
		if len(cuts) < n/2 {
			cuts[sharp[i]] = true
		}
	}
	for _, i := range random.Perm(r.moments()) {
		if len(cuts) < n {
			cuts[i] = true
		}
	}
	return cuts
}

// TestPowerCut is the proof that what Update acknowledged survives, and the
// proof that the test would notice if it did not.
func TestPowerCut(t *testing.T) {
	cuts := 150
	if raceEnabled {
		cuts = 25
	}
	writer := childConfig{
		Checkpoint: 40, Ballast: 1 << 16, Callers: 6, First: 1, Count: 60, Openings: 2, Stay: true,
	}
	random := rand.New(rand.NewPCG(5, 6))
	coin := func() bool { return random.IntN(2) == 0 }
	rarely := func() bool { return random.IntN(8) == 0 }
	mostly := func() bool { return random.IntN(8) != 0 }

	t.Run("FULL", func(t *testing.T) {
		run := record(t, writer)
		kinds := []keep{
			{"what was synced", never, never},
			live,
			{"synced data and all names", never, always},
			{"all data and synced names", always, never},
			{"half of the sectors and names", coin, coin},
			{"most sectors and half of the names", mostly, coin},
			{"few sectors and all names", rarely, always},
		}
		var got outcome
		run.cutPower(t, run.chooseCuts(random, cuts), kinds, func(dir, cut string, acked []int64) {
			got.states++
			if err := verifyPairs(dir, acked); err != nil {
				got.broken++
				t.Errorf("power cut %s: %v", cut, err)
			}
		})
		t.Logf("%d states of the disk at %d of %d moments, %d failures", got.states, cuts, run.moments(), got.broken)
	})

	// With less syncing the same examination must find losses.
	for _, mode := range []string{"NORMAL", "OFF"} {
		t.Run(mode, func(t *testing.T) {
			weak := writer
			weak.Synchronous = mode
			run := record(t, weak)
			kinds := []keep{{"what was synced", never, never}}
			var got outcome
			run.cutPower(t, run.chooseCuts(random, cuts/5), kinds, func(dir, _ string, acked []int64) {
				got.states++
				switch err := verifyPairs(dir, acked); {
				case errors.Is(err, errLost):
					got.lost++
				case err != nil:
					got.broken++
				}
			})
			if got.lost == 0 {
				t.Errorf("synchronous=%s lost nothing in %d states: the test cannot see losses", mode, got.states)
			}
			t.Logf("%d states: %d lost acknowledged updates, %d were unusable", got.states, got.lost, got.broken)
		})
	}
}
