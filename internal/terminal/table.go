package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Table is text in columns. Every cell passes Visible, so that rows may hold
// what strangers wrote.
type Table struct {
	Header []string // may be nil
	Rows   [][]string
	// Width is how many cells of the screen a line may take; the widest columns
	// are cut to fit. 0 means any number: for pipes and files.
	Width int
}

const (
	columnGap  = "  "
	leastWidth = 8 // of a column that is cut
	ellipsis   = "…"
)

// Print writes the table, columns flush left and two spaces apart.
func (t Table) Print(w io.Writer) error {
	rows := make([][]string, 0, len(t.Rows)+1)
	if t.Header != nil {
		rows = append(rows, t.Header)
	}
	rows = append(rows, t.Rows...)
	var widths []int
	for i, row := range rows {
		shown := make([]string, len(row))
		for c, cell := range row {
			shown[c] = Visible(cell)
			if c == len(widths) {
				widths = append(widths, 0)
			}
			widths[c] = max(widths[c], cells(shown[c]))
		}
		rows[i] = shown
	}
	fit(widths, t.Width)

	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for c, cell := range row {
			if c > 0 {
				line.WriteString(columnGap)
			}
			cell = cut(cell, widths[c])
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", widths[c]-cells(cell)))
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// fit narrows the widest columns until the line has the width, or nothing more
// can be cut.
func fit(widths []int, width int) {
	if width <= 0 || len(widths) == 0 {
		return
	}
	total := len(columnGap) * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > width; total-- {
		widest := 0
		for c := range widths {
			if widths[c] > widths[widest] {
				widest = c
			}
		}
		if widths[widest] <= leastWidth {
			return
		}
		widths[widest]--
	}
}

// cut shortens s to at most the given number of cells.
func cut(s string, most int) string {
	if cells(s) <= most {
		return s
	}
	taken := cells(ellipsis)
	for i, r := range s {
		if taken += runeCells(r); taken > most {
			return s[:i] + ellipsis
		}
	}
	return s
}

// cells returns how many cells of the screen s takes, which must be a line
// without control characters.
func cells(s string) int {
	n := 0
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

// runeCells follows Unicode Standard Annex 11.
func runeCells(r rune) int {
	switch {
	case r < 0x7F:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}
