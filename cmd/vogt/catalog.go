package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vogt/internal/catalog"
	"vogt/internal/catalog/local"
	"vogt/internal/catalog/shapes"
	"vogt/internal/config"
	"vogt/internal/reading"
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

func newCatalogListCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the programs of the catalog",
		Args:  cobra.NoArgs,
		RunE: command(func(*cobra.Command, []string) error {
			c, err := local.Catalog()
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
		Long: `The entry is printed, with the adapter's digest. An adapter does not say what an
operation reads, writes or contacts, so each counts as one that uses the network,
and one that does not plainly read as one that writes. Correct it where you know
better, test it, and install it as /etc/vogt/catalog/NAME.`,
		Args: cobra.ExactArgs(1),
		RunE: command(func(_ *cobra.Command, args []string) error {
			file, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			name, text, err := shapes.Entry(file)
			if err != nil {
				return withCode(exitMismatch, fmt.Errorf("%s: %w", args[0], err))
			}
			return e.print(map[string]string{"name": name, "digest": shapes.Digest(file), "text": text}, func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
		}),
	}
}

func newCatalogTestCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE…",
		Short: "Check entries and their examples",
		Args:  cobra.MinimumNArgs(1),
		RunE: command(func(_ *cobra.Command, args []string) error {
			failed := 0
			for _, path := range args {
				n, problems := testEntry(path)
				for _, p := range problems {
					fmt.Fprintln(e.stdout, p)
				}
				if failed += len(problems); len(problems) == 0 {
					fmt.Fprintf(e.stdout, "%s: %d examples hold\n", path, n)
				}
			}
			if failed > 0 {
				return withCode(exitMismatch, fmt.Errorf("%d problems", failed))
			}
			return nil
		}),
	}
}

// testEntry checks one file and returns how many examples it has.
func testEntry(path string) (int, []string) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > catalog.MaxEntry {
		err = fmt.Errorf("%s has %d bytes, the limit is %d", path, info.Size(), catalog.MaxEntry)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return 0, []string{err.Error()}
	}
	name := filepath.Base(path)
	entry, err := catalog.Parse(path, name, string(text), true)
	if err != nil {
		return 0, []string{err.Error()}
	}
	c := catalog.New()
	if _, ok := catalog.Source(name); ok {
		c.Replace(entry) // a test of a changed entry of Vogt's own
	} else if err := c.Add(path, name, string(text)); err != nil {
		return 0, []string{err.Error()}
	}
	rd := reading.New(c)
	var problems []string
	for _, x := range entry.Examples() {
		r := rd.Text(x.Text, reading.Place{})
		if got := reading.ExampleEffects(&r); !slices.Equal(got, x.Want) {
			why := ""
			for _, p := range r.Problems {
				why += "; " + p.Text
			}
			problems = append(problems, fmt.Sprintf("%s:%d: %s: got %s, want %s%s", path, x.Line, x.Text, strings.Join(got, " "), strings.Join(x.Want, " "), why))
		}
	}
	return len(entry.Examples()), problems
}
