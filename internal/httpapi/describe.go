package httpapi

import (
	"net/http"
	"reflect"
	"strings"
	"sync"

	"vogt/internal/api"
	"vogt/internal/detail"
	"vogt/internal/grant"
	"vogt/internal/openapi"
	"vogt/internal/statement"
)

// How to add an address: one line in routes, with what it does, what it takes and
// what it gives.
//
//	s.signedIn("POST "+api.PathThings, makeThing, about{says: "Makes a thing.", takes: api.Thing{}, status: 201, gives: api.Thing{}})
//
// That line is all: it wires the handler and it describes it in GET
// /api/openapi.json. Bodies are values of the types that the handler reads and
// writes. Tests fail for an address without a description, and for an answer to
// any call of any test that is not as described.

// about describes one address.
type about struct {
	says   string   // what it does, in one line
	query  []string // "name: what it is for"
	header []string // the same, of request headers
	takes  any      // a value of the body's type; nil for none
	gives  any      // the same, of the answer's; nil for an answer without a body
	status int      // of that answer; 0 for 200
	media  string   // of that answer, where it is not JSON
	also   []openapi.Answer
	// fails is a value of the body of all other answers, in application/json; nil
	// for problem documents.
	fails any
}

// nothing is the answer {}, done one that says so.
type (
	nothing struct{}
	done    struct {
		OK bool `json:"ok"`
	}
)

// The bodies of addresses that have no type in package api, because no client of
// ours uses them.
type (
	patchedAgent struct {
		Active    *bool  `json:"isActive,omitempty"`
		Paused    *bool  `json:"paused,omitempty"`
		PublicKey string `json:"publicKey,omitempty"`
	}
	newUserKey struct {
		PublicKey string `json:"publicKey"`
		Name      string `json:"name"`
	}
	managedAgent struct {
		Email    string `json:"email"`
		Name     string `json:"name"`
		Owner    string `json:"owner"`
		Approver string `json:"approver"`
		Type     string `json:"type"`
		Status   string `json:"status"`
		Safe     int    `json:"seeded_safe_commands"`
	}
	newUser struct {
		OK    bool   `json:"ok"`
		Email string `json:"email"`
		Name  string `json:"name"`
	}
	keySet struct {
		Keys []map[string]any `json:"keys"`
	}
)

// values are the strings that types of package api may have.
func values() openapi.Values {
	return openapi.Values{
		reflect.TypeFor[grant.Status]():      texts(grant.Pending, grant.Approved, grant.Denied, grant.Revoked, grant.Expired, grant.Used),
		reflect.TypeFor[grant.Type]():        texts(grant.Once, grant.Timed, grant.Always),
		reflect.TypeFor[grant.Strength]():    texts(grant.Bearer, grant.Click, grant.Passkey, grant.Independent),
		reflect.TypeFor[grant.Deed]():        texts(grant.DeedRead, grant.DeedWrite, grant.DeedDelete, grant.DeedConnect, grant.DeedAny),
		reflect.TypeFor[grant.Class]():       texts(grant.Classes()...),
		reflect.TypeFor[statement.Purpose](): texts(statement.Run, statement.Crossing, statement.Standing, statement.Trust, statement.Login, statement.Connect),
		reflect.TypeFor[detail.Risk](): {
			detail.Unrated.String(), detail.Low.String(), detail.Medium.String(), detail.High.String(), detail.Critical.String(),
		},
	}
}

func texts[T ~string](list ...T) (out []string) {
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

// describe notes an address for the document. What stands there without about is
// in it by name alone.
func (s *server) describe(pattern string, login bool, abouts []about) {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		return // the address for everything else
	}
	var a about
	if len(abouts) > 0 {
		a = abouts[0]
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	op := openapi.Operation{
		Method: method, Path: path, Says: a.says, Login: login, Takes: a.takes, Query: parameters(a.query), Header: parameters(a.header),
		Answers: append([]openapi.Answer{{Status: a.status, Body: a.gives, Media: a.media}}, a.also...), Fails: a.fails,
	}
	if op.Fails == nil {
		op.Fails, op.FailsAs = api.Problem{}, "application/problem+json"
	}
	s.operations = append(s.operations, op)
}

// describePage notes an address of the pages' host. Those that programs have, too,
// are described there.
func (s *server) describePage(pattern string, abouts []about) {
	method, path, _ := strings.Cut(pattern, " ")
	for _, op := range s.operations {
		if op.Method == method && op.Path == path {
			return
		}
	}
	s.describe(pattern, false, abouts)
	if len(s.operations) > 0 {
		s.operations[len(s.operations)-1].Server = s.pagesOrigin
	}
}

func parameters(lines []string) (out []openapi.Parameter) {
	for _, line := range lines {
		name, says, _ := strings.Cut(line, ": ")
		out = append(out, openapi.Parameter{Name: name, Says: says})
	}
	return out
}

// document returns what makes the document, once it is asked for the first time.
func (s *server) document() func() ([]byte, error) {
	return sync.OnceValues(func() ([]byte, error) {
		return openapi.Document(openapi.Info{
			Title: "Vogt", Version: s.Version, Server: s.issuerOrigin,
			Says: "The grants of agents: what they ask for, who answers, and that a permission is used once. " +
				"Unknown members of objects are ignored in both directions. Times are Unix seconds unless a name says otherwise.",
			Login: "A login token from POST " + api.PathAuthenticate + "; for POST " + api.PathGrants + "/{id}/consume the grant's own token.",
		}, s.operations, values())
	})
}

func openAPI(c *call) error {
	b, err := c.s.describing()
	if err != nil {
		return err
	}
	c.Header().Set("Content-Type", "application/json")
	_, _ = c.ResponseWriter.Write(b) // the caller may be gone
	return nil
}
