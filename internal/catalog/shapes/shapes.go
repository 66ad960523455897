// Package shapes turns adapters of the format openape-shapes/v1 into entries
// of the catalog.
//
// It owns the mapping and nothing else. An adapter names operations, operands
// and a risk; it does not say what an operation reads, writes or contacts. So
// what is imported is read with care: every operation counts as one that uses
// the network, one whose action does not plainly read counts as one that
// writes, and an option that the adapter does not require stays unknown, which
// makes a call that has it opaque.
package shapes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"vogt/internal/catalog"
	"vogt/internal/detail"
)

// Schema is the format that is read.
const Schema = "openape-shapes/v1"

type adapter struct {
	Schema string `toml:"schema"`
	CLI    struct {
		ID         string `toml:"id"`
		Executable string `toml:"executable"`
		Audience   string `toml:"audience"`
		Version    string `toml:"version"`
	} `toml:"cli"`
	Operations []operation `toml:"operation"`
}

type operation struct {
	ID              string   `toml:"id"`
	Display         string   `toml:"display"`
	Action          string   `toml:"action"`
	Command         []string `toml:"command"`
	Positionals     []string `toml:"positionals"`
	RequiredOptions []string `toml:"required_options"`
	Risk            string   `toml:"risk"`
	ResourceChain   []string `toml:"resource_chain"`
	ExactCommand    bool     `toml:"exact_command"`
}

// Digest is the adapter's digest as its registry writes it.
func Digest(file []byte) string {
	sum := sha256.Sum256(file)
	return "SHA-256:" + hex.EncodeToString(sum[:])
}

// Entry returns the name and the text of the entry for an adapter's file. The
// error says what the adapter lacks.
func Entry(file []byte) (name, text string, err error) {
	var a adapter
	meta, err := toml.Decode(string(file), &a)
	if err != nil {
		return "", "", fmt.Errorf("the adapter is no TOML: %w", err)
	}
	if a.Schema != Schema {
		return "", "", fmt.Errorf("the adapter's schema is %q, want %q", a.Schema, Schema)
	}
	if undecoded := meta.Undecoded(); len(undecoded) > 0 {
		return "", "", fmt.Errorf("the adapter has %q, which %s does not know", undecoded[0], Schema)
	}
	if err := plainWord("cli.executable", a.CLI.Executable); err != nil {
		return "", "", err
	}
	if len(a.Operations) == 0 {
		return "", "", fmt.Errorf("the adapter has no [[operation]]")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nprogram %s\nabout %s\norigin %s %s\nparser modern\n", catalog.Version, a.CLI.Executable,
		oneLine("imported adapter "+a.CLI.ID+" "+a.CLI.Version), Schema, Digest(file))
	if err := sections(&b, a.Operations); err != nil {
		return "", "", err
	}
	entry, err := catalog.Parse("import", a.CLI.Executable, b.String(), true)
	if err != nil {
		return "", "", fmt.Errorf("the adapter gives no valid entry: %w", err)
	}
	examples(&b, entry, a.Operations)
	return a.CLI.Executable, b.String(), nil
}

// examples writes a call of each operation as a test of what was imported. An
// operation that another one of the same words covers has none.
func examples(b *strings.Builder, entry *catalog.Entry, ops []operation) {
	b.WriteByte('\n')
	for _, op := range ops {
		call := append([]string{entry.Name}, op.Command...)
		for _, p := range op.Positionals {
			if literal, ok := strings.CutPrefix(p, "="); ok {
				call = append(call, literal)
			} else {
				call = append(call, "x")
			}
		}
		for _, o := range op.RequiredOptions {
			call = append(call, dashed(o), "x")
		}
		words := make([]catalog.Word, len(call))
		for i, w := range call {
			words[i] = catalog.Word{Text: w}
		}
		if use := entry.Interpret(words); use.Form() == op.ID {
			fmt.Fprintf(b, "example %s => %s\n", strings.Join(call, " "), strings.Join(actionEffects(op.Action), " "))
		} else {
			fmt.Fprintf(b, "# no example of %s: another form has the same words and comes first\n", op.ID)
		}
	}
}

// sections writes operations that share a command into one section.
func sections(b *strings.Builder, ops []operation) error {
	var order []string
	byCommand := map[string][]operation{}
	for i, op := range ops {
		for _, w := range append(slices.Clone(op.Command), op.ID) {
			if err := plainWord(fmt.Sprintf("operation %d", i+1), w); err != nil {
				return err
			}
		}
		path := strings.Join(op.Command, " ")
		if _, ok := byCommand[path]; !ok {
			order = append(order, path)
		}
		byCommand[path] = append(byCommand[path], op)
		for parent := path; strings.Contains(parent, " "); {
			parent = parent[:strings.LastIndexByte(parent, ' ')]
			if _, ok := byCommand[parent]; !ok {
				order = append(order, parent)
				byCommand[parent] = nil // without a form it is opaque by itself
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return strings.Count(a, " ") - strings.Count(b, " ") })
	slices.SortStableFunc(order, func(a, b string) int { return min(len(a), 1) - min(len(b), 1) })
	for _, path := range order {
		if path != "" {
			fmt.Fprintf(b, "\ncommand %s\n", path)
		}
		if err := section(b, byCommand[path]); err != nil {
			return err
		}
	}
	return nil
}

func section(b *strings.Builder, ops []operation) error {
	var options []string
	for _, op := range ops {
		for _, o := range op.RequiredOptions {
			if err := plainWord("required_options", o); err != nil {
				return err
			}
			if o = dashed(o); !slices.Contains(options, o) {
				options = append(options, o)
				fmt.Fprintf(b, "%s =text\n", o)
			}
		}
	}
	// The form with the most conditions is tried first, as the adapter's
	// longest match is.
	slices.SortStableFunc(ops, func(a, b operation) int {
		return len(b.RequiredOptions) + literals(b) - len(a.RequiredOptions) - literals(a)
	})
	for _, op := range ops {
		effects, err := effectsOf(op)
		if err != nil {
			return err
		}
		terms := []string{fmt.Sprintf("operands %d", len(op.Positionals))}
		var roles []string
		for i, p := range op.Positionals {
			if literal, ok := strings.CutPrefix(p, "="); ok {
				if err := plainWord("positionals", literal); err != nil {
					return err
				}
				terms = append(terms, fmt.Sprintf("operand %d is %s", i+1, literal))
				roles = append(roles, "text")
				continue
			}
			if err := plainWord("positionals", p); err != nil {
				return err
			}
			if strings.Contains(p, ".") {
				return fmt.Errorf("positionals: %q is no name of an operand", p)
			}
			roles = append(roles, "@"+p)
		}
		for _, o := range op.RequiredOptions {
			terms = append(terms, dashed(o))
		}
		form := fmt.Sprintf("form %s when %s : %s : %s", op.ID, strings.Join(terms, " and "), effects, strings.Join(roles, " "))
		b.WriteString(strings.TrimRight(form, " ") + "\n")
	}
	return nil
}

func literals(op operation) int {
	n := 0
	for _, p := range op.Positionals {
		if strings.HasPrefix(p, "=") {
			n++
		}
	}
	return n
}

// actionEffects reads an operation's action with care.
func actionEffects(action string) []string {
	switch action {
	case "read", "list", "get", "view", "show", "search", "status":
		return []string{"net"}
	case "delete", "remove", "destroy", "purge":
		return []string{"net", "write", "destroy"}
	}
	return []string{"net", "write"}
}

// effectsOf are an operation's effects and its risk.
func effectsOf(op operation) (string, error) {
	if op.Risk == "" {
		op.Risk = detail.Low.String()
	}
	risk, err := detail.ParseRisk(op.Risk)
	if err != nil {
		return "", fmt.Errorf("operation %s: %w", op.ID, err)
	}
	words := actionEffects(op.Action)
	if risk > detail.Low { // what an entry does not say is low
		words = append(words, risk.String())
	}
	return strings.Join(words, " "), nil
}

func dashed(name string) string {
	switch {
	case strings.HasPrefix(name, "-"):
		return name
	case len(name) == 1:
		return "-" + name
	}
	return "--" + name
}

// plainWord refuses what would change the entry that is written.
func plainWord(what, word string) error {
	if word == "" {
		return fmt.Errorf("%s: a name is missing", what)
	}
	for _, c := range word {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c)) {
			return fmt.Errorf("%s: %q has characters that no name of a program, option or operand has", what, word)
		}
	}
	return nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
