package pages

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"strconv"
	"strings"

	"vogt/internal/trap"
)

// languages are the catalogs, the first is the fallback.
var languages = []string{"en", "de"}

// message is one entry of a catalog: text with {placeholders}, in up to three
// plural forms. A message without plural has only other.
type message struct {
	zero, one, other string
}

// language is one catalog and the habits of writing that go with it.
type language struct {
	tag      string
	messages map[string]message
	// notes is the language of what reading says of a command.
	notes    trap.Language
	months   []string
	weekdays []string // from Sunday
}

// loadLanguage reads messages/<tag>.json: an object of key to string, or of
// key to {"zero", "one", "other"} where zero is optional. Catalogs are trusted
// HTML of which only <b> and <code> are used; what is filled into their
// placeholders is always escaped.
func loadLanguage(files fs.FS, tag string) (*language, error) {
	raw, err := fs.ReadFile(files, "messages/"+tag+".json")
	if err != nil {
		return nil, err
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, fmt.Errorf("messages/%s.json: %w", tag, err)
	}
	l := &language{tag: tag, messages: make(map[string]message, len(entries))}
	for key, value := range entries {
		var plain string
		if json.Unmarshal(value, &plain) == nil {
			l.messages[key] = message{other: plain}
			continue
		}
		var forms struct{ Zero, One, Other string }
		if err := json.Unmarshal(value, &forms); err != nil {
			return nil, fmt.Errorf("messages/%s.json: %s: %w", tag, key, err)
		}
		l.messages[key] = message{zero: forms.Zero, one: forms.One, other: forms.Other}
	}
	if tag == "de" {
		l.notes = trap.German
	}
	l.months = strings.Fields(l.messages["months"].other)
	l.weekdays = strings.Fields(l.messages["weekdays"].other)
	if len(l.months) != 12 || len(l.weekdays) != 7 {
		return nil, fmt.Errorf("messages/%s.json: want 12 months and 7 weekdays", tag)
	}
	return l, nil
}

// text returns the message for key. Arguments are pairs of placeholder name
// and value; values are escaped unless they are template.HTML.
func (l *language) text(key string, args ...any) (template.HTML, error) {
	m, ok := l.messages[key]
	if !ok {
		return "", fmt.Errorf("catalog %s: no message %q", l.tag, key)
	}
	return fill(key, m.other, args)
}

// count returns the plural form of key for n, which also fills {n}.
func (l *language) count(key string, n any, args ...any) (template.HTML, error) {
	m, ok := l.messages[key]
	if !ok || m.one == "" {
		return "", fmt.Errorf("catalog %s: no plural message %q", l.tag, key)
	}
	number, err := asInt(n)
	if err != nil {
		return "", fmt.Errorf("catalog %s: %s: %w", l.tag, key, err)
	}
	form := m.other
	switch {
	case number == 0 && m.zero != "":
		form = m.zero
	case number == 1:
		form = m.one
	}
	return fill(key, form, append([]any{"n", l.number(number)}, args...))
}

// fill replaces each {name} in one pass, so that a value that looks like a
// placeholder stays what it is.
func fill(key, form string, args []any) (template.HTML, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(form, "{")
		b.WriteString(before)
		if !found {
			return template.HTML(b.String()), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		value, ok := argument(args, name)
		if !closed || !ok {
			return "", fmt.Errorf("message %q: no value for {%s}", key, name)
		}
		b.WriteString(string(value))
		form = after
	}
}

func argument(args []any, name string) (template.HTML, bool) {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] != name {
			continue
		}
		if html, ok := args[i+1].(template.HTML); ok {
			return html, true
		}
		return template.HTML(template.HTMLEscapeString(fmt.Sprint(args[i+1]))), true
	}
	return "", false
}

func asInt(n any) (int64, error) {
	switch n := n.(type) {
	case int:
		return int64(n), nil
	case int64:
		return n, nil
	}
	return 0, fmt.Errorf("cannot count with %T", n)
}

// number groups digits as the language does.
func (l *language) number(n int64) string {
	s, sign := strconv.FormatInt(n, 10), ""
	if n < 0 {
		s, sign = s[1:], "-"
	}
	var b strings.Builder
	for i, digit := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteString(l.messages["thousands"].other)
		}
		b.WriteRune(digit)
	}
	return sign + b.String()
}

// scriptWords are the messages that the script shows, by their name there.
func (l *language) scriptWords() map[string]any {
	words := map[string]any{"lang": l.tag}
	for key, m := range l.messages {
		name, ok := strings.CutPrefix(key, "js.")
		if !ok {
			continue
		}
		if m.one != "" {
			words[name] = map[string]string{"one": m.one, "other": m.other}
			continue
		}
		words[name] = m.other
	}
	return words
}

// preferred picks a catalog from an Accept-Language header (RFC 9110, 12.5.4):
// the known language with the highest weight, the earlier one on a tie. A
// language that the header gives weight zero is not chosen.
func preferred(header string) string {
	best, bestWeight := languages[0], 0.0
	if len(header) > 1000 {
		return best
	}
	for item := range strings.SplitSeq(header, ",") {
		tag, params, _ := strings.Cut(strings.TrimSpace(item), ";")
		weight := 1.0
		if value, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			parsed, err := strconv.ParseFloat(value, 64)
			if err != nil || !(parsed >= 0 && parsed <= 1) {
				continue
			}
			weight = parsed
		}
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		if weight > bestWeight && known(primary) {
			best, bestWeight = primary, weight
		}
	}
	return best
}

func known(tag string) bool {
	for _, l := range languages {
		if l == tag {
			return true
		}
	}
	return false
}
