package reading

import (
	"strings"

	"vogt/internal/catalog"
	"vogt/internal/detail"
	"vogt/internal/reading/windows"
)

// foreignShell reads a text of a shell of Windows: its commands are looked up
// as the shell's own, then as programs.
func (r *reader) foreignShell(language string, word catalog.Word, at int) {
	var calls []windows.Call
	complete := false
	text := templateOf(word)
	switch language {
	case "powershell":
		calls, complete = windows.PowerShell(text)
	case "cmd":
		calls, complete = windows.Cmd(text)
	}
	if !complete || word.Kind != catalog.Literal {
		r.unknown(-1, "code", "what the "+language+" text does is not fully known")
	}
	if len(calls) == 0 && !complete {
		r.add(&Call{Program: "?", Effects: detail.Opaque, Risk: detail.High, Via: r.out.Program, Depth: r.call.scope.depth + 1}, at)
		return
	}
	prefix := map[string]string{"powershell": "ps.", "cmd": "cmd."}[language]
	for i := range calls {
		r.foreignCall(&calls[i], prefix, at)
	}
}

// foreignCall reads one call of such a text.
func (r *reader) foreignCall(c *windows.Call, prefix string, at int) {
	s := r.child(false)
	red := &redirections{stdin: source{at: -1}}
	for _, d := range c.Redirects {
		target := foreignWord(d.Target, prefix)
		if target.Kind == catalog.Literal && nullDevice(target.Text) {
			continue
		}
		path := r.absolute(pathText(target), r.base, s)
		if d.Input {
			red.paths.Reads = append(red.paths.Reads, path)
			continue
		}
		red.effects |= detail.Writes
		red.paths.Writes = append(red.paths.Writes, path)
	}
	if len(c.Words) == 0 {
		r.bare(red, s, at)
		return
	}
	words := make([]catalog.Word, len(c.Words))
	for i, w := range c.Words {
		words[i] = foreignWord(w, prefix)
	}
	r.command(call{words: words, at: at, scope: s, red: red, external: true, namespace: prefix})
}

// foreignWord is a word of such a text. A variable of PowerShell is never an
// option, unless it is splatted.
func foreignWord(w windows.Word, prefix string) catalog.Word {
	if strings.ContainsRune(w.Text, catalog.Hole) {
		return openWord(w.Text)
	}
	if w.Literal {
		return catalog.Word{Text: w.Text}
	}
	option := prefix != "ps." || strings.HasPrefix(w.Text, "@")
	return catalog.Open(catalog.Partial, "", w.Text, string(catalog.Hole), option)
}

// nullDevice reports whether a target of Windows is the null device.
func nullDevice(name string) bool {
	return strings.EqualFold(name, "nul") || strings.EqualFold(name, "$null") || name == "/dev/null"
}

// foreignEntry finds the entry of a command of a shell of Windows.
func (r *reader) foreignEntry(name string) *catalog.Entry {
	if r.call.namespace == "" {
		return nil
	}
	return r.catalog.Entry(r.call.namespace + strings.ToLower(name))
}
