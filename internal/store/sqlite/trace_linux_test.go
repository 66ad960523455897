package sqlite

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The power-cut test watches a writing process through strace(1). This file
// turns its output into system calls in the order in which they began and
// ended.

// tracedCalls are the system calls that change files or their names, or make
// changes durable, and those needed to know which file a descriptor means.
const tracedCalls = "open,openat,creat,close,dup,dup2,dup3,lseek," +
	"write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,fallocate," +
	"fsync,fdatasync,sync_file_range,sync,syncfs," +
	"rename,renameat,renameat2,unlink,unlinkat,link,linkat,mkdir,mkdirat,rmdir"

// call is one successful system call. Between begin and end, both counted in
// lines of the trace, it may have had its effect or not.
type call struct {
	name       string
	args       []string // as strace prints them
	result     int64
	begin, end int
}

// readTrace parses the output of strace -f -xx. Calls that failed, or that the
// process did not live to see the end of, are left out.
func readTrace(r io.Reader) ([]*call, error) {
	var calls []*call
	open := make(map[string]*call) // by process id: those printed as unfinished
	text := make(map[*call]string)
	in := bufio.NewReaderSize(r, 1<<20)
	for number := 1; ; number++ {
		line, err := in.ReadString('\n')
		if err == io.EOF && line == "" {
			break
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		pid, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok {
			return nil, fmt.Errorf("line %d: %.80q", number, line)
		}
		rest = strings.TrimLeft(rest, " ")
		var c *call
		switch {
		case strings.HasPrefix(rest, "+++"), strings.HasPrefix(rest, "---"):
			continue // an exit, a signal
		case strings.HasPrefix(rest, "<... "):
			c = open[pid]
			if c == nil {
				return nil, fmt.Errorf("line %d resumes a call that nobody began: %.80q", number, line)
			}
			delete(open, pid)
			_, tail, _ := strings.Cut(rest, " resumed>")
			text[c] += tail
		default:
			name, tail, ok := strings.Cut(rest, "(")
			if !ok {
				return nil, fmt.Errorf("line %d: %.80q", number, line)
			}
			c = &call{name: name, begin: number}
			calls = append(calls, c)
			if head, unfinished := strings.CutSuffix(tail, " <unfinished ...>"); unfinished {
				text[c] = head
				open[pid] = c
				continue
			}
			text[c] = tail
		}
		c.end = number
	}

	var done []*call
	for _, c := range calls {
		ok, err := c.parse(text[c])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", c.begin, err)
		}
		if ok && c.end != 0 {
			done = append(done, c)
		}
	}
	return done, nil
}

// parse reads arguments and result; false means that the call failed or never
// returned.
func (c *call) parse(text string) (bool, error) {
	i := strings.LastIndex(text, ") ")
	if i < 0 {
		return false, nil // unfinished
	}
	result := strings.Fields(strings.TrimLeft(text[i+1:], " ="))
	if len(result) == 0 || result[0] == "?" {
		return false, nil
	}
	n, err := strconv.ParseInt(result[0], 0, 64)
	if err != nil {
		return false, fmt.Errorf("%s returned %q", c.name, text[i+1:])
	}
	c.result = n
	c.args = strings.Split(text[:i], ", ") // strings are in hex, so this parts arguments only
	return n >= 0, nil
}

// int returns the i-th argument as a number.
func (c *call) int(i int) (int64, error) {
	if i >= len(c.args) {
		return 0, fmt.Errorf("%s has %d arguments", c.name, len(c.args))
	}
	return strconv.ParseInt(c.args[i], 0, 64)
}

// bytes returns the i-th argument, a string.
func (c *call) bytes(i int) ([]byte, error) {
	if i >= len(c.args) {
		return nil, fmt.Errorf("%s has %d arguments", c.name, len(c.args))
	}
	return unhex(c.args[i])
}

// unhex reads a string as strace -xx prints it. One that strace cut short is
// an error.
func unhex(s string) ([]byte, error) {
	hex, ok := strings.CutPrefix(s, `"`)
	hex, ok2 := strings.CutSuffix(hex, `"`)
	if !ok || !ok2 {
		return nil, fmt.Errorf("not a whole string: %.40s", s)
	}
	out := make([]byte, 0, len(hex)/4)
	for ; len(hex) >= 4 && hex[:2] == `\x`; hex = hex[4:] {
		b, err := strconv.ParseUint(hex[2:4], 16, 8)
		if err != nil {
			return nil, err
		}
		out = append(out, byte(b))
	}
	if hex != "" {
		return nil, fmt.Errorf("not in hex: %.40s", s)
	}
	return out, nil
}

// vector joins the buffers of writev and its kin: every string from argument 1
// on, up to the closing bracket.
func (c *call) vector() ([]byte, error) {
	var all bytes.Buffer
	for _, arg := range c.args[1:] {
		if _, base, ok := strings.Cut(arg, "iov_base="); ok {
			b, err := unhex(base)
			if err != nil {
				return nil, err
			}
			all.Write(b)
		}
		if strings.HasSuffix(arg, "]") {
			break
		}
	}
	return all.Bytes(), nil
}
