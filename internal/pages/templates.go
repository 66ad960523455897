package pages

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"path"

	"vogt/internal/detail"
)

// view is a page's template, ready to run.
type view struct{ t *template.Template }

func (v *view) execute(w io.Writer, f *frameData) error {
	if v == nil {
		return fmt.Errorf("no such page")
	}
	return v.t.ExecuteTemplate(w, "page", f)
}

// parseTemplates makes one set for each page: the layout, the shared parts,
// and the page, whose name is that of its file.
func parseTemplates(l *language, assets map[string]string) (map[string]*view, error) {
	asset := func(name string) (string, error) {
		if assets[name] == "" {
			return "", fmt.Errorf("no asset %q", name)
		}
		return assets[name], nil
	}
	more, err := files.ReadFile("assets/more.svg")
	if err != nil {
		return nil, err
	}
	base := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"t":     l.text,
		"n":     l.count,
		"num":   func(n any) (string, error) { v, err := asInt(n); return l.number(v), err },
		"asset": asset,
		"icon": func(name string) template.HTML {
			picture := "icons.svg"
			if bytes.Contains(more, []byte(` id="`+name+`"`)) {
				picture = "more.svg"
			}
			return template.HTML(`<svg class="i" aria-hidden="true"><use href="` + assets[picture] + `#` + template.HTMLEscapeString(name) + `"/></svg>`)
		},
		"shown":    func(s string) template.HTML { return marked(s, false) },
		"prose":    prose,
		"masked":   maskedText,
		"lines":    func(s string) template.HTML { return marked(s, true) },
		"command":  command,
		"mark":     func(p Person) string { return initials(p.label()) },
		"label":    func(p Person) template.HTML { return marked(p.label(), false) },
		"riskname": func(r detail.Risk) string { return r.String() },
		"dict":     dict,
	})
	if _, err := base.ParseFS(files, "templates/layout.html", "templates/parts.html"); err != nil {
		return nil, err
	}
	entries, err := files.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	views := map[string]*view{}
	for _, e := range entries {
		name := e.Name()
		if name == "layout.html" || name == "parts.html" {
			continue
		}
		set, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if _, err := set.ParseFS(files, path.Join("templates", name)); err != nil {
			return nil, err
		}
		views[name[:len(name)-len(".html")]] = &view{set}
	}
	return views, nil
}

// dict makes the argument of a part that needs more than one value.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: key %v is not a string", pairs[i])
		}
		m[key] = pairs[i+1]
	}
	return m, nil
}
