package seatbelt

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file reads SBPL and decides by it, as far as profiles of this package use
// it, and as far as is known how Seatbelt does: the rules of an operation come
// first, the last one of them that matches wins, then those of its family.

// node is an atom, a string or a list.
type node struct {
	kind rune // 'a', 's' or '('
	text string
	list []node
}

func (n node) String() string {
	switch n.kind {
	case 's':
		return `"` + n.text + `"`
	case '(':
		var parts []string
		for _, m := range n.list {
			parts = append(parts, m.String())
		}
		return "(" + strings.Join(parts, " ") + ")"
	}
	return n.text
}

// head is the first atom of a list.
func (n node) head() string {
	if n.kind == '(' && len(n.list) > 0 {
		return n.list[0].text
	}
	return ""
}

// read returns the lists of a text.
func read(t *testing.T, text string) []node {
	t.Helper()
	stack := []node{{kind: '('}}
	add := func(n node) { top := &stack[len(stack)-1]; top.list = append(top.list, n) }
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ';':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == ' ' || c == '\n':
			i++
		case c == '(':
			stack = append(stack, node{kind: '('})
			i++
		case c == ')':
			if len(stack) == 1 {
				t.Fatalf("a list ends that has not begun, at %.40q", text[i:])
			}
			n := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			add(n)
			i++
		case c == '"' || strings.HasPrefix(text[i:], `#"`):
			i += strings.IndexByte(text[i:], '"') + 1
			n := strings.IndexByte(text[i:], '"')
			if n < 0 || strings.ContainsAny(text[i:i+n], "\\\n") {
				t.Fatalf("a string that does not end, or that escapes: %.40q", text[i:])
			}
			add(node{kind: 's', text: text[i : i+n]})
			i += n + 1
		default:
			n := strings.IndexAny(text[i:], " \n()\";")
			if n <= 0 {
				t.Fatalf("an atom that does not end: %.40q", text[i:])
			}
			add(node{kind: 'a', text: text[i : i+n]})
			i += n
		}
	}
	if len(stack) != 1 {
		t.Fatalf("%d lists do not end", len(stack)-1)
	}
	for _, n := range stack[0].list {
		if n.kind != '(' {
			t.Fatalf("%s is no list", n)
		}
	}
	return stack[0].list
}

// families are the operations that profiles here use, with the family whose
// rules hold when none of their own matches.
func families() map[string]string {
	return map[string]string{
		"file-read*": "", "file-read-data": "file-read*", "file-read-metadata": "file-read*", "file-map-executable": "", "file-link": "",
		"file-write*": "", "file-write-create": "file-write*", "file-write-data": "file-write*", "file-write-unlink": "file-write*",
		"file-ioctl": "", "pseudo-tty": "",
		"process-exec*": "", "process-exec": "process-exec*", "process-fork": "", "process-info*": "", "signal": "",
		"sysctl-read": "", "sysctl-write": "", "system-socket": "",
		"ipc-posix-sem": "", "ipc-posix-shm-read*": "", "ipc-posix-shm-write-create": "", "ipc-posix-shm-write-data": "", "ipc-posix-shm-write-unlink": "",
		"network*": "", "network-outbound": "network*", "network-inbound": "network*", "network-bind": "network*",
		"mach-lookup": "", "mach-priv-task-port": "", "appleevent-send": "", "lsopen": "", "job-creation": "", "iokit-open": "",
	}
}

// filters are the filters that profiles here use, with what follows the name:
// a string, a filter or filters, or an atom.
func filters() map[string]string {
	return map[string]string{
		"literal": "s", "subpath": "s", "regex": "s", "global-name": "s", "global-name-prefix": "s",
		"sysctl-name-prefix": "s", "ipc-posix-name": "s", "ipc-posix-name-regex": "s", "extension": "s",
		"require-all": "f", "require-not": "f", "remote": "e", "local": "e", "target": "a", "socket-domain": "a",
	}
}

func (n node) checkRule(t *testing.T, used map[string]bool) {
	t.Helper()
	if h := n.head(); h != "allow" && h != "deny" {
		t.Errorf("%s is no rule", n)
		return
	}
	i := 1
	for ; i < len(n.list) && n.list[i].kind == 'a'; i++ {
		if _, ok := families()[n.list[i].text]; !ok {
			t.Errorf("%s: no operation %s is known", n, n.list[i])
		}
	}
	if i == 1 {
		t.Errorf("%s names no operation", n)
	}
	// What is given without a filter is given whole: these are few.
	if i == len(n.list) && n.head() == "allow" {
		for _, op := range n.list[1:] {
			if !slices.Contains([]string{"process-fork", "sysctl-read", "ipc-posix-sem", "pseudo-tty", "network*"}, op.text) {
				t.Errorf("%s allows everything", n)
			}
		}
	}
	for _, f := range n.list[i:] {
		f.checkFilter(t, used)
	}
}

func (n node) checkFilter(t *testing.T, used map[string]bool) {
	t.Helper()
	shape, ok := filters()[n.head()]
	if !ok || len(n.list) < 2 {
		t.Errorf("no filter %s is known", n)
		return
	}
	for _, part := range n.list[1:] {
		switch {
		case shape == "f":
			part.checkFilter(t, used)
		case shape == "a" && part.kind == 'a', shape == "s" && part.kind == 's':
		case shape == "s" && part.head() == "param" && len(part.list) == 2:
			used[part.list[1].text] = true
		case shape == "e" && part.kind == 'a' && slices.Contains([]string{"tcp", "unix-socket"}, part.text):
		case shape == "e" && part.kind == 's' && regexp.MustCompile(`^(localhost|\*):([0-9]+|\*)$`).MatchString(part.text):
		case shape == "e" && part.kind == '(':
			part.checkFilter(t, used)
		default:
			t.Errorf("%s in %s", part, n)
		}
	}
	if n.head() == "regex" && n.list[1].kind == 's' {
		if _, err := regexp.Compile(n.list[1].text); err != nil {
			t.Error(err)
		}
	}
}

// question is one access.
type question struct {
	operation  string
	path, name string
	tcp, unix  string
}

// decide answers a question by a profile.
func decide(t *testing.T, text string, params []string, q question) bool {
	t.Helper()
	values := map[string]string{}
	for _, p := range params {
		key, value, _ := strings.Cut(p, "=")
		values[key] = value
	}
	rules := read(t, text)
	for op := q.operation; op != ""; op = families()[op] {
		for _, r := range slices.Backward(rules) {
			if r.matches(t, op, q, values) {
				return r.head() == "allow"
			}
		}
	}
	return false
}

// matches reports whether a rule is about an operation, and holds.
func (n node) matches(t *testing.T, op string, q question, values map[string]string) bool {
	i, about := 1, false
	for ; i < len(n.list) && n.list[i].kind == 'a'; i++ {
		about = about || n.list[i].text == op
	}
	return about && (i == len(n.list) || slices.ContainsFunc(n.list[i:], func(f node) bool { return f.holds(t, q, values) }))
}

func (n node) holds(t *testing.T, q question, values map[string]string) bool {
	arg := n.list[1].text
	if n.list[1].head() == "param" {
		arg = values[n.list[1].list[1].text]
	}
	switch n.head() {
	case "literal":
		return q.path == arg
	case "subpath":
		return q.path == arg || q.path != "" && (arg == "/" || strings.HasPrefix(q.path, arg+"/"))
	case "regex":
		return q.path != "" && regexp.MustCompile(arg).MatchString(q.path)
	case "global-name":
		return q.name == arg
	case "global-name-prefix", "sysctl-name-prefix":
		return q.name != "" && strings.HasPrefix(q.name, arg)
	case "require-all":
		return !slices.ContainsFunc(n.list[1:], func(f node) bool { return !f.holds(t, q, values) })
	case "require-not":
		return !n.list[1].holds(t, q, values)
	case "remote", "local":
		if arg == "tcp" {
			return q.tcp == n.list[2].text
		}
		return q.unix != "" && (len(n.list) == 2 || n.list[2].holds(t, question{path: q.unix}, values))
	case "extension", "target", "socket-domain", "ipc-posix-name", "ipc-posix-name-regex":
		return false // nothing here asks for it
	}
	t.Errorf("%s is not understood", n)
	return false
}
