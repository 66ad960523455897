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
	"unicode"

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
// trust something, by whatever path the program was named, or starts one
// through a program that does nothing but start others. It catches mistakes:
// what a script or a renamed copy does only shows when it calls the authority,
// where a login alone decides nothing.
func decides(call reading.Call, resolved string) bool {
	programs := []string{baseName(call.Program), baseName(resolved)}
	for _, program := range programs {
		if verb(program, call.Argv[1:]) {
			return true
		}
	}
	if !slices.ContainsFunc(programs, opens) {
		return false
	}
	words := strings.FieldsFunc(strings.Join(call.Argv[1:], " "), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`$(){};&|<>=", r)
	})
	for i, word := range words {
		if verb(baseName(word), words[i+1:]) {
			return true
		}
	}
	return false
}

// baseName is the last element of a path of any system, as file systems that
// ignore case would find it.
func baseName(path string) string {
	path = path[strings.LastIndexAny(path, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(path), ".exe")
}

// verb reports whether the program is Vogt's and the words name something
// that permits or trusts.
func verb(program string, words []string) bool {
	switch program {
	case "vogtd":
		return true
	case "vogt", "apes":
	default:
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool {
		switch w {
		case "approve", "confirm", "sign", "accept", "trust", "up", "serve", "resume", "add", "passkey", "rotate-key", "register",
			"register-user", "enroll", "spawn", "delegate", "allow", "set", "login":
			return true
		}
		return false
	})
}

// opens reports whether the program is there to start another one that its
// words name.
func opens(program string) bool {
	switch program {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox", "pwsh", "powershell", "cmd",
		"env", "exec", "command", "nice", "nohup", "setsid", "timeout", "time", "stdbuf", "script", "xargs", "watch", "strace",
		"sudo", "doas", "su", "runuser", "setpriv", "unshare", "chroot", "systemd-run", "ssh", "tmux", "screen":
		return true
	}
	return strings.HasPrefix(program, "ld-") // the dynamic loader, started as a program
}
