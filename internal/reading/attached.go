package reading

import (
	"strings"

	"vogt/internal/catalog"
)

// attachedPath is a path inside a word.
type attachedPath struct {
	role catalog.Role
	word catalog.Word
}

// attached returns the files that a word names by a syntax of its program's
// own. What names none is data. A part that is not known may name any.
//
//   - at: @FILE (curl --data)
//   - name-at: @FILE or NAME@FILE (curl --data-urlencode)
//   - form: NAME=@FILE,FILE;type=TYPE or NAME=<FILE (curl --form)
//   - assign: NAME=@FILE or @FILE (gh api --field)
//   - pair: FILE or NAME=FILE (kubectl --from-file)
//   - item: NAME@FILE, NAME=@FILE, NAME:=@FILE, @FILE (httpie)
//   - url: file://FILE or fileb://FILE (aws)
//   - cookie: FILE, if it holds no equals sign (curl --cookie)
//   - volume: FILE:PLACE:OPTIONS (docker --volume)
//   - mount: KEY=VALUE,… with a source (docker --mount)
func attached(syntax string, w catalog.Word) []attachedPath {
	text := templateOf(w)
	if w.Kind != catalog.Literal && text != "" && strings.HasPrefix(text, hole) && syntax != "volume" {
		return readOf(hole) // it may be anything
	}
	name, value, assigned := strings.Cut(text, "=")
	switch syntax {
	case "at":
		if rest, ok := strings.CutPrefix(text, "@"); ok {
			return readOf(rest)
		}
	case "name-at":
		if before, file, ok := strings.Cut(text, "@"); ok && !strings.Contains(before, "=") {
			return readOf(file)
		}
	case "form":
		if rest, ok := strings.CutPrefix(value, "<"); ok {
			file, _ := formFile(rest)
			return readOf(file)
		}
		if rest, ok := strings.CutPrefix(value, "@"); ok {
			var out []attachedPath
			for rest != "" {
				var file string
				file, rest = formFile(rest)
				out = append(out, readOf(file)...)
				_, rest, _ = strings.Cut(rest, ",")
			}
			return out
		}
		if strings.HasPrefix(value, hole) {
			return readOf(hole)
		}
	case "assign":
		if !assigned {
			value = name
		}
		if rest, ok := strings.CutPrefix(value, "@"); ok {
			return readOf(rest)
		}
		if strings.HasPrefix(value, hole) {
			return readOf(hole)
		}
	case "pair":
		if !assigned {
			value = name
		}
		return readOf(value)
	case "item":
		before, file, ok := strings.Cut(text, "@")
		if ok && !strings.ContainsAny(strings.TrimRight(before, ":="), ":=") {
			file, _ = formFile(file)
			return readOf(file)
		}
	case "url":
		lower := strings.ToLower(text)
		for _, scheme := range [2]string{"file://", "fileb://"} {
			if strings.HasPrefix(lower, scheme) {
				return readOf(text[len(scheme):])
			}
		}
	case "cookie":
		if !assigned {
			return readOf(text)
		}
	case "volume":
		return volume(text)
	case "mount":
		return mount(text)
	}
	return nil
}

const hole = string(catalog.Hole)

// readOf is a file that is read. A dash is standard input.
func readOf(text string) []attachedPath {
	if text == "" || text == "-" {
		return nil
	}
	return []attachedPath{{catalog.Read, wordOf(text)}}
}

// formFile is the file at the beginning of a part of curl's form, and what
// follows it (curl(1), --form).
func formFile(text string) (file, rest string) {
	if inner, ok := strings.CutPrefix(text, `"`); ok {
		file, rest, _ = strings.Cut(inner, `"`)
		return file, rest
	}
	if i := strings.IndexAny(text, ";,"); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

// volume is a folder of this machine that a container sees. A bare name is a
// volume of the engine.
func volume(text string) []attachedPath {
	source, rest, ok := strings.Cut(text, ":")
	if len(source) == 1 && strings.HasPrefix(rest, `\`) { // a drive of Windows
		drive, after, _ := strings.Cut(rest, ":")
		source, rest = source+":"+drive, after
	}
	if !ok || !strings.HasPrefix(source, hole) && strings.IndexByte("/.~", (source + "x")[0]) < 0 && !strings.Contains(source, ":") {
		return nil
	}
	_, options, _ := strings.Cut(rest, ":")
	return shared(source, strings.Contains(","+options+",", ",ro,"))
}

func mount(text string) []attachedPath {
	source, readonly, bind := "", false, false
	for _, part := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "type":
			bind = value != "volume" && value != "tmpfs" && value != "cache"
		case "source", "src":
			source = value
		case "readonly", "ro":
			readonly = value == "" || value == "true" || value == "1"
		}
	}
	if source == "" || !bind {
		return nil
	}
	return shared(source, readonly)
}

// shared is a path that is read, and unless it is read-only written.
func shared(source string, readonly bool) []attachedPath {
	out := readOf(source)
	if !readonly {
		for _, p := range out {
			out = append(out, attachedPath{catalog.Write, p.word})
		}
	}
	return out
}
