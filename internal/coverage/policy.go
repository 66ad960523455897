package coverage

import (
	"fmt"
	"slices"
	"strings"

	"vogt/internal/detail"
	"vogt/internal/grant"
)

// Approves reports whether a policy approves a request, call by call, and if not,
// why. Patterns are compared with the words of one call and never across calls;
// what a call does beyond its words decides first.
func Approves(p *grant.Policy, calls []Call, w Where) (ok bool, why string) {
	if len(calls) == 0 {
		return false, "nothing of it could be read"
	}
	for i := range calls {
		if ok, why := approvesCall(p, &calls[i], w); !ok {
			return false, why
		}
	}
	return true, ""
}

func approvesCall(p *grant.Policy, c *Call, w Where) (bool, string) {
	words, why := readable(c, w)
	if why != "" {
		return false, why
	}
	if denied, why := Denied(p, []Call{*c}); denied {
		return false, why
	}
	switch {
	case p.Mode == grant.DenyList && len(p.Deny) > 0:
		return true, ""
	case p.Mode != grant.AllowList:
		return false, "the policy approves nothing"
	case c.Carrier:
		return true, "" // what it starts is compared by itself
	case !slices.ContainsFunc(p.Allow, func(pattern string) bool { return allows(pattern, words) }):
		return false, fmt.Sprintf("the policy does not name %q", strings.Join(words, " "))
	}
	return true, ""
}

// readable returns the words of a call, or why no policy may approve it: what it
// would do does not stand in its words, or is asked every time.
func readable(c *Call, w Where) (words []string, why string) {
	command, ok := c.Detail.(detail.Command)
	boxed := w.Profile != "" && w.Offline
	switch {
	case !ok:
		return nil, "it is no command of the agent itself, and is asked every time"
	case !command.Risk.Within(detail.High):
		return nil, "it is critical, which is asked every time"
	case c.Effects.Has(detail.Opaque) || c.Unknown:
		return nil, "what it does cannot be known from its text"
	case !c.Literal || len(command.Argv) == 0:
		return nil, "not every word of it is known before it runs"
	case c.Redirected:
		return nil, "a redirection opens what its words do not name"
	case c.Remote:
		return nil, "it acts on another host or in a container"
	case c.Effects.Has(detail.Door | detail.Privileged | detail.Secrets):
		return nil, "it opens further ways to act or shows credentials (" + c.Effects.String() + ")"
	case len(c.Sinks) > 0:
		return nil, c.Sinks[0] + " is executed or steers something later, which is asked by itself"
	case c.Effects.Has(detail.Contacts) && len(c.Hosts) == 0:
		return nil, "it contacts hosts that its text does not name"
	case (c.Effects.Has(detail.Contacts) || len(c.Hosts) > 0) && w.Labels.network() != "":
		return nil, w.Labels.network()
	case !boxed && (c.Effects.Has(detail.Executes|detail.Unsettled) || c.Elsewhere):
		return nil, "it runs or consults what the agent could have written; in a box without a network it could be approved"
	}
	return command.Argv, ""
}

// allows compares narrowly: word by word, a star within a word for a part of one
// name, a word that is a star for one or more words. The program stands just as the
// pattern has it.
func allows(pattern string, words []string) bool {
	return wordsMatch(strings.Fields(pattern), words, 1, func(pattern, word string) bool {
		if !strings.Contains(pattern, "*") {
			return pattern == word
		}
		// What leads up would leave the folder that the pattern names.
		names, parts := strings.Split(word, "/"), strings.Split(pattern, "/")
		if len(names) != len(parts) || slices.Contains(names, "..") {
			return false
		}
		for i := range parts {
			if !starred(parts[i], names[i]) {
				return false
			}
		}
		return true
	})
}

// denies compares widely: by the program's base name, too, in any case, a star for
// any number of words, and by the text as a whole, as the words stand in a line.
func denies(pattern string, words []string) bool {
	pattern = strings.ToLower(pattern)
	lower := make([]string, len(words))
	for i, w := range words {
		lower[i] = strings.ToLower(w)
	}
	based := slices.Clone(lower)
	based[0] = based[0][strings.LastIndexByte(based[0], '/')+1:]
	for _, w := range [][]string{lower, based} {
		if wordsMatch(strings.Fields(pattern), w, 0, starred) || starred(pattern, strings.Join(w, " ")) {
			return true
		}
	}
	return false
}

// wordsMatch compares words with the words of a pattern, of which a star alone
// stands for least or more of them. As in parts, only the last star gives way.
func wordsMatch(pattern, words []string, least int, match func(pattern, word string) bool) bool {
	g, n := 0, 0
	star, from := -1, 0
	for n < len(words) {
		switch {
		case g < len(pattern) && pattern[g] == "*" && n+least <= len(words):
			star, from = g, n+least
			g, n = g+1, n+least
		case g < len(pattern) && pattern[g] != "*" && match(pattern[g], words[n]):
			g++
			n++
		case star >= 0 && from < len(words):
			from++
			g, n = star+1, from
		default:
			return false
		}
	}
	for g < len(pattern) && pattern[g] == "*" && least == 0 {
		g++
	}
	return g == len(pattern)
}

// starred compares text with a pattern in which a star stands for any characters.
func starred(pattern, text string) bool {
	first, rest, ok := strings.Cut(pattern, "*")
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	if !ok {
		return text == ""
	}
	for {
		next, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, next)
		}
		i := strings.Index(text, next)
		if i < 0 {
			return false
		}
		text, rest = text[i+len(next):], after
	}
}

// Denied reports whether a policy denies any of the calls, by pattern or by risk.
func Denied(p *grant.Policy, calls []Call) (denied bool, why string) {
	for i := range calls {
		if level := calls[i].Detail.Level(); p.DenyRisk != detail.Unrated && !level.Within(p.DenyRisk-1) {
			return true, fmt.Sprintf("its risk is %s, the policy asks from %s", level, p.DenyRisk)
		}
		command, ok := calls[i].Detail.(detail.Command)
		if !ok || len(command.Argv) == 0 {
			continue
		}
		if at := slices.IndexFunc(p.Deny, func(pattern string) bool { return denies(pattern, command.Argv) }); at >= 0 {
			return true, fmt.Sprintf("the policy denies %q", p.Deny[at])
		}
	}
	return false, ""
}
