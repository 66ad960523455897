package vogt_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// listed is a package as `go list -json` prints it.
type listed struct {
	ImportPath, Name, Dir string
	Standard              bool
	Module                *struct {
		Path string
		Main bool
	}
	Imports, TestImports, XTestImports                 []string
	GoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
	Error                                              *struct{ Err string }
}

// ours reports whether the package belongs to this module.
func (p *listed) ours() bool { return p.Module != nil && p.Module.Main }

// everyFile returns the files outside of tests, for all platforms.
func (p *listed) everyFile() []string {
	var files []string
	for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
		if !strings.HasSuffix(name, "_test.go") {
			files = append(files, name)
		}
	}
	return files
}

func (p *listed) testFiles() []string {
	files := slices.Concat(p.TestGoFiles, p.XTestGoFiles)
	for _, name := range p.IgnoredGoFiles {
		if strings.HasSuffix(name, "_test.go") {
			files = append(files, name)
		}
	}
	return files
}

// graph is packages by import path.
type graph map[string]*listed

// withTests returns a graph in which our packages import what their tests do.
func (g graph) withTests() graph {
	all := make(graph, len(g))
	for name, pkg := range g {
		with := *pkg
		if pkg.ours() {
			with.Imports = slices.Concat(pkg.Imports, pkg.TestImports, pkg.XTestImports)
		}
		all[name] = &with
	}
	return all
}

// listings are the packages of the module and all that they import, for each
// platform, listed once.
var listings = func() map[string]func() (graph, error) {
	all := make(map[string]func() (graph, error))
	for _, goos := range platforms {
		all[goos] = sync.OnceValues(func() (graph, error) { return list(goos) })
	}
	return all
}()

func load(t *testing.T, goos string) graph {
	t.Helper()
	listing := listings[goos]
	if listing == nil {
		t.Fatalf("%s is not among the platforms of the rules", goos)
	}
	g, err := listing()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sorted(g) {
		if pkg := g[name]; pkg.Error != nil && pkg.ours() {
			t.Errorf("%s: %s", name, pkg.Error.Err)
		}
	}
	return g
}

func list(goos string) (graph, error) {
	cmd := exec.Command("go", "list", "-e", "-deps",
		"-json=ImportPath,Name,Dir,Standard,Module,Imports,TestImports,XTestImports,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Error", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			return nil, fmt.Errorf("go list: %w\n%s", err, exit.Stderr)
		}
		return nil, err
	}
	g := make(graph)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		pkg := new(listed)
		switch err := decoder.Decode(pkg); {
		case err == io.EOF:
			return g, nil
		case err != nil:
			return nil, err
		}
		g[pkg.ImportPath] = pkg
	}
}

// matches reports whether pattern means the package.
func matches(pattern string, pkg *listed) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg.ImportPath == tree || strings.HasPrefix(pkg.ImportPath, tree+"/")
	}
	if pattern == "std" {
		return pkg.Standard
	}
	return pkg.ImportPath == pattern
}

func matchAny(patterns []string, pkg *listed) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

// importRule says what the packages that from means may import.
type importRule struct {
	name   string
	from   []string
	only   []string // everything must match one of these, unless empty
	ban    []string // nothing may match one of these
	linked bool     // counts what is imported indirectly, too
	reason string
}

func (r importRule) broken(g graph) []string {
	var problems []string
	for _, name := range sorted(g) {
		pkg := g[name]
		if !pkg.ours() || !matchAny(r.from, pkg) {
			continue
		}
		for _, chain := range g.reached(pkg, r.linked) {
			found := chain[len(chain)-1]
			if matchAny(r.ban, found) || r.only != nil && !matchAny(r.only, found) {
				problems = append(problems, fmt.Sprintf("%s: %s must not be imported (%s)", r.name, arrows(chain), r.reason))
			}
		}
	}
	return problems
}

// reached returns the shortest chain of imports to each package that pkg
// imports. Chains do not lead through the standard library, for which its
// importer is to blame, but they reach its packages.
func (g graph) reached(pkg *listed, indirectly bool) [][]*listed {
	var found [][]*listed
	seen := map[string]bool{pkg.ImportPath: true}
	for queue := [][]*listed{{pkg}}; len(queue) > 0; queue = queue[1:] {
		chain := queue[0]
		for _, name := range chain[len(chain)-1].Imports {
			next := g[name]
			if next == nil || seen[name] {
				continue
			}
			seen[name] = true
			to := append(slices.Clip(chain), next)
			found = append(found, to)
			if indirectly {
				queue = append(queue, to)
			}
		}
	}
	return found
}

func arrows(chain []*listed) string {
	names := make([]string, len(chain))
	for i, pkg := range chain {
		names[i] = pkg.ImportPath
	}
	return strings.Join(names, " -> ")
}

func sorted(g graph) []string {
	names := make([]string, 0, len(g))
	for name := range g {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// exclusive are packages that only one package may import both of.
type exclusive struct {
	both   []string
	only   string
	reason string
}

func (e exclusive) broken(g graph) []string {
	var problems []string
	for _, name := range sorted(g) {
		all := !slices.ContainsFunc(e.both, func(p string) bool { return !slices.Contains(g[name].Imports, p) })
		if all && name != e.only {
			problems = append(problems, fmt.Sprintf("%s imports %s; only %s may (%s)", name, strings.Join(e.both, " and "), e.only, e.reason))
		}
	}
	return problems
}

// testSupport finds packages that support tests, named …test, in the imports of
// others.
func testSupport(g graph) []string {
	isSupport := func(importPath string) bool { return strings.HasSuffix(importPath, "test") }
	var problems []string
	for _, name := range sorted(g) {
		if !g[name].ours() || isSupport(name) {
			continue
		}
		for _, imported := range g[name].Imports {
			if pkg := g[imported]; pkg != nil && pkg.ours() && isSupport(imported) {
				problems = append(problems, fmt.Sprintf("%s imports %s outside of tests", name, imported))
			}
		}
	}
	return problems
}

func vagueName(importPath, name string) []string {
	last := path.Base(importPath)
	for _, vague := range vagueNames {
		if name == vague || last == vague || strings.HasSuffix(name, vague) && (vague == "util" || vague == "utils" || vague == "helpers") {
			return []string{fmt.Sprintf("the package is named %s, and such a name collects everything; name it for what it provides", name)}
		}
	}
	return nil
}

// source is parsed files of one package.
type source struct {
	fset  *token.FileSet
	files []*ast.File
}

func (s source) at(node ast.Node) string {
	position := s.fset.Position(node.Pos())
	return fmt.Sprintf("%s:%d", filepath.Base(position.Filename), position.Line)
}

func parse(t *testing.T, pkg *listed, names []string) source {
	t.Helper()
	s := source{fset: token.NewFileSet()}
	for _, name := range names {
		file, err := parser.ParseFile(s.fset, filepath.Join(pkg.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		s.files = append(s.files, file)
	}
	return s
}

var sentenceEnd = regexp.MustCompile(`[.!?:]["')]*(\s|$)`)

// packageComment demands two sentences at least: what the package owns, and
// what it leaves out.
func packageComment(s source) []string {
	var comment strings.Builder
	for _, file := range s.files {
		if file.Doc != nil {
			comment.WriteString(file.Doc.Text())
		}
	}
	if n := len(sentenceEnd.FindAllString(comment.String(), -1)); n < 2 {
		return []string{fmt.Sprintf("the package comment has %d sentences; say what the package owns and what it leaves out", n)}
	}
	return nil
}

func initFunctions(s source) []string {
	var problems []string
	for _, file := range s.files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				problems = append(problems, s.at(f)+": func init runs before anyone can decide that it should; call it from cmd")
			}
		}
	}
	return problems
}

func longBodies(s source, importPath string) []string {
	var problems []string
	for _, file := range s.files {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1
			if _, listed := longFunctions[importPath+"."+f.Name.Name]; lines > maxFunction && !listed {
				problems = append(problems, fmt.Sprintf("%s: %s has %d lines; split it (%d are the most)", s.at(f), f.Name.Name, lines, maxFunction))
			}
		}
	}
	return problems
}

// clockCalls are what reads the clock in package time, or waits by it.
var clockCalls = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// calls finds uses of some of an imported package's functions. Within
// synctest.Test the clock is false, and everything is permitted.
func calls(s source, importPath string, functions []string, reason string) []string {
	var problems []string
	for _, file := range s.files {
		name, bubble := importedAs(file, importPath), importedAs(file, "testing/synctest")
		if name == "" {
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok && bubble != "" && selects(call.Fun, bubble, []string{"Test"}) {
				return false
			}
			if expr, ok := node.(ast.Expr); ok && selects(expr, name, functions) {
				problems = append(problems, fmt.Sprintf("%s: %s.%s is used; %s", s.at(node), importPath, node.(*ast.SelectorExpr).Sel.Name, reason))
			}
			return true
		})
	}
	return problems
}

// importedAs returns the name that the file gives to a package, or "".
func importedAs(file *ast.File, importPath string) string {
	for _, spec := range file.Imports {
		if strings.Trim(spec.Path.Value, `"`) != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

func selects(expr ast.Expr, pkg string, names []string) bool {
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	ident, ok := selector.X.(*ast.Ident)
	return ok && ident.Name == pkg && slices.Contains(names, selector.Sel.Name)
}

// mutableVariables finds package-level variables that hold state: that are
// assigned to, whose address is taken, that others could change, or whose type
// exists to be changed.
//
// Names are resolved by type-checking the package alone. What it imports is
// unknown then, and does not matter.
func mutableVariables(s source, importPath string) []string {
	info := &types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: noImporter{}, Error: func(error) {}}
	pkg, _ := config.Check(importPath, s.fset, s.files, info) // its errors are about imports

	var problems []string
	add := func(node ast.Node, name, problem string) {
		if _, listed := assignedVariables[importPath+"."+name]; !listed {
			problems = append(problems, fmt.Sprintf("%s: the package-level variable %s %s; make it a field or a parameter", s.at(node), name, problem))
		}
	}
	isVariable := func(expr ast.Expr) (string, bool) {
		ident := root(expr)
		if ident == nil {
			return "", false
		}
		v, ok := info.Uses[ident].(*types.Var)
		return ident.Name, ok && v.Parent() == pkg.Scope()
	}
	for _, file := range s.files {
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.VAR {
				for _, spec := range gen.Specs {
					declared(file, gen, spec.(*ast.ValueSpec), add)
				}
			}
		}
		ast.Inspect(file, func(node ast.Node) bool {
			for _, changed := range changes(node) {
				if name, ok := isVariable(changed); ok {
					add(node, name, "is changed here, or could be")
				}
			}
			return true
		})
	}
	return problems
}

type noImporter struct{}

func (noImporter) Import(importPath string) (*types.Package, error) {
	if importPath == "unsafe" {
		return types.Unsafe, nil
	}
	return nil, errors.New("not loaded")
}

// declared looks at how a variable is declared.
func declared(file *ast.File, gen *ast.GenDecl, spec *ast.ValueSpec, add func(ast.Node, string, string)) {
	for i, name := range spec.Names {
		switch {
		case name.Name == "_" || embeds(gen.Doc) || embeds(spec.Doc):
		case len(spec.Values) == 0:
			add(name, name.Name, "has no value, so something must assign one")
		case stateful(file, spec.Type) || i < len(spec.Values) && stateful(file, spec.Values[i]):
			add(name, name.Name, "exists to be changed")
		case name.IsExported() && !constant(file, spec, i):
			add(name, name.Name, "is exported, so that others could change it")
		}
	}
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// stateful reports whether a type, or the type of a composite literal, comes
// from a package of state. Functions such as sync.OnceValue only compute.
func stateful(file *ast.File, expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.CompositeLit:
		return stateful(file, e.Type)
	case *ast.UnaryExpr:
		return stateful(file, e.X)
	case *ast.StarExpr:
		return stateful(file, e.X)
	case *ast.IndexExpr:
		return stateful(file, e.X)
	case *ast.CallExpr:
		fun, ok := e.Fun.(*ast.Ident)
		return ok && (fun.Name == "new" || fun.Name == "make")
	case *ast.SelectorExpr:
		for _, importPath := range []string{"sync", "sync/atomic"} {
			if name, ok := e.X.(*ast.Ident); ok && name.Name == importedAs(file, importPath) {
				return true
			}
		}
	case *ast.ChanType:
		return true
	}
	return false
}

// constant reports whether an exported variable is an error or something else
// that has no parts to change.
func constant(file *ast.File, spec *ast.ValueSpec, i int) bool {
	if ident, ok := spec.Type.(*ast.Ident); ok && ident.Name == "error" {
		return true
	}
	if i >= len(spec.Values) {
		return false
	}
	call, ok := spec.Values[i].(*ast.CallExpr)
	if !ok {
		return false
	}
	return selects(call.Fun, importedAs(file, "errors"), []string{"New"}) || selects(call.Fun, importedAs(file, "fmt"), []string{"Errorf"}) ||
		selects(call.Fun, importedAs(file, "regexp"), []string{"MustCompile"})
}

// changes returns the expressions that a node assigns to, or lets others assign
// to.
func changes(node ast.Node) []ast.Expr {
	switch n := node.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if fun, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"delete", "clear", "copy"}, fun.Name) && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// root returns the variable of which expr is a part.
func root(expr ast.Expr) *ast.Ident {
	for {
		switch e := expr.(type) {
		case *ast.Ident:
			return e
		case *ast.SelectorExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.SliceExpr:
			expr = e.X
		case *ast.StarExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		default:
			return nil
		}
	}
}
