// Package vogt_test holds the rules that no compiler checks: who may import
// whom, and what no package may contain. The rules are the tables below; each
// has its reason, and rules_proof_test.go shows that each can be broken.
//
// A rule about a package that does not exist yet waits for it.
package vogt_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// importRules are the rules about imports of the packages outside of tests.
// Patterns are import paths; a final "/..." means the path and all below it,
// and "std" means the standard library.
func importRules() []importRule {
	const in = "vogt/internal/"
	rules := []importRule{
		{
			name: "vocabulary", from: []string{in + "detail", in + "statement"},
			only:   []string{"std"},
			ban:    impure,
			reason: "everybody shares these words, so they may not bring anything along",
		},
		{
			name: "grants are pure", from: []string{in + "grant"},
			only:   []string{"std", in + "detail", in + "statement"},
			ban:    impure,
			reason: "a transition is a function of values; storage only swaps",
		},
		{
			name: "coverage is pure", from: []string{in + "coverage"},
			only:   []string{"std", in + "detail", in + "statement", in + "grant"},
			ban:    impure,
			reason: "a decision is a function of values, testable without any surroundings",
		},
		{
			name: "the description comes from types alone", from: []string{in + "openapi"},
			only:   []string{"std"},
			reason: "it is made of what it is given, so that it describes any interface and knows none",
		},
		{
			name: "the validator of schemas is for tests", from: []string{"vogt/cmd/..."}, linked: true,
			ban:    []string{"github.com/santhosh-tekuri/jsonschema/..."},
			reason: "the types of the code make the schemas; nothing that runs reads one",
		},
		{
			name: "reading looks at text only", from: []string{in + "reading/...", in + "catalog/..."},
			ban:    impure,
			reason: "the authority reads again what a client sent; it must not look at its own files or ask a network for it",
		},
		{
			name: "hosts and addresses are words", from: []string{in + "inet"},
			only:   []string{"std", "golang.org/x/net/idna"},
			ban:    []string{"net/http/...", "crypto/tls/..."},
			reason: "a door and the authority's fetches mean the same by a host and by a public address; what is done with it is theirs",
		},
		{
			name: "push messages know no requests", from: []string{in + "push"},
			ban:    []string{in + "store/...", in + "authority/...", in + "httpapi/...", in + "pages/...", in + "grant/...", in + "reading/...", in + "statement/..."},
			reason: "what is shown on lock screens is put together where nothing of a request can be reached",
		},
		{
			name: "what is fetched is not understood", from: []string{in + "fetch"},
			only:   []string{"std", in + "inet"},
			ban:    []string{"database/...", "os/..."},
			reason: "the guard around addresses that strangers name is one small thing, the same for every document",
		},
		{
			name: "what domains say is not what is decided", from: []string{in + "ddisa"},
			only:   []string{"std", in + "inet", in + "fetch"},
			ban:    []string{"database/...", "os/...", "net/http/cookiejar"},
			reason: "client and authority read records alike, and each draws its own conclusions; no variable of the environment puts a record in the DNS's place",
		},
		{
			name: "vogt starts fast and cannot open the database", from: []string{"vogt/cmd/vogt"}, linked: true,
			ban: []string{"database/sql/...", "modernc.org/...", "github.com/pressly/goose/...", "github.com/jackc/pgx/...",
				in + "store/...", in + "authority/...", in + "httpapi/...", in + "pages/...", in + "assistant/...",
				"charm.land/fantasy/...", "github.com/chromedp/...", "github.com/go-webauthn/..."},
			reason: "vogt runs as the agent, thousands of times a day: start-up time follows size, and what asks does not hold what decides",
		},
		{
			name: "vogtd executes nothing for an agent", from: []string{"vogt/cmd/vogtd"}, linked: true,
			ban:    []string{in + "execution/...", in + "hook/...", in + "shell/...", in + "egress/...", in + "mcpgate/...", in + "assistant/..."},
			reason: "what decides does not act, and holds no model",
		},
		{
			name: "vogt-assistant decides nothing", from: []string{"vogt/cmd/vogt-assistant"}, linked: true,
			ban:    []string{in + "store/...", in + "authority/...", in + "httpapi/...", in + "pages/..."},
			reason: "what wants something does not decide; it is an agent like any other",
		},
		{
			name: "vogt-elevated has a closed list", from: []string{"vogt/cmd/vogt-elevated"}, linked: true,
			only:   []string{"std", "vogt/...", "golang.org/x/sys/..."},
			ban:    []string{"net/http/...", "crypto/tls/...", "net/rpc/...", "net/smtp/...", "plugin"},
			reason: "it runs as root: every dependency is root too, and no network may reach it",
		},
		{
			name: "vogt-confine has a closed list", from: []string{"vogt/cmd/vogt-confine"}, linked: true,
			only: []string{"std", "vogt/...", "golang.org/x/sys/...", "github.com/landlock-lsm/go-landlock/...",
				"kernel.org/pub/linux/libs/security/libcap/psx"}, // psx: go-landlock's only dependency besides x/sys
			ban:    []string{"net", "plugin"},
			reason: "it is the wall around a program, and it starts before every command",
		},
		{
			name: "commands are nobody's library", from: []string{"vogt/internal/..."},
			ban:    []string{"vogt/cmd/..."},
			reason: "wiring lives in cmd, and nothing else does",
		},
		{
			name: "no side effects by import", from: []string{"vogt/cmd/..."}, linked: true,
			ban:    []string{"expvar", "net/http/pprof", "testing"},
			reason: "they register handlers or flags by being linked; test support belongs to tests",
		},
	}
	const cmd = "vogt/cmd/"
	return append(rules, slices.Concat(
		apart("doors stay apart", "what two doors share belongs below them, where every door has it; internal/client is no door",
			in+"hook", in+"shell", in+"egress", in+"mcpgate"),
		apart("commands stay apart", "what two commands share is no wiring and belongs to internal",
			cmd+"vogt", cmd+"vogtd", cmd+"vogt-assistant", cmd+"vogt-confine", cmd+"vogt-elevated"),
	)...)
}

// impure is what pure packages do without.
var impure = []string{"os/...", "net/...", "syscall/...", "database/...", "io/ioutil", "log/...", "math/rand/...", "crypto/rand", "plugin", "golang.org/x/sys/..."}

// apart makes rules by which none of the trees imports another.
func apart(name, reason string, trees ...string) []importRule {
	var rules []importRule
	for _, tree := range trees {
		rule := importRule{name: name, from: []string{tree + "/..."}, reason: reason}
		for _, other := range trees {
			if other != tree {
				rule.ban = append(rule.ban, other+"/...")
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// together are packages that only one package may know both of.
var together = exclusive{
	both:   []string{"vogt/internal/pages", "vogt/internal/httpapi"},
	only:   "vogt/cmd/vogtd",
	reason: "pages and API are two faces of one authority; only the wiring sees both",
}

// testRules are about what tests import.
var testRules = []importRule{{
	name: "no assertion or mocking libraries", from: []string{"vogt/..."},
	ban:    []string{"github.com/stretchr/testify/...", "go.uber.org/mock/...", "github.com/golang/mock/...", "gotest.tools/...", "github.com/onsi/..."},
	reason: "a plain comparison says what is expected; a fake that works outlives a mock that expects",
}}

// clockless are the packages that take the time as a value.
var clockless = []string{"vogt/internal/detail", "vogt/internal/statement", "vogt/internal/grant", "vogt/internal/coverage", "vogt/internal/reading/...", "vogt/internal/catalog/...", "vogt/internal/flow"}

// vagueNames are no names for packages, nor ends of names.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "stuff"}

// assignedVariables are package-level variables that something assigns to.
var assignedVariables = map[string]string{
	"vogt/internal/version.stamp": "the linker writes it, before the program starts",
}

// longFunctions may have more than maxFunction lines: flat switches, an arm a
// case.
var longFunctions = map[string]string{}

const maxFunction = 150

// platforms are those whose packages are looked at. The first is the one that
// source is parsed for where all have the same.
var platforms = []string{"linux", "darwin", "windows"}

func TestImports(t *testing.T) {
	for _, goos := range platforms {
		packages := load(t, goos)
		for _, rule := range importRules() {
			report(t, goos, rule.broken(packages))
		}
		report(t, goos, together.broken(packages))
		report(t, goos, testSupport(packages))
		for _, rule := range testRules {
			report(t, goos, rule.broken(packages.withTests()))
		}
	}
}

func TestPackages(t *testing.T) {
	for _, pkg := range load(t, runtime.GOOS) {
		if !pkg.ours() {
			continue
		}
		report(t, pkg.ImportPath, vagueName(pkg.ImportPath, pkg.Name))
		src := parse(t, pkg, pkg.everyFile())
		if len(pkg.GoFiles)+len(pkg.IgnoredGoFiles) > 0 {
			report(t, pkg.ImportPath, packageComment(src))
		}
		report(t, pkg.ImportPath, initFunctions(src))
		report(t, pkg.ImportPath, longBodies(src, pkg.ImportPath))
		if matchAny(clockless, pkg) {
			report(t, pkg.ImportPath, calls(src, "time", clockCalls, "the time is a parameter of this package"))
		}
		report(t, pkg.ImportPath, calls(parse(t, pkg, pkg.testFiles()), "time", []string{"Sleep"}, "a test waits for the condition, not for a while (or uses testing/synctest)"))
	}
}

func TestVariables(t *testing.T) {
	seen := make(map[string]bool) // most files serve all platforms
	for _, goos := range platforms {
		for _, pkg := range load(t, goos) {
			if !pkg.ours() || len(pkg.GoFiles) == 0 {
				continue
			}
			for _, problem := range mutableVariables(parse(t, pkg, pkg.GoFiles), pkg.ImportPath) {
				if !seen[problem] {
					report(t, pkg.ImportPath, []string{problem})
				}
				seen[problem] = true
			}
		}
	}
}

// Every binary links, not only compiles.
func TestBinariesBuild(t *testing.T) {
	var commands int
	for _, pkg := range load(t, runtime.GOOS) {
		if pkg.ours() && pkg.Name == "main" && strings.HasPrefix(pkg.ImportPath, "vogt/cmd/") {
			commands++
		}
	}
	if commands == 0 {
		t.Fatal("there is no command to build")
	}
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/...")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	built, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(built) != commands {
		t.Errorf("%d binaries were built, want %d: %v", len(built), commands, built)
	}
}

func report(t *testing.T, where string, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Errorf("%s: %s", where, p)
	}
}
