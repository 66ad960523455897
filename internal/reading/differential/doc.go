// Package differential compares what reading says about a command line with
// what bash does with it. It holds tests only; run them with
//
//	go test ./internal/reading/differential
//	VOGT_DIFFERENTIAL=50000 VOGT_DIFFERENTIAL_SEED=7 go test -timeout 1h -run TestGenerated ./internal/reading/differential
//	VOGT_READ_CORPUS=commands.jsonl go test ./internal/reading/differential
//
// Command lines come from a seeded grammar, from lists of attacks, from
// testdata/lines.txt, and from the "command" fields of the JSON lines in the
// file that VOGT_READ_CORPUS names, if it does. VOGT_DIFFERENTIAL is the number
// of generated lines, and tells that faults of detail are worth time as well. Each runs under the real bash in a prepared project, as a user
// without rights, in namespaces of its own: no network, every file system
// read-only but an empty /tmp, and instead of programs that could do harm
// files of the same name that only print. Every program start and every change
// of a file is taken from the kernel with ptrace(2) and seccomp(2), so absolute
// paths, builtins and redirections are seen as well.
//
// Wherever reading claims to know a line completely (it parses and is not
// opaque), nothing may have happened that was not claimed; where it says that
// foreign content is executed, that holds for what the line's own shell does. A
// fault is reported with the shortest line found that still shows it. Faults
// about detail (a path that is not listed, a text that bash accepts and reading
// does not) are logged; all others fail the test.
//
// The tests need Linux on amd64 or arm64, the right to make namespaces, bash
// and git. They own no judgement about what programs mean: that is the
// catalog's, and what is measured here.
package differential
