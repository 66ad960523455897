package authoritytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"vogt/internal/api"
)

// described compares answers with what GET /api/openapi.json says of them, for
// every call of every test, so that the document is true of what is really sent.
type described struct {
	once     sync.Once
	err      error
	compiler *jsonschema.Compiler
	paths    map[string]map[string]operation // by address, by method

	mu      sync.Mutex // of what follows, and of the compiler
	schemas map[string]*jsonschema.Schema
}

type operation struct {
	Responses map[string]struct {
		Content map[string]struct {
			Schema any `json:"schema"`
		} `json:"content"`
	} `json:"responses"`
}

// documentURL names the document for the compiler; it is never fetched.
const documentURL = "https://vogt.invalid/openapi.json"

// open reads the document from the interface itself. For the comparison, objects of
// known members have no others: who adds one describes it by its type.
func (d *described) open(h http.Handler, host string) error {
	d.once.Do(func() {
		req, err := http.NewRequest("GET", "http://"+host+api.PathOpenAPI, nil)
		if err != nil {
			d.err = err
			return
		}
		var got recorded
		h.ServeHTTP(&got, req)
		if got.status != 0 && got.status != http.StatusOK {
			d.err = fmt.Errorf("the document: %d %s", got.status, got.body.Bytes())
			return
		}
		var parsed struct {
			Paths map[string]map[string]operation `json:"paths"`
		}
		if d.err = json.Unmarshal(got.body.Bytes(), &parsed); d.err != nil {
			return
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(got.body.Bytes()))
		if err != nil {
			d.err = err
			return
		}
		shut(document)
		d.paths, d.schemas, d.compiler = parsed.Paths, map[string]*jsonschema.Schema{}, jsonschema.NewCompiler()
		d.err = d.compiler.AddResource(documentURL, document)
	})
	return d.err
}

// compare fails the test if an answer is not as the interface describes itself. An
// authority in another process, and its pages, are not compared.
func (s *Server) compare(method, path, host string, a Answer) error {
	h := s.handler.Load()
	if h == nil || "http://"+host != s.URL {
		return nil
	}
	if err := s.says.open(*h, host); err != nil {
		return err
	}
	if what := s.says.differs(method, path, a); what != "" {
		s.T.Error(what)
	}
	return nil
}

// shut closes every object that names its members.
func shut(v any) {
	switch v := v.(type) {
	case map[string]any:
		_, named := v["properties"].(map[string]any)
		if _, open := v["additionalProperties"]; named && v["type"] == "object" && !open {
			v["additionalProperties"] = false
		}
		for _, member := range v {
			shut(member)
		}
	case []any:
		for _, member := range v {
			shut(member)
		}
	}
}

// differs says how an answer differs from what the document says, "" for not at
// all.
func (d *described) differs(method, target string, a Answer) string {
	path, _, _ := strings.Cut(target, "?")
	address, op, found := d.find(strings.ToLower(method), path)
	if !found {
		return "" // the answers for what is not there, and the ways to the pages
	}
	status := strconv.Itoa(a.Status)
	response, named := op.Responses[status]
	if !named {
		if a.Status < 400 {
			return fmt.Sprintf("an answer %d is not described for %s %s", a.Status, method, address)
		}
		status, response = "default", op.Responses["default"]
	}
	media, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if len(response.Content) == 0 {
		if len(a.Body) > 0 {
			return fmt.Sprintf("an answer %d of %s %s has no body by the document", a.Status, method, address)
		}
		return ""
	}
	if _, ok := response.Content[media]; !ok || err != nil {
		return fmt.Sprintf("an answer %d of %s %s is %q, which is not described", a.Status, method, address, media)
	}
	if !strings.HasSuffix(media, "json") {
		return ""
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Body))
	if err != nil {
		return err.Error()
	}
	pointer := "#/paths/" + escaped(address) + "/" + strings.ToLower(method) + "/responses/" + status + "/content/" + escaped(media) + "/schema"
	schema, err := d.schema(pointer)
	if err != nil {
		return err.Error()
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Sprintf("%s %s: %d is not as described: %v\n%.1000s", method, address, a.Status, err, a.Body)
	}
	return ""
}

func (d *described) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.schemas[pointer]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(documentURL + pointer)
	if err == nil {
		d.schemas[pointer] = s
	}
	return s, err
}

// escaped is a name as part of a JSON pointer (RFC 6901) in a fragment.
func escaped(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
}

// find is the operation that net/http's patterns lead a path to: of those that
// match, the one with the fewest places that vary.
func (d *described) find(method, path string) (address string, op operation, found bool) {
	parts, fewest := strings.Split(path, "/"), len(path)+1
	for candidate, methods := range d.paths {
		operation, ok := methods[method]
		names := strings.Split(candidate, "/")
		if !ok || len(names) != len(parts) {
			continue
		}
		vary, match := 0, true
		for i, name := range names {
			switch {
			case strings.HasPrefix(name, "{"):
				vary++
				match = match && parts[i] != ""
			default:
				match = match && name == parts[i]
			}
		}
		if match && vary < fewest {
			address, op, found, fewest = candidate, operation, true, vary
		}
	}
	return address, op, found
}

// recorded is an answer that nobody else gets.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorded) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}
func (r *recorded) WriteHeader(status int)      { r.status = status }
func (r *recorded) Write(b []byte) (int, error) { return r.body.Write(b) }
