package authority

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"vogt/internal/api"
	"vogt/internal/catalog"
	"vogt/internal/coverage"
	"vogt/internal/detail"
	"vogt/internal/flow"
	"vogt/internal/grant"
)

// Shapes lists the programs that the authority's catalog knows, by name. It reads
// the whole catalog and is for callers that keep the answer.
func (a *Authority) Shapes() []api.Shape {
	c := a.reader.Catalog()
	names := c.Names()
	out := make([]api.Shape, 0, len(names))
	for _, name := range names {
		if s, ok := shapeOf(c, name); ok {
			out = append(out, s)
		}
	}
	return out
}

// Shape is one of them.
func (a *Authority) Shape(name string) (api.Shape, error) {
	s, ok := shapeOf(a.reader.Catalog(), name)
	if !ok {
		return s, problem(404, "The catalog does not know this program", "", "See what it knows: vogt catalog list.").kind("not_found")
	}
	return s, nil
}

func shapeOf(c *catalog.Catalog, name string) (api.Shape, bool) {
	e := c.Entry(name)
	if e == nil {
		return api.Shape{}, false
	}
	out := api.Shape{CLI: name, Executable: name, Description: e.About, Source: "custom", Operations: []struct{}{}}
	if text, ok := catalog.Source(name); ok && strings.HasPrefix(e.Source, "catalog/") {
		sum := sha256.Sum256([]byte(text))
		out.Source, out.Digest = "builtin", "sha256:"+hex.EncodeToString(sum[:])
	}
	return out, true
}

// Resolve reads an argument list as it would be read in a request, without one.
func (a *Authority) Resolve(in api.Resolve) (out api.Resolved, err error) {
	if len(in.Argv) == 0 {
		return out, problem(400, "The argument list is empty", "argv begins with the program.", "")
	}
	read, err := flow.Read(a.reader, grant.Request{Command: in.Argv})
	if err != nil {
		return out, problem(400, "The command cannot be run", err.Error()+".", "")
	}
	for i, d := range read.Details {
		c, ok := d.(detail.Command)
		if !ok {
			continue
		}
		w := coverage.Widening{Scope: "exact", Label: read.Calls[i].Shown(), Detail: c}.Wire()
		w.Constraints = &detail.Constraints{ExactCommand: true}
		out.Details = append(out.Details, w)
	}
	if len(out.Details) == 0 {
		return out, problem(400, "The command cannot be read", "", "")
	}
	first := out.Details[0]
	if in.CLI != "" && in.CLI != first.CLI {
		return out, problem(400, "The program is another one", "cli_id and argv name different programs.", "")
	}
	out.CLI, out.Operation, out.Detail, out.Permission = first.CLI, first.Operation, first, first.Permission
	out.Executable, out.Command, out.Bindings = in.Argv[0], in.Argv[1:], map[string]string{}
	out.Synthetic = first.Operation == detail.GenericOperation
	digest := "synthetic"
	if s, ok := shapeOf(a.reader.Catalog(), first.CLI); ok && s.Digest != "" && !out.Synthetic {
		digest = s.Digest
	}
	out.Context = grant.Context{
		Argv: in.Argv, ArgvHash: detail.ArgvHash(in.Argv), AdapterID: first.CLI, AdapterVer: catalog.Version, AdapterDig: digest, Executable: in.Argv[0],
	}
	return out, nil
}
