package pages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// asset is a file whose address carries the hash of its content, so that a
// browser may keep it for ever. It is compressed once, at start.
type asset struct {
	kind string // media type
	body []byte
	gzip []byte
}

// addAssets registers styles, scripts and pictures, and returns their addresses
// by logical name. A script begins with the words of its language.
func (s *server) addAssets(l *language) (map[string]string, error) {
	words, err := json.Marshal(l.scriptWords())
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, file := range []struct {
		name, kind string
		parts      []string
	}{
		{"vogt.css", "text/css; charset=utf-8", []string{"vogt.css"}},
		{"more.css", "text/css; charset=utf-8", []string{"more.css"}},
		{"app.js", "text/javascript; charset=utf-8", []string{"core.js", "app.js"}},
		{"account.js", "text/javascript; charset=utf-8", []string{"core.js", "app.js", "push.js"}},
		{"gate.js", "text/javascript; charset=utf-8", []string{"core.js", "gate.js"}},
		{"icons.svg", "image/svg+xml", []string{"icons.svg"}},
		{"more.svg", "image/svg+xml", []string{"more.svg"}}, // what the inbox does without
		{"icon.svg", "image/svg+xml", []string{"icon.svg"}},
	} {
		ext := path.Ext(file.name)
		var body []byte
		if ext == ".js" {
			body = fmt.Appendf(nil, "const words=%s;\n", words)
		}
		for _, part := range file.parts {
			source, err := files.ReadFile("assets/" + part)
			if err != nil {
				return nil, err
			}
			body = append(body, compact(source, ext)...)
		}
		sum := sha256.Sum256(body)
		address := "/assets/" + strings.TrimSuffix(file.name, ext) + "-" + base64.RawURLEncoding.EncodeToString(sum[:6]) + ext
		names[file.name] = address
		if s.assets[address] == nil {
			var zipped bytes.Buffer
			z, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
			if err != nil {
				return nil, err
			}
			if _, err := z.Write(body); err != nil {
				return nil, err
			}
			if err := z.Close(); err != nil {
				return nil, err
			}
			s.assets[address] = &asset{kind: file.kind, body: body, gzip: zipped.Bytes()}
		}
	}
	return names, nil
}

// compact drops indentation, empty lines, lines that are a // comment, and
// /* */ comments that begin a line; in a script also line breaks after braces,
// commas and semicolons, in a style sheet all of them; and spaces around
// punctuation. Our own files keep to lines for which that is safe: no string
// or template literal spans a line break.
func compact(source []byte, ext string) []byte {
	tighten := strings.NewReplacer(": ", ":", "; ", ";", ", ", ",", " { ", "{", " {", "{", "; }", "}", " }", "}", " > ", ">")
	var out bytes.Buffer
	comment := false
	for line := range bytes.Lines(source) {
		line = bytes.TrimSpace(line)
		if !comment && bytes.HasPrefix(line, []byte("/*")) {
			comment = true
		}
		if comment {
			comment = !bytes.HasSuffix(line, []byte("*/"))
			continue
		}
		if len(line) == 0 || bytes.HasPrefix(line, []byte("//")) {
			continue
		}
		if ext == ".css" {
			out.WriteString(tighten.Replace(strings.Join(strings.Fields(string(line)), " ")))
			continue
		}
		if ext == ".js" {
			line = tightScript(line)
		}
		out.Write(line)
		// After these three no statement can go on by accident.
		if !bytes.ContainsRune([]byte("{,;"), rune(line[len(line)-1])) || bytes.Contains(line, []byte("//")) {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// tightScript drops the spaces next to punctuation in a line of script, outside
// of strings. Where a template, an escape, or what could be a comment or a
// regular expression begins, it leaves the rest of the line alone; and so plus
// and minus, which may mean something else next to each other.
func tightScript(line []byte) []byte {
	out := make([]byte, 0, len(line))
	punctuation := func(i int) bool {
		return i >= 0 && i < len(line) && bytes.IndexByte([]byte("=<>?:&|,;(){}[]!\""), line[i]) >= 0
	}
	quoted := false
	for i, c := range line {
		switch {
		case bytes.IndexByte([]byte("`'/\\"), c) >= 0 && !(quoted && c != '\\'):
			return append(out, line[i:]...)
		case c == '"':
			quoted = !quoted
		case c == ' ' && !quoted && (punctuation(i-1) || punctuation(i+1)):
			continue
		}
		out = append(out, c)
	}
	return out
}

// serveWorker serves the script that shows push messages. Its address has to stay
// the same and to lie above all pages, so it is asked for anew each time.
func (s *server) serveWorker(w http.ResponseWriter, _ *http.Request) {
	body, err := files.ReadFile("assets/sw.js")
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError) // it is embedded at build time
		return
	}
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Write(compact(body, ".js"))
}

func (s *server) serveAsset(w http.ResponseWriter, r *http.Request) {
	a := s.assets["/assets/"+r.PathValue("name")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := a.body
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body = a.gzip
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

// acceptsGzip reads an Accept-Encoding header (RFC 9110, 12.5.3).
func acceptsGzip(header string) bool {
	for item := range strings.SplitSeq(header, ",") {
		coding, params, _ := strings.Cut(strings.TrimSpace(item), ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			q := strings.TrimPrefix(strings.TrimSpace(params), "q=")
			weight, err := strconv.ParseFloat(q, 64)
			return params == "" || err == nil && weight > 0
		}
	}
	return false
}
