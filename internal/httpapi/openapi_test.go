package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"vogt/internal/api"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

type described struct {
	Summary    string              `json:"summary"`
	ID         string              `json:"operationId"`
	Security   []map[string]any    `json:"security"`
	Servers    []map[string]string `json:"servers"`
	Parameters []map[string]any    `json:"parameters"`
	Responses  map[string]response `json:"responses"`
}

type response struct {
	Content map[string]map[string]any `json:"content"`
}

// TestEveryAddressIsDescribed: the document is there for everybody, it says of each
// address what it does and gives, every schema in it is one, and every address in
// it exists.
func TestEveryAddressIsDescribed(t *testing.T) {
	t.Parallel()
	s := newScene(t, authoritytest.WithPages(noPages))
	a := s.Stranger().Get(api.PathOpenAPI).Want(200)
	var doc struct {
		OpenAPI    string                          `json:"openapi"`
		Paths      map[string]map[string]described `json:"paths"`
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	a.Into(&doc)
	if doc.OpenAPI != "3.1.0" || len(doc.Paths) < 40 {
		t.Fatalf("%s with %d addresses", doc.OpenAPI, len(doc.Paths))
	}
	compiler := jsonschema.NewCompiler()
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("https://vogt.invalid/openapi.json", whole); err != nil {
		t.Fatal(err)
	}
	for name := range doc.Components.Schemas {
		if _, err := compiler.Compile("https://vogt.invalid/openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
	}
	ids := map[string]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			at := strings.ToUpper(method) + " " + path
			if op.Summary == "" || len(op.Responses) < 2 {
				t.Errorf("%s is not described: give its line in routes.go an about{says: …, gives: …}", at)
			}
			for status, r := range op.Responses {
				if status[0] == '2' && len(r.Content) == 0 {
					t.Errorf("%s: nothing says what an answer %s holds", at, status)
				}
			}
			if other := ids[op.ID]; other != "" {
				t.Errorf("%s and %s have the same name %s", at, other, op.ID)
			}
			ids[op.ID] = at
			for _, p := range op.Parameters {
				if p["in"] != "path" && p["description"] == "" {
					t.Errorf("%s: parameter %v says nothing", at, p["name"])
				}
			}
			var host []string
			if len(op.Servers) > 0 { // an address of the pages' host
				if op.Servers[0]["url"] != s.Pages {
					t.Errorf("%s is at %v", at, op.Servers)
				}
				host = []string{"Host", strings.TrimPrefix(s.Pages, "http://"), "Origin", s.Pages}
			}
			got := s.Stranger().Do(strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path), nil, host...)
			if got.Status == 404 && bytes.Contains(got.Body, []byte("nothing at this address")) || got.Status == 405 && strings.HasPrefix(got.Header.Get("Content-Type"), "text/") {
				t.Errorf("%s does not exist: %d %s", at, got.Status, got.Body)
			}
			if login := len(op.Security) == 1; login && got.Status != 401 {
				t.Errorf("%s needs a login by the document, and answers a stranger %d", at, got.Status)
			}
		}
	}
}

// TestAddressesAreWiredInOnePlace: nobody gets an address past its description.
func TestAddressesAreWiredInOnePlace(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "Handle" && sel.Sel.Name != "HandleFunc" {
					return true
				}
				switch fn.Name.Name {
				// routes does it for static answers and oauth for its own errors, which they
				// describe; the addresses that lead to the pages have no answers.
				case "wire", "wirePage", "routes", "pageRoutes", "oauth", "oauthRoutes", "onPages":
					found++
				default:
					t.Errorf("%s: %s wires an address by itself; use handle or signedIn", file, fn.Name.Name)
				}
				return true
			})
		}
	}
	if found == 0 {
		t.Error("no address is wired at all")
	}
}

// TestPublishedSchemas holds what is sent to the JSON schemas of DDISA and OpenApe,
// where the clients in use do not contradict them. A request for a connection is
// Vogt's own and has a type that they do not know.
func TestPublishedSchemas(t *testing.T) {
	t.Parallel()
	compiler := jsonschema.NewCompiler()
	schema := func(name string) *jsonschema.Schema {
		sch, err := compiler.Compile(filepath.Join("testdata", "schemas", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		return sch
	}
	s := newScene(t)
	holds := func(sch *jsonschema.Schema, what string, body []byte) {
		t.Helper()
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err == nil {
			err = sch.Validate(v)
		}
		if err != nil {
			t.Errorf("%s: %v\n%.2000s", what, err, body)
		}
	}
	holds(schema("openid-configuration"), "discovery", s.Stranger().Get(api.PathDiscovery).Body)
	holds(schema("error"), "a refusal", s.Stranger().Get(api.PathGrants).Body)
	holds(schema("error"), "what is not there", s.agent.Get(authoritytest.GrantPath("none")).Body)

	one := schema("grant")
	ask := func(kind string, argv ...string) string {
		body := shaped(s.agent.Email, argv...)
		body["grant_type"] = kind
		if delete(body, "duration"); kind == "timed" {
			body["duration"] = 3600
		}
		a := s.agent.Post(api.PathGrants, body).Want(201)
		holds(one, "created "+kind, a.Body)
		var g api.Grant
		a.Into(&g)
		return g.ID
	}
	read := func(what, id string) {
		t.Helper()
		holds(one, what, s.agent.Get(authoritytest.GrantPath(id)).Want(200).Body)
	}
	for _, kind := range []string{"once", "timed", "always"} {
		id := ask(kind, "make", kind)
		s.owner.Post(authoritytest.GrantPath(id, "approve"), nil).Want(200)
		read("approved "+kind, id)
		jwt := s.agent.Token(id)
		claims, err := base64.RawURLEncoding.DecodeString(strings.Split(jwt, ".")[1])
		if err != nil {
			t.Fatal(err)
		}
		holds(schema("authz-jwt-claims"), "the token of "+kind, claims)
		s.Consume(id, jwt).Want(200)
		read("used "+kind, id)
		if kind != "once" {
			s.owner.Post(authoritytest.GrantPath(id, "revoke"), nil).Want(200)
			read("revoked "+kind, id)
		}
	}
	denied := ask("once", "rm", "-rf", "/")
	s.owner.Post(authoritytest.GrantPath(denied, "deny"), nil).Want(200)
	read("denied", denied)
	late := ask("once", "late")
	s.Clock.Advance(49 * time.Hour)
	s.agent.Login()
	read("expired", late)
	var page struct {
		Data []json.RawMessage `json:"data"`
	}
	s.agent.Get(api.PathGrants).Into(&page)
	for _, g := range page.Data {
		holds(one, "listed", g)
	}
	// The schemas tell something: each refuses what lacks a member.
	for _, name := range []string{"openid-configuration", "grant", "grant-request", "authz-jwt-claims", "error"} {
		if schema(name).Validate(map[string]any{"status": string(grant.Used)}) == nil {
			t.Errorf("%s takes anything", name)
		}
	}
	if entries, err := os.ReadDir(filepath.Join("testdata", "schemas")); err != nil || len(entries) != 5 {
		t.Errorf("%d schemas, %v", len(entries), err)
	}
}
