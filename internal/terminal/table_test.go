package terminal

import (
	"errors"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	tests := []struct {
		name  string
		table Table
		want  string
	}{
		{"empty", Table{}, ""},
		{"header alone", Table{Header: []string{"ID", "STATUS"}}, "ID  STATUS\n"},
		{"columns", Table{Header: []string{"ID", "STATUS", "BY"}, Rows: [][]string{{"a", "pending", ""}, {"longer", "x", "y"}}},
			"ID      STATUS   BY\na       pending\nlonger  x        y\n"},
		{"rows of several lengths", Table{Rows: [][]string{{"a"}, {"b", "c", "d"}, nil}}, "a\nb  c  d\n\n"},
		{"wide and combining characters", Table{Rows: [][]string{{"日本", "x"}, {"e\u0301", "y"}, {"abcd", "z"}}}, "日本  x\ne\u0301     y\nabcd  z\n"},
		{"a stranger's cell", Table{Rows: [][]string{{"a\nb\x1b[2J", "c"}}}, "a<U+000A>b<U+001B>[2J  c\n"},
		{"cut", Table{Width: 20, Rows: [][]string{{"id", "a long long long summary"}}}, "id  a long long lon…\n"},
		{"the widest is cut first", Table{Width: 24, Rows: [][]string{{"0123456789abcdef", "0123456789"}}}, "0123456789a…  0123456789\n"},
		{"cut beside a wide character", Table{Width: 9, Rows: [][]string{{"日本日本日本"}}}, "日本日本…\n"},
		{"wide character that does not fit", Table{Width: 10, Rows: [][]string{{"a日本日本日本"}}}, "a日本日本…\n"},
		{"too narrow for all", Table{Width: 5, Rows: [][]string{{"0123456789", "0123456789"}}}, "0123456…  0123456…\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if err := tt.table.Print(&b); err != nil {
				t.Fatal(err)
			}
			if b.String() != tt.want {
				t.Errorf("got\n%s\nwant\n%s", b.String(), tt.want)
			}
		})
	}
}

func TestTableDoesNotChangeItsRows(t *testing.T) {
	table := Table{Rows: [][]string{{"a\n"}}}
	if err := table.Print(&strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	if table.Rows[0][0] != "a\n" {
		t.Errorf("the row is now %q", table.Rows[0][0])
	}
}

type fullDisk struct{ error }

func (f fullDisk) Write([]byte) (int, error) { return 0, f.error }

func TestTableReportsWriteErrors(t *testing.T) {
	full := errors.New("disk full")
	if err := (Table{Rows: [][]string{{"a"}}}).Print(fullDisk{full}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}
