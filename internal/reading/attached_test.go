package reading

import (
	"strings"
	"testing"

	"vogt/internal/catalog"
)

func TestAttached(t *testing.T) {
	for _, tt := range []struct{ way, word, want string }{
		{"at", "@/etc/shadow", "r:/etc/shadow"},
		{"at", "a@b", ""},
		{"at", "@-", ""},
		{"at", "@<>", "r:…"},
		{"at", "@a/<>", "r:a/…"},
		{"at", "<>", "r:…"},
		{"at", "x=<>", ""},
		{"name-at", "n@f", "r:f"},
		{"name-at", "@f", "r:f"},
		{"name-at", "=a@b", ""},
		{"name-at", "n=a@b", ""},
		{"form", "f=@a.txt", "r:a.txt"},
		{"form", "f=@a.txt;type=text/plain", "r:a.txt"},
		{"form", "f=@a,b;type=x,c", "r:a r:b r:c"},
		{"form", `f=@"a;b,c",d`, "r:a;b,c r:d"},
		{"form", "f=<a", "r:a"},
		{"form", "f=a@b", ""},
		{"form", "f=<>", "r:…"},
		{"form", "f=@<>", "r:…"},
		{"assign", "k=@f", "r:f"},
		{"assign", "@f", "r:f"},
		{"assign", "k=v@f", ""},
		{"assign", "k=<>", "r:…"},
		{"pair", "f", "r:f"},
		{"pair", "k=f", "r:f"},
		{"item", "n@f", "r:f"},
		{"item", "n=@f", "r:f"},
		{"item", "n:=@f", "r:f"},
		{"item", "n=a@b", ""},
		{"item", "http://u@h/", ""},
		{"url", "file:///etc/passwd", "r:/etc/passwd"},
		{"url", "FILEB://x", "r:x"},
		{"url", "file://<>", "r:…"},
		{"url", "https://h/file://x", ""},
		{"cookie", "jar.txt", "r:jar.txt"},
		{"cookie", "a=b", ""},
		{"volume", "/etc:/e", "r:/etc w:/etc"},
		{"volume", "/etc:/e:ro", "r:/etc"},
		{"volume", "/etc:/e:z,ro", "r:/etc"},
		{"volume", "./a:/e", "r:./a w:./a"},
		{"volume", "~/a:/e", "r:~/a w:~/a"},
		{"volume", "<>:/e", "r:… w:…"},
		{"volume", "data:/e", ""},
		{"volume", "/e", ""},
		{"volume", `C:\a:/e`, `r:C:\a w:C:\a`},
		{"mount", "type=bind,src=/etc,dst=/e", "r:/etc w:/etc"},
		{"mount", "type=bind,source=/etc,target=/e,readonly", "r:/etc"},
		{"mount", "type=volume,src=data,dst=/e", ""},
		{"mount", "type=tmpfs,dst=/e", ""},
		{"mount", "<>", "r:…"},
	} {
		w := catalog.Word{Text: tt.word}
		if strings.Contains(tt.word, "<>") {
			w = wordOf(strings.ReplaceAll(tt.word, "<>", hole))
		}
		var got []string
		for _, p := range attached(tt.way, w) {
			got = append(got, p.role.String()[:1]+":"+p.word.Shown())
		}
		if shown := strings.Join(got, " "); shown != tt.want {
			t.Errorf("%s %q: %s, want %s", tt.way, tt.word, shown, tt.want)
		}
	}
	// Each way that the format has is read.
	for _, way := range catalog.Attachments() {
		any := false
		for _, word := range []string{"@f", "n=@f", "f", "file://f", "/f:/g", "type=bind,src=f"} {
			any = any || len(attached(way, catalog.Word{Text: word})) > 0
		}
		if !any {
			t.Errorf("%s names no file in any word", way)
		}
	}
}
