package main

import (
	"testing"

	"vogt/cmd/vogt/messages"
	"vogt/internal/egress"
)

// A refusal is told with the word that programs know, and with what it means.
func TestWhyRefused(t *testing.T) {
	tests := []struct {
		name   string
		lang   messages.Lang
		record egress.Record
		want   string
	}{
		{"usual port", messages.English, egress.Record{Host: "a.example", Port: 443, Reason: egress.NotGranted},
			"not-granted: no rule names it; what permits it: --allow a.example, or hosts in the profile"},
		{"other port", messages.English, egress.Record{Host: "a.example", Port: 22, Reason: egress.NotGranted},
			"not-granted: no rule names it; what permits it: --allow a.example:22, or hosts in the profile"},
		{"name only", messages.German, egress.Record{Host: "a.example", Reason: egress.NotGranted},
			"not-granted: keine Regel nennt ihn; erlaubt wird er durch --allow a.example oder unter hosts im Profil"},
		{"no address", messages.English, egress.Record{Host: "a.example", Port: 443, Reason: egress.CannotResolve},
			"resolve: the name does not resolve here; check how it is written"},
		{"gave up", messages.German, egress.Record{Host: "a.example", Port: 443, Reason: egress.ClientGone},
			"client-gone: das Programm hat das Warten aufgegeben, bevor es verbunden war"},
		{"protocol", messages.English, egress.Record{Reason: egress.TooLarge}, "too-large"},
		{"control characters", messages.English, egress.Record{Host: "a\x1b[2J", Reason: egress.NotGranted},
			`not-granted: no rule names it; what permits it: --allow a<U+001B>[2J, or hosts in the profile`},
	}
	for _, tt := range tests {
		e := &env{lang: tt.lang}
		if got := e.whyRefused(tt.record); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
