package openapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

type level int

func (level) MarshalText() ([]byte, error) { return []byte("low"), nil }

type colour string

type inner struct {
	Name string `json:"name"`
}

type outer struct {
	inner
	Level   level             `json:"level"`
	Colour  colour            `json:"colour,omitempty"`
	Next    *outer            `json:"next,omitempty"`
	Cursor  *string           `json:"cursor"`
	Bytes   []byte            `json:"bytes,omitempty"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Links   map[string]string `json:"links,omitempty"`
	List    []inner           `json:"list"`
	Count   uint16            `json:"count"`
	Hidden  string            `json:"-"`
	private string
}

type itself struct{}

func (itself) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

type page[T any] struct {
	Data []T `json:"data"`
}

// schemaOf is the schema of what an operation gives, and the components beside it,
// as JSON.
func schemaOf(t *testing.T, body any, taken bool) (schema, components string, err error) {
	t.Helper()
	op := Operation{Method: "GET", Path: "/x/{id}", Answers: []Answer{{Status: 200, Body: body}}}
	if taken {
		op.Takes, op.Answers = body, nil
	}
	b, err := Document(Info{}, []Operation{op}, Values{reflect.TypeFor[colour](): {"red", "blue"}})
	if err != nil {
		return "", "", err
	}
	var doc struct {
		Paths      map[string]map[string]map[string]any
		Components map[string]map[string]any
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	var at any = doc.Paths["/x/{id}"]["get"]["requestBody"]
	if !taken {
		at = doc.Paths["/x/{id}"]["get"]["responses"].(map[string]any)["200"]
	}
	at = at.(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["schema"]
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return text(at), text(doc.Components["schemas"]), nil
}

func TestSchemas(t *testing.T) {
	_ = outer{private: ""}.private
	for _, test := range []struct {
		name       string
		body       any
		taken      bool
		want       string
		components []string // parts of them
	}{
		{name: "text", body: "", want: `{"type":"string"}`},
		{name: "one that writes text", body: level(0), want: `{"type":"string"}`},
		{name: "one of some", body: colour(""), want: `{"enum":["red","blue"],"type":"string"}`},
		{name: "anything", body: map[string]any{}, want: `{"additionalProperties":{},"type":"object"}`},
		{name: "an instance", body: page[inner]{}, want: `{"properties":{"data":{"items":{"$ref":"#/components/schemas/OpenapiInner"},"type":"array"}},"required":["data"],"type":"object"}`},
		{name: "a struct", body: outer{}, want: `{"$ref":"#/components/schemas/OpenapiOuter"}`, components: []string{
			`"required":["count","cursor","level","list","name"]`, `"next":{"$ref":"#/components/schemas/OpenapiOuter"}`,
			`"cursor":{"anyOf":[{"type":"string"},{"type":"null"}]}`, `"bytes":{"contentEncoding":"base64","type":"string"}`, `"raw":{}`,
			`"count":{"minimum":0,"type":"integer"}`, `"links":{"additionalProperties":{"type":"string"},"type":"object"}`,
		}},
		{name: "of what is taken everything may be missing", body: inner{}, taken: true, want: `{"$ref":"#/components/schemas/OpenapiInnerBody"}`,
			components: []string{`{"OpenapiInnerBody":{"properties":{"name":{"type":"string"}},"type":"object"}}`}},
	} {
		got, components, err := schemaOf(t, test.body, test.taken)
		if err != nil || got != test.want {
			t.Errorf("%s: %s, %v", test.name, got, err)
		}
		for _, part := range test.components {
			if !strings.Contains(components, part) {
				t.Errorf("%s: %s is not in %s", test.name, part, components)
			}
		}
		if strings.Contains(components, "Hidden") || strings.Contains(components, "private") {
			t.Errorf("%s tells of what is never written: %s", test.name, components)
		}
	}
	for name, body := range map[string]any{"one that writes its JSON itself": itself{}, "a channel": make(chan int)} {
		if _, _, err := schemaOf(t, body, false); err == nil {
			t.Errorf("%s is described", name)
		}
	}
}

func TestDocumentRefuses(t *testing.T) {
	op := Operation{Method: "GET", Path: "/x"}
	if _, err := Document(Info{}, []Operation{op, op}, nil); err == nil {
		t.Error("an operation stands there twice")
	}
	b, err := Document(Info{Title: "T"}, []Operation{{Method: "GET", Path: "/x/{rest...}", Answers: []Answer{
		{Status: 200, Body: ""}, {Status: 200, Body: 1}, {Status: 304},
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"openapi":"3.1.0"`, `"/x/{rest}"`, `"anyOf":[{"type":"string"},{"type":"integer"}]`, `"in":"path"`, `"304":{"description":"Not Modified"}`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("%s is not in %s", part, b)
		}
	}
}
