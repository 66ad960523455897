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
		{[]string{"version"}, 0, "vogt-confine "},
		{[]string{"help"}, 0, "vogt confine -- COMMAND"},
		{[]string{"--help"}, 0, "vogt confine -- COMMAND"},
		{[]string{"start"}, 64, "no command for people"},
		{nil, 64, "no command for people"},
		{[]string{"version", "more"}, 64, "no command for people"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			var out bytes.Buffer
			if code := Run(tt.args, &out, &out); code != tt.code || !strings.Contains(out.String(), tt.want) {
				t.Errorf("exit code %d, want %d; output, which must contain %q:\n%s", code, tt.code, tt.want, &out)
			}
		})
	}
}
