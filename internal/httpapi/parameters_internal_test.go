package httpapi

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// FuzzFlatJSON: what is read of a body is what every JSON parser reads of it, and a
// name stands for one value.
func FuzzFlatJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":"b"}`, `{"a":1,"b":"c"}`, `{"a":"b","a":"c"}`, `{"a":"b","\u0061":"c"}`, `{"a":"b"}{"a":"c"}`, `{"a":{"b":"c"},"d":null}`, `[]`, `{"a":"\ud800"}`, `{"a":"b"} x`, `{"a":"b"} }`, `{"a":"b"}]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := flatJSON(b)
		if !ok || !utf8.Valid(b) { // as parameters has it
			return
		}
		var all map[string]any
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatalf("%q was taken: %v", b, err)
		}
		texts := 0
		for name, value := range all {
			if text, is := value.(string); is {
				texts++
				if got[name] != text {
					t.Errorf("%q: %q is %q, not %q", b, name, got[name], text)
				}
			}
		}
		if texts != len(got) {
			t.Errorf("%q: %d texts, not %d", b, len(got), texts)
		}
	})
}
