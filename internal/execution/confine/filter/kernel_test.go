package filter

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// header is the constants of Linux for an architecture, as golang.org/x/sys has
// taken them from the kernel's headers. Its source is read, so that every
// platform can test every architecture.
type header map[string]uint64

// headers are read once.
var headers = sync.OnceValues(func() (map[Arch]header, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		return nil, fmt.Errorf("where is golang.org/x/sys: %w", err)
	}
	all := make(map[Arch]header)
	for _, a := range architectures() {
		all[a] = make(header)
		for _, name := range []string{"zerrors_linux.go", "zerrors_linux_" + a.String() + ".go", "zsysnum_linux_" + a.String() + ".go"} {
			if err := all[a].read(filepath.Join(strings.TrimSpace(string(out)), "unix", name)); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
})

func headerOf(t *testing.T, a Arch) header {
	t.Helper()
	all, err := headers()
	if err != nil {
		t.Fatal(err)
	}
	return all[a]
}

// read takes the constants of a file that are numbers; the others have no part in
// filters.
func (h header) read(name string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, value := range spec.Values {
				literal, ok := value.(*ast.BasicLit)
				if !ok || literal.Kind != token.INT {
					continue
				}
				n, err := strconv.ParseUint(literal.Value, 0, 64)
				if err != nil {
					return fmt.Errorf("%s: %w", spec.Names[i].Name, err)
				}
				h[spec.Names[i].Name] = n
			}
		}
	}
	return nil
}

// number returns the value of a constant.
func (h header) number(name string) uint64 {
	n, known := h[name]
	if !known {
		panic("golang.org/x/sys has no constant " + name)
	}
	return n
}

// calls returns the numbers of all system calls by their names.
func (h header) calls() map[string]uint32 {
	numbers := make(map[string]uint32)
	for name, n := range h {
		// The range that arm64 keeps for calls of its own, and does not use, is no call.
		if call, ok := strings.CutPrefix(name, "SYS_"); ok && call != "ARCH_SPECIFIC_SYSCALL" {
			numbers[strings.ToLower(call)] = uint32(n)
		}
	}
	if len(numbers) < 300 {
		panic(fmt.Sprintf("golang.org/x/sys has %d system calls", len(numbers)))
	}
	return numbers
}
