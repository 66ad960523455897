package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func lines(events ...event) string {
	var b strings.Builder
	for _, e := range events {
		json.NewEncoder(&b).Encode(e)
	}
	return b.String()
}

func TestRun(t *testing.T) {
	out := func(test, text string) event {
		return event{Action: "output", Package: "vogt/p", Test: test, Output: text}
	}
	end := func(action, test string) event { return event{Action: action, Package: "vogt/p", Test: test} }
	good := lines(out("TestA", "=== RUN   TestA\n"), out("TestA", "    a_test.go:1: chatter\n"), out("TestA", "--- PASS: TestA (0.00s)\n"), end("pass", "TestA"),
		out("", "PASS\n"), out("", "ok  \tvogt/p\t0.1s\n"), end("pass", ""))
	skipped := func(reason string) string {
		return lines(out("TestS", "=== RUN   TestS\n"), out("TestS", "    a_test.go:9: "+reason+"\n"), out("TestS", "--- SKIP: TestS (0.00s)\n"), end("skip", "TestS"))
	}
	tests := []struct {
		name, in string
		ci       bool
		code     int
		want     []string // in this order
		without  string
	}{
		{"good", good, true, 0, []string{"ok  \tvogt/p\t0.1s\n", "1 passed, 0 failed, 0 skipped"}, "chatter"},
		{"failed", lines(
			out("TestA", "=== RUN   TestA\n"), out("TestA/x", "=== RUN   TestA/x\n"), out("TestA/x", "    a_test.go:1: wrong\n"),
			out("TestA", "--- FAIL: TestA (0.00s)\n"), out("TestA/x", "    --- FAIL: TestA/x (0.00s)\n"), end("fail", "TestA/x"), end("fail", "TestA"),
			out("", "FAIL\n"), out("", "FAIL\tvogt/p\t0.1s\n"), end("fail", "")), false, 1,
			[]string{"a_test.go:1: wrong\n", "--- FAIL: TestA (0.00s)\n", "FAIL\tvogt/p", "0 passed, 2 failed"}, "=== RUN"},
		{"one fails, a later one is good", lines(end("fail", "TestA"), end("fail", "")) + good, false, 1, []string{"1 passed, 1 failed"}, ""},
		{"panic ends the process", lines(out("TestA", "=== RUN   TestA\n"), out("TestA", "panic: boom\n"), out("", "FAIL\tvogt/p\t0.1s\n"), end("fail", "")), false, 1,
			[]string{"panic: boom\n", "FAIL\tvogt/p"}, ""},
		{"build fails", lines(event{Action: "build-output", ImportPath: "vogt/p", Output: "p.go:1: syntax error\n"}, event{Action: "build-fail", ImportPath: "vogt/p"}) + good, false, 1,
			[]string{"p.go:1: syntax error\n", "ok  \tvogt/p"}, ""},
		{"go itself complains", "go: unknown flag\n" + good, false, 0, []string{"go: unknown flag\n"}, ""},
		{"skip", skipped("needs another kernel") + good, true, 0, []string{"ok  ", "vogt/p TestS: needs another kernel\n", "1 skipped, 0 of those"}, ""},
		{"skip at home for want of a package", skipped("no Chromium is installed (Debian: apt install chromium)") + good, false, 0, []string{"(installable)", "1 of those"}, ""},
		{"skip in CI for want of a package", skipped("strace is not installed") + good, true, 1, []string{"strace is not installed (installable)", "add it to .ci/run"}, ""},
		{"skip in CI that names the package", skipped("run: apt-get install git") + good, true, 1, []string{"(installable)"}, ""},
		{"skip without words", lines(end("skip", "TestS")) + good, true, 0, []string{"no reason given"}, ""},
		{"package without tests", lines(out("", "?   \tvogt/p\t[no test files]\n"), end("skip", "")) + good, true, 0, []string{"[no test files]", "0 skipped"}, "reason"},
		{"nothing", "", false, 1, []string{"No test ran."}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := Run(strings.NewReader(tt.in), &out, tt.ci); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			rest := out.String()
			for _, w := range tt.want {
				_, after, found := strings.Cut(rest, w)
				if !found {
					t.Fatalf("%q is missing, or in another order, in:\n%s", w, &out)
				}
				rest = after
			}
			if tt.without != "" && strings.Contains(out.String(), tt.without) {
				t.Errorf("%q is in:\n%s", tt.without, &out)
			}
		})
	}
}
