package grant

import "testing"

func TestConfinement(t *testing.T) {
	for _, c := range []Confinement{{"default", "ab", "/p"}, {"my own", "00ff", "/home/me/a in b"}} {
		if got, ok := ParseConfinement(c.String()); !ok || got != c {
			t.Errorf("%+v is written as %q and read as %+v, %v", c, c.String(), got, ok)
		}
	}
	for _, text := range []string{"", "default", "default sha256:ab", " sha256:ab in /p", "default sha256:ab in ", "default in /p"} {
		if got, ok := ParseConfinement(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
