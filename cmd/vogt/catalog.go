package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/catalog"
	"vogt/internal/catalog/local"
	"vogt/internal/catalog/shapes"
	"vogt/internal/config"
	"vogt/internal/reading"
	"vogt/internal/reading/code"
	"vogt/internal/terminal"
)

func newCatalogCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "What Vogt knows of programs",
		Long: `The catalog says which words of a program are options and what its operations
read, write, delete, contact and start. docs/catalog.md tells how to add one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCatalogListCommand(e), newCatalogShowCommand(e), newCatalogTestCommand(e), newCatalogImportCommand(e))
	return cmd
}

// catalog is the catalog that Vogt brings, with the entries of this machine's
// owner. What is left out of it is said.
func (e *env) catalog() (*catalog.Catalog, error) {
	c, left, err := local.Catalog()
	if err != nil {
		return nil, withCode(exitConfig, err)
	}
	e.sayLeftOut(left)
	return c, nil
}

// sayLeftOut says which files are no part of the catalog, why, and what to do.
func (e *env) sayLeftOut(left []local.LeftOut) {
	for _, l := range left {
		path, reason := terminal.Visible(l.Path), terminal.Visible(l.Reason)
		if l.Own {
			e.say(messages.CatalogIgnored, path, l.Program)
			continue
		}
		e.say(messages.CatalogLeftOut, reason, terminal.Visible(l.Program), path)
	}
}

func newCatalogListCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the programs of the catalog",
		Args:  cobra.NoArgs,
		RunE: command(func(*cobra.Command, []string) error {
			c, err := e.catalog()
			if err != nil {
				return err
			}
			type row struct {
				Name  string `json:"name"`
				About string `json:"about,omitempty"`
				Means string `json:"means,omitempty"` // the entry that the name stands for
			}
			var rows []row
			for _, name := range c.Names() {
				entry := c.Entry(name)
				if entry == nil {
					continue
				}
				r := row{Name: name, About: entry.About}
				if entry.Name != name {
					r.Means = entry.Name
				}
				rows = append(rows, r)
			}
			return e.print(rows, func(w io.Writer) error {
				for _, r := range rows {
					about := r.About
					if r.Means != "" {
						about = "as " + r.Means
					}
					if _, err := fmt.Fprintf(w, "%-24s %s\n", r.Name, about); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	}
}

func newCatalogShowCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "show PROGRAM",
		Short: "Print an entry of the catalog",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(_ *cobra.Command, args []string) error {
			text, ok := catalog.Source(args[0])
			if !ok {
				own, err := config.ReadRootOwned(filepath.Join(local.Folder, filepath.Base(args[0])))
				if err != nil {
					return withCode(exitMismatch, fmt.Errorf("%s is not in the catalog; `vogt catalog list` names what is, docs/catalog.md tells how to add it", args[0]))
				}
				text = string(own)
			}
			return e.print(map[string]string{"name": args[0], "text": text}, func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
		}),
	}
}

func newCatalogImportCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE.toml",
		Short: "Turn an adapter of the format openape-shapes/v1 into an entry",
		Long: `The entry is printed, with the adapter's digest and an example of each operation.
An adapter does not say what an operation reads, writes or contacts, so each
counts as one that uses the network, and one that does not plainly read as one
that writes. Correct it where you know better, test it, and install it as
/etc/vogt/catalog/NAME. docs/catalog.md shows an adapter.`,
		Example: `  vogt catalog import tracker.toml > tracker
  vogt catalog test tracker`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(_ *cobra.Command, args []string) error {
			file, err := readRegular(args[0], catalog.MaxEntry)
			if err != nil {
				return err
			}
			name, text, err := shapes.Entry(file)
			if err != nil {
				return withCode(exitMismatch, fmt.Errorf("%s: %w", args[0], err))
			}
			if _, own := catalog.Source(name); own {
				e.say(messages.CatalogOwn, name)
			}
			return e.print(map[string]string{"name": name, "digest": shapes.Digest(file), "text": text}, func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
		}),
	}
}

func newCatalogTestCommand(e *env) *cobra.Command {
	var own bool
	cmd := &cobra.Command{
		Use:   "test FILE…",
		Short: "Check entries and their examples",
		Long: `Each file is held to the format, and each of its examples to what the entry makes
of it. Everything that is wrong is printed. A file is named as its program.

A name that Vogt itself brings is refused, since a file of that name in
/etc/vogt/catalog counts for nothing; --own is for changes of Vogt's own entries.`,
		Args: cobra.MinimumNArgs(1),
		RunE: command(func(_ *cobra.Command, args []string) error {
			base, _, err := local.Catalog()
			if err != nil {
				return withCode(exitConfig, err)
			}
			failed := 0
			for _, path := range args {
				text, err := readRegular(path, catalog.MaxEntry)
				if err != nil {
					return err
				}
				x := entryTest{path: path, name: filepath.Base(path), text: string(text), own: own}
				said, problems := x.run(base)
				for _, p := range problems {
					fmt.Fprintln(e.stdout, terminal.Visible(p))
				}
				if failed += len(problems); len(problems) == 0 {
					fmt.Fprintln(e.stdout, terminal.Visible(path+": "+said))
				}
			}
			if failed > 0 {
				return withCode(exitMismatch, errors.New(count(failed, "problem")))
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&own, "own", false, "the files are changed entries of Vogt's own catalog")
	return cmd
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// readRegular reads a file that a person named. Neither a device nor a pipe,
// which may have no end, and nothing above the limit is read.
func readRegular(path string, limit int64) ([]byte, error) {
	wrong := func(err error) error {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return &usageError{text: path + ": " + err.Error()}
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, wrong(err)
	case info.IsDir():
		return nil, wrong(errors.New("is a folder; name a file"))
	case !info.Mode().IsRegular():
		return nil, wrong(errors.New("is no regular file; save the text in a file first"))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, wrong(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, wrong(err)
	case int64(len(text)) > limit:
		return nil, wrong(fmt.Errorf("is larger than %d bytes, which no entry and no adapter is", limit))
	}
	return text, nil
}

// entryTest is one file that is checked.
type entryTest struct {
	path, name, text string
	own              bool
}

// run returns what there is to say of an entry that holds, or what is wrong.
func (x *entryTest) run(base *catalog.Catalog) (said string, problems []string) {
	for _, err := range catalog.Faults(x.path, x.name, x.text) {
		problems = append(problems, err.Error())
	}
	_, brought := catalog.Source(x.name)
	if brought && !x.own {
		problems = append(problems, x.path+": Vogt brings an entry of "+x.name+", so that a file of this name in "+local.Folder+" counts for nothing; to test a change of Vogt's own entry, add --own")
	}
	if len(problems) > 0 {
		return "", problems
	}
	entry, err := catalog.Parse(x.path, x.name, x.text, true)
	if err != nil {
		return "", []string{err.Error()}
	}
	if brought {
		base = catalog.New()
		base.Replace(entry)
	} else if err := base.Add(x.path, x.name, x.text); err != nil {
		return "", []string{err.Error()}
	}
	if entry.SameAs != "" {
		if base.Entry(x.name) == nil {
			return "", []string{x.path + ": same-as " + entry.SameAs + ": no such program is in the catalog; `vogt catalog list` names all"}
		}
		return "means what " + entry.SameAs + " means", nil
	}
	for _, l := range entry.Languages() {
		if _, ok := code.ParseLang(l.Name); !ok && l.Name != "powershell" && l.Name != "cmd" {
			problems = append(problems, fmt.Sprintf("%s:%d: nothing reads the language %q, so that each call would be opaque; docs/catalog.md lists the languages", x.path, l.Line, l.Name))
		}
	}
	if problems = append(problems, x.examples(base, entry)...); len(entry.Examples()) == 0 {
		problems = append(problems, x.path+": no example, so that nothing tests the entry: add lines `example WORDS => EFFECTS`")
	}
	if n := len(entry.Examples()); n == 1 {
		return "1 example holds", problems
	}
	return count(len(entry.Examples()), "example") + " hold", problems
}

// examples returns the examples of an entry that do not hold.
func (x *entryTest) examples(c *catalog.Catalog, entry *catalog.Entry) (problems []string) {
	rd := reading.New(c)
	for _, example := range entry.Examples() {
		r := rd.Text(example.Text, reading.Place{})
		if got := reading.ExampleEffects(&r); !slices.Equal(got, example.Want) {
			why := ""
			for _, p := range r.Problems {
				why += "; " + p.Text
			}
			problems = append(problems, fmt.Sprintf("%s:%d: %s: got %s, want %s%s", x.path, example.Line, example.Text, strings.Join(got, " "), strings.Join(example.Want, " "), why))
		}
	}
	return problems
}
