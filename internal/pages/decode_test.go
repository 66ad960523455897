package pages

import "testing"

func TestDecode(t *testing.T) {
	for body, good := range map[string]bool{
		`{"a":"b"}`: true, " {\"a\":\"b\"}\n": true, `{}`: true,
		`{"a":"b"} x`: false, `{"a":"b"}{}`: false, `{"a":"b"} }`: false, `{"a":"b"}]`: false, `{"a":"b","c":1}`: false, `{"a":1}`: false, ``: false,
	} {
		var into struct {
			A string `json:"a"`
		}
		if err := (&call{body: []byte(body)}).decode(&into); (err == nil) != good {
			t.Errorf("%q: %v", body, err)
		}
	}
}
