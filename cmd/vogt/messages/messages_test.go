package messages

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"vogt/internal/client"
	"vogt/internal/execution"
	"vogt/internal/execution/confine"
)

// Every message exists in both languages and takes the same arguments.
func TestCatalogIsComplete(t *testing.T) {
	verb := regexp.MustCompile(`%(\[\d+\])?[a-z]`)
	for key, texts := range catalog {
		for lang, text := range texts {
			if text == "" {
				t.Errorf("message %d is missing in language %d", key, lang)
			}
		}
		if en, de := verb.FindAllString(texts[English], -1), verb.FindAllString(texts[German], -1); !slices.Equal(en, de) {
			t.Errorf("message %d takes %q in English and %q in German", key, en, de)
		}
	}
}

// The pages say du, and so does the command line.
func TestGermanSaysDu(t *testing.T) {
	formal := regexp.MustCompile(`[\p{L},;] (Sie|Ihre?[mnrs]?|Ihnen)\b`)
	for key, texts := range catalog {
		if formal.MatchString(texts[German]) {
			t.Errorf("message %d: %s", key, texts[German])
		}
	}
}

// The ranges for kinds of errors must not run into each other.
func TestKindsHaveMessages(t *testing.T) {
	for k, want := range map[client.Kind]string{
		client.Malformed: "makes no sense", client.Forked: "different logs", client.NotConfirmed: "not confirmed",
	} {
		if got := English.Text(ForKind(k)); !strings.Contains(got, want) {
			t.Errorf("client kind %d: %q", k, got)
		}
	}
	for k := client.Malformed; k <= client.NotConfirmed; k++ {
		if got := English.Text(ForKind(k)); !strings.HasPrefix(got, firstWords(k.String())) {
			t.Errorf("kind %q has the message %q", k, got)
		}
	}
	for k := execution.Unexecutable; k <= execution.Reparsed; k++ {
		e := &execution.Error{Kind: k}
		if got := English.Text(ForExecution(k)); !strings.HasPrefix(got, firstWords(e.Error())) {
			t.Errorf("kind %q has the message %q", e, got)
		}
	}
}

// A folder that cannot be a workspace is told as the package that refuses it does.
func TestWideHasMessages(t *testing.T) {
	for w := confine.IsSystem; w <= confine.HoldsSecret; w++ {
		e := &confine.WideError{Why: w, Workspace: "/a", Other: "/b"}
		args := []any{"/a", "/b"}
		if !e.Two() {
			args = args[:1]
		}
		if got := English.Text(ForWide(w), args...) + ": " + English.Text(WideAdvice); got != e.Error() {
			t.Errorf("reason %d: %q, want %q", w, got, e)
		}
	}
}

// firstWords is enough of a text to know it by.
func firstWords(text string) string {
	words := strings.Fields(text)
	return strings.Join(words[:min(2, len(words))], " ")
}

func TestChoose(t *testing.T) {
	tests := []struct {
		lcAll, lcMessages, lang string
		want                    Lang
	}{
		{"", "", "", English},
		{"", "", "de_DE.UTF-8", German},
		{"", "", "de", German},
		{"", "", "DE_at", German},
		{"", "", "de.UTF-8", German},
		{"C", "", "de_DE.UTF-8", English},
		{"", "en_US", "de_DE", English},
		{"de_CH", "en_US", "en_US", German},
		{"", "", "del_US", English},
		{"", "", "C.UTF-8", English},
	}
	for _, tt := range tests {
		got := Choose(func(name string) string {
			return map[string]string{"LC_ALL": tt.lcAll, "LC_MESSAGES": tt.lcMessages, "LANG": tt.lang}[name]
		})
		if got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
}
