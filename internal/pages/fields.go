package pages

import (
	"fmt"
	"strconv"
	"time"

	"vogt/internal/statement"
)

// fieldView is a field of a statement as the fine print shows it. A field that
// is absent is not bound; one that is present and empty is bound and empty.
type fieldView struct {
	Key    string // of the catalog, after "field."
	Values []string
	Bound  bool
	Long   bool // more values than fit openly
	More   int  // values left out
	Above  bool // shown elsewhere on the page
}

// How many values of a list, and how many bytes of one value, the fine print
// shows; the digest covers all of them. Likely secrets in them are masked.
const (
	valuesShown = 200
	valueShown  = 2 << 10
)

// fieldsOf lists every field of st in the order of its encoding.
func fieldsOf(v *visit, st statement.Statement) []fieldView {
	var out []fieldView
	add := func(key string, bound bool, values ...string) {
		f := fieldView{Key: key, Bound: bound, Long: len(values) > 6}
		if len(values) > valuesShown {
			values, f.More = values[:valuesShown], len(values)-valuesShown
		}
		for _, value := range values {
			head, left := cut(value, valueShown)
			head = maskedText(head)
			if left > 0 {
				head += " …"
			}
			f.Values = append(f.Values, head)
		}
		out = append(out, f)
	}
	text := func(key string, s *string) { add(key, s != nil, deref(s)...) }
	number := func(key string, n *uint64) {
		if n == nil {
			add(key, false)
			return
		}
		add(key, true, strconv.FormatUint(*n, 10))
	}
	moment := func(key string, n *uint64) {
		if n == nil {
			add(key, false)
			return
		}
		add(key, true, unixText(v, *n))
	}
	list := func(key string, values []string) { add(key, values != nil, values...) }
	file := func(key string, f *statement.File) {
		if f == nil {
			add(key, false)
			return
		}
		add(key, true, fileText(*f)...)
	}
	many := func(key string, fs []statement.File) {
		var values []string
		for _, f := range fs {
			values = append(values, fileText(f)...)
		}
		add(key, fs != nil, values...)
	}

	add("purpose", true, string(st.Purpose))
	add("issuer", true, st.Issuer)
	text("issuer_key", st.IssuerKeyID)
	add("epoch", true, strconv.FormatUint(st.Epoch, 10))
	add("grant_id", true, st.GrantID)
	add("nonce", true, st.Nonce)
	text("requester", st.Requester)
	text("requester_key", st.RequesterKey)
	number("generation", st.Generation)
	text("owner", st.Owner)
	text("host", st.Host)
	number("caller_uid", st.CallerUID)
	number("run_as_uid", st.RunAsUID)
	text("run_as_name", st.RunAsName)
	list("run_as_groups", st.RunAsGroups)
	add("grant_type", true, st.GrantType)
	moment("not_before", st.NotBefore)
	moment("expiry", st.Expiry)
	number("uses", st.Uses)
	file("executable", st.Executable)
	many("interpreters", st.Interpreters)
	list("argv", st.Argv)
	file("cwd", st.Cwd)
	list("environment", st.Environment)
	number("umask", st.Umask)
	list("limits", st.Limits)
	text("stdin", st.Stdin)
	many("inputs", st.Inputs)
	text("confinement", st.Confinement)
	text("network_mode", st.NetworkMode)
	text("catalog", st.Catalog)
	text("reason", st.Reason)
	list("hints", st.Hints)
	return out
}

func deref(s *string) []string {
	if s == nil {
		return nil
	}
	return []string{*s}
}

func unixText(v *visit, n uint64) string {
	const year9999 = 253402300799
	if n > year9999 {
		return strconv.FormatUint(n, 10)
	}
	return fmt.Sprintf("%s (%d)", time.Unix(int64(n), 0).In(v.zone).Format("2006-01-02 15:04:05 -07:00"), n)
}

// fileText writes what is known of a file, one fact a line.
func fileText(f statement.File) []string {
	var out []string
	if f.Path != nil {
		out = append(out, *f.Path)
	}
	if f.SHA256 != nil {
		out = append(out, "sha256 "+*f.SHA256)
	}
	if f.Size != nil {
		out = append(out, strconv.FormatUint(*f.Size, 10)+" bytes")
	}
	if f.Device != nil && f.Inode != nil {
		out = append(out, fmt.Sprintf("device %d, inode %d", *f.Device, *f.Inode))
	}
	return out
}
