package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"version"}, 0, "vogt-assistant "},
		{[]string{"help"}, 0, "work on described tasks"},
		{[]string{"start"}, 69, "work on described tasks"},
		{nil, 69, "Meanwhile: "},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			var out bytes.Buffer
			code := Run(t.Context(), tt.args, Stdio{In: strings.NewReader(""), Out: &out, Err: &out})
			if strings.Contains(out.String(), "vogt hook") {
				t.Errorf("it names a command that does not exist:\n%s", &out)
			}
			if code != tt.code || !strings.Contains(out.String(), tt.want) {
				t.Errorf("exit code %d, want %d; output, which must contain %q:\n%s", code, tt.code, tt.want, &out)
			}
		})
	}
}
