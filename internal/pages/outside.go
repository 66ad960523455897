package pages

import (
	"fmt"
	"html/template"
	"strings"
	"time"
)

// Outside has the words of what reaches people outside of these pages: letters
// and what a browser shows for a push message.
type Outside struct{ languages map[string]*language }

// NewOutside reads the catalogs.
func NewOutside() (Outside, error) {
	o := Outside{map[string]*language{}}
	for _, tag := range languages {
		l, err := loadLanguage(files, tag)
		if err != nil {
			return o, fmt.Errorf("pages: %w", err)
		}
		o.languages[tag] = l
	}
	return o, nil
}

// Language is the catalog that serves an Accept-Language header.
func (Outside) Language(accept string) string { return preferred(accept) }

// Letter is the text of a letter, in one line and in every language, since who
// reads it has chosen none. at is the time that it names.
func (o Outside) Letter(kind string, at time.Time) (string, error) {
	var parts []string
	for _, tag := range languages {
		text, err := o.languages[tag].text("letter."+kind, "time", at.UTC().Format("2006-01-02 15:04 UTC"))
		if err != nil {
			return "", err
		}
		parts = append(parts, strip(text))
	}
	return strings.Join(parts, " · "), nil
}

// Push is the title and the text of a push message about a request: who asks and
// how much is at stake. What is asked stays on the page: it may hold a secret,
// and a lock screen shows this to everybody.
func (o Outside) Push(tag, agent, risk string) (title, body string, err error) {
	level := "risk." + risk
	l := o.language(tag)
	if _, known := l.messages[level]; !known {
		level = "risk.unrated"
	}
	text, err := l.text(level)
	if err == nil {
		text, err = l.text("push.body", "name", agent, "risk", text)
	}
	heading, err := o.heading(tag, err)
	return heading, strip(text), err
}

// PushAccount is the same for something that happened to the account.
func (o Outside) PushAccount(tag string) (title, body string, err error) {
	text, err := o.language(tag).text("push.account")
	heading, err := o.heading(tag, err)
	return heading, strip(text), err
}

func (o Outside) heading(tag string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text, err := o.language(tag).text("push.title")
	return strip(text), err
}

func (o Outside) language(tag string) *language {
	if l := o.languages[tag]; l != nil {
		return l
	}
	return o.languages[languages[0]]
}

// strip is plain for text of which every part was escaped.
func strip(h template.HTML) string { return plain(h) }
