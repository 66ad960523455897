// Package openapi makes the description of an HTTP interface (OpenAPI 3.1.0,
// whose schemas are JSON Schema 2020-12) from a list of its operations and the Go
// types of their bodies, so that the description cannot say anything else than
// the code does.
//
// It owns the document's form and how a Go type that encoding/json writes becomes
// a schema. It leaves out which operations there are, and checking anything
// against the schemas.
package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Operation is what one method does at one address.
type Operation struct {
	Method  string
	Path    string // with {name} for what varies, as net/http's patterns have it
	Says    string // what it does, in one line
	Login   bool   // nobody is answered without one
	Server  string // where it is, if not at the document's server
	Query   []Parameter
	Header  []Parameter
	Takes   any // a value of the body's type; nil for no body
	Answers []Answer
	Fails   any // a value of the body of every other status
	// FailsAs is the media type of that; application/json if empty.
	FailsAs string
}

// Parameter is a part of the query, or a header.
type Parameter struct{ Name, Says string }

// Answer is one way in which an operation succeeds. Body is a value of its type;
// with another media type than application/json it is described as text, and
// without a body there is none.
type Answer struct {
	Status int
	Body   any
	Media  string
}

// Info heads the document.
type Info struct {
	Title, Version, Says string
	Server               string // base address
	// Login says how a caller shows who it is, for the one security scheme.
	Login string
}

// Values are the strings that a type of strings may have.
type Values map[reflect.Type][]string

// Document describes the operations. Two types of one name in one package, an
// operation that stands there twice, and a type that encoding/json cannot write
// are errors.
func Document(info Info, operations []Operation, values Values) ([]byte, error) {
	s := &schemas{values: values, components: map[string]any{}, names: map[string]reflect.Type{}}
	paths := map[string]map[string]any{}
	for _, op := range operations {
		address := regexp.MustCompile(`\{(\w+)\.\.\.\}`).ReplaceAllString(op.Path, "{$1}")
		if paths[address] == nil {
			paths[address] = map[string]any{}
		}
		method := strings.ToLower(op.Method)
		if paths[address][method] != nil {
			return nil, fmt.Errorf("openapi: %s %s stands there twice", op.Method, op.Path)
		}
		described, err := s.operation(op, address)
		if err != nil {
			return nil, fmt.Errorf("openapi: %s %s: %w", op.Method, op.Path, err)
		}
		paths[address][method] = described
	}
	return json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": info.Title, "version": info.Version, "description": info.Says},
		"servers": []any{map[string]any{"url": info.Server}},
		"paths":   paths,
		"components": map[string]any{
			"schemas":         s.components,
			"securitySchemes": map[string]any{"login": map[string]any{"type": "http", "scheme": "bearer", "description": info.Login}},
		},
	})
}

func (s *schemas) operation(op Operation, address string) (map[string]any, error) {
	out := map[string]any{"operationId": operationID(op.Method, address), "summary": op.Says}
	// Where no login is needed, one may still be sent.
	out["security"] = []any{map[string]any{}, map[string]any{"login": []string{}}}
	if op.Login {
		out["security"] = []any{map[string]any{"login": []string{}}}
	}
	if op.Server != "" {
		out["servers"] = []any{map[string]any{"url": op.Server}}
	}
	var parameters []any
	add := func(in string, list []Parameter, required bool) {
		for _, p := range list {
			parameters = append(parameters, map[string]any{
				"name": p.Name, "in": in, "required": required, "description": p.Says, "schema": map[string]any{"type": "string"},
			})
		}
	}
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(address, -1) {
		add("path", []Parameter{{Name: m[1]}}, true)
	}
	add("query", op.Query, false)
	add("header", op.Header, false)
	if parameters != nil {
		out["parameters"] = parameters
	}
	if op.Takes != nil {
		schema, err := s.of(reflect.TypeOf(op.Takes), taken)
		if err != nil {
			return nil, err
		}
		out["requestBody"] = map[string]any{"content": content("", schema)}
	}
	responses := map[string]any{}
	for _, a := range op.Answers {
		response, err := s.answer(a)
		if err != nil {
			return nil, err
		}
		responses[strconv.Itoa(a.Status)] = either(responses[strconv.Itoa(a.Status)], response)
	}
	if op.Fails != nil {
		schema, err := s.of(reflect.TypeOf(op.Fails), given)
		if err != nil {
			return nil, err
		}
		responses["default"] = map[string]any{"description": "It was not done, and why.", "content": content(op.FailsAs, schema)}
	}
	out["responses"] = responses
	return out, nil
}

// either describes two answers of one status as one: a body is as one of them says.
func either(before any, response map[string]any) map[string]any {
	first, ok := before.(map[string]any)
	if !ok {
		return response
	}
	all, _ := first["content"].(map[string]any)
	further, _ := response["content"].(map[string]any)
	for media, c := range further {
		one, known := all[media].(map[string]any)
		if !known {
			all[media] = c
			continue
		}
		all[media] = map[string]any{"schema": map[string]any{"anyOf": []any{one["schema"], c.(map[string]any)["schema"]}}}
	}
	return first
}

func (s *schemas) answer(a Answer) (map[string]any, error) {
	out := map[string]any{"description": http.StatusText(a.Status)}
	switch {
	case a.Media != "" && a.Media != "application/json":
		out["content"] = content(a.Media, map[string]any{"type": "string"})
	case a.Body != nil:
		schema, err := s.of(reflect.TypeOf(a.Body), given)
		if err != nil {
			return nil, err
		}
		out["content"] = content("", schema)
	}
	return out, nil
}

func content(media string, schema any) map[string]any {
	if media == "" {
		media = "application/json"
	}
	return map[string]any{media: map[string]any{"schema": schema}}
}

// operationID is the method and the words of the address, in one word.
func operationID(method, address string) string {
	id := strings.ToLower(method)
	for _, word := range regexp.MustCompile(`[A-Za-z0-9]+`).FindAllString(address, -1) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

// way tells what a schema is for. Of what is given, everything is there that the
// type always writes; of what is taken, everything may be left out.
type way int

const (
	given way = iota
	taken
)

// schemas makes schemas, one component for each named struct.
type schemas struct {
	values     Values
	components map[string]any
	names      map[string]reflect.Type
}

// of is the schema of a type as encoding/json writes it.
func (s *schemas) of(t reflect.Type, w way) (any, error) {
	if list := s.values[t]; list != nil {
		return map[string]any{"type": "string", "enum": list}, nil
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}, nil
	case implements(t, reflect.TypeFor[json.Marshaler]()):
		return nil, fmt.Errorf("%v writes its JSON itself, which nobody can describe", t)
	case implements(t, reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem(), w)
	case reflect.Interface:
		return map[string]any{}, nil
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}, nil
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}, nil
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return map[string]any{"type": "string", "contentEncoding": "base64"}, nil
		}
		items, err := s.of(t.Elem(), w)
		return map[string]any{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := s.of(t.Elem(), w)
		return map[string]any{"type": "object", "additionalProperties": values}, err
	case reflect.Struct:
		return s.object(t, w)
	}
	return nil, fmt.Errorf("%v has no JSON", t)
}

func implements(t, what reflect.Type) bool {
	return t.Implements(what) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(what)
}

// object is a reference to a named struct's component, or the schema of one
// without a name.
func (s *schemas) object(t reflect.Type, w way) (any, error) {
	name := componentName(t, w)
	if name == "" {
		return s.fields(t, w)
	}
	ref := map[string]any{"$ref": "#/components/schemas/" + name}
	switch known := s.names[name]; {
	case known == t:
		return ref, nil
	case known != nil:
		return nil, fmt.Errorf("%v and %v would both be called %s", known, t, name)
	}
	s.names[name] = t
	fields, err := s.fields(t, w)
	s.components[name] = fields
	return ref, err
}

// componentName is the name of a type of package api, and of others with their
// package: Grant, GrantPattern. Types without a name, and instances of generic ones,
// have none.
func componentName(t reflect.Type, w way) string {
	if t.Name() == "" || strings.Contains(t.Name(), "[") {
		return "" // the name of an instance is no word
	}
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if pkg = strings.ToUpper(pkg[:1]) + pkg[1:]; pkg != "Api" && pkg != name {
		name = pkg + name
	}
	if w == taken {
		name += "Body"
	}
	return name
}

// fields is the schema of a struct. Unknown members are accepted and ignored in
// both directions, so it is open.
func (s *schemas) fields(t reflect.Type, w way) (map[string]any, error) {
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous && tag == "" || tag == "-" {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		schema, err := s.of(f.Type, w)
		if err != nil {
			return nil, fmt.Errorf("%v: %s: %w", t, f.Name, err)
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if f.Type.Kind() == reflect.Pointer && !optional {
			schema = map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
		}
		properties[tag] = schema
		if w == given && !optional {
			required = append(required, tag)
		}
	}
	out := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		out["required"] = required
	}
	return out, nil
}
