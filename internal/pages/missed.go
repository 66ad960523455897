package pages

import (
	"html/template"
	"regexp"
	"slices"
	"strings"
)

// Why a pattern does not cover a command, the authority says in English (package
// coverage). The catalogs hold those sentences under "missed.", the English one word
// by word, so that they can be found again in any language.

// missedLevel begins the keys of the words for risks in them.
const missedLevel = "missed.level."

// missedRule finds one of these sentences.
type missedRule struct {
	key     string
	matches *regexp.Regexp
	names   []string
}

// missedRules are made from the English catalog. Those with more words of their own
// come first.
func missedRules(english *language) (rules []missedRule) {
	words := map[string]int{}
	for key, m := range english.messages {
		if !strings.HasPrefix(key, "missed.") || strings.HasPrefix(key, missedLevel) {
			continue
		}
		r := missedRule{key: key}
		var b strings.Builder
		rest := m.other
		for {
			before, after, more := strings.Cut(rest, "{")
			b.WriteString(regexp.QuoteMeta(before))
			words[key] += len(before)
			if !more {
				break
			}
			name, tail, _ := strings.Cut(after, "}")
			r.names = append(r.names, name)
			b.WriteString(`(.*?)`)
			rest = tail
		}
		r.matches = regexp.MustCompile(`(?s)^` + b.String() + `$`)
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b missedRule) int {
		if d := words[b.key] - words[a.key]; d != 0 {
			return d
		}
		return strings.Compare(a.key, b.key)
	})
	return rules
}

// missed says such a sentence in the page's language, and one that it does not know
// as it is.
func (s *server) missed(v *visit, why string) (template.HTML, error) {
	why = shortened(why, noteShown)
	for _, r := range s.missedRules {
		found := r.matches.FindStringSubmatch(why)
		if found == nil {
			continue
		}
		var args []any
		for i, name := range r.names {
			word := marked(found[i+1], false)
			if name == "why" { // another of these sentences
				var err error
				if word, err = s.missed(v, found[i+1]); err != nil {
					return "", err
				}
			} else if level, err := v.text(missedLevel + found[i+1]); err == nil {
				word = level
			}
			args = append(args, name, word)
		}
		return v.text(r.key, args...)
	}
	return marked(why, false), nil
}
