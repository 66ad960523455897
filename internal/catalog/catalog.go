// Package catalog says what programs mean: it turns a call into details with
// a risk.
//
// This version describes no program: every call is one exact command of high
// risk, except the few that would decide over Vogt itself, which are critical
// and which nothing but a person's exact answer permits. It leaves out text
// (reading) and permission (coverage).
package catalog

import (
	"slices"
	"strings"

	"vogt/internal/detail"
	"vogt/internal/reading"
)

// Describe returns what the call would do. runAs names the OS user for a
// crossing and is empty otherwise. resolved is the path that the door found
// for the program, if it said so: a link under another name is still the
// program that it leads to.
func Describe(call reading.Call, resolved, runAs string) []detail.Detail {
	command := detail.Command{
		Program:   call.Program,
		Operation: detail.GenericOperation,
		Argv:      call.Argv,
		Action:    detail.ActionExec,
		Risk:      detail.High,
	}
	if decides(call, resolved) {
		command.Operation, command.Risk = "vogt.decide", detail.Critical
	}
	if runAs != "" {
		return []detail.Detail{detail.Crossing{User: runAs, Command: command}}
	}
	return []detail.Detail{command}
}

// decides reports whether the call is one of Vogt's own verbs that permit or
// trust something, by whatever path the program was named.
func decides(call reading.Call, resolved string) bool {
	names := []string{call.Program, resolved[strings.LastIndexByte(resolved, '/')+1:]}
	if !slices.ContainsFunc(names, func(name string) bool {
		return name == "vogt" || name == "vogtd" || name == "apes"
	}) {
		return false
	}
	words := slices.DeleteFunc(slices.Clone(call.Argv[1:]), func(w string) bool { return strings.HasPrefix(w, "-") })
	for _, verb := range []string{"approve", "up", "resume", "add", "rotate-key", "register", "register-user", "enroll", "delegate", "allow", "set", "login", "trust", "serve"} {
		if slices.Contains(words, verb) {
			return true
		}
	}
	return call.Program == "vogtd"
}
