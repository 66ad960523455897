package confine

import (
	"strings"
	"testing"

	"vogt/internal/execution/confine/plan"
)

func TestBuiltin(t *testing.T) {
	for _, name := range BuiltinNames() {
		parse, ok := Builtin(name)
		if !ok {
			t.Fatalf("there is no profile %s", name)
		}
		p, err := parse()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "agent" {
			if p.Network != plan.Proxied || len(p.Hosts) > 0 || p.Reduced {
				t.Errorf("agent: net %s, hosts %q, reduced %v", p.Network, p.Hosts, p.Reduced)
			}
		} else if p.Network != plan.Offline || p.Sockets != plan.NoSockets || p.Reduced {
			t.Errorf("%s: net %s, unix %s, reduced %v: want the strictest", name, p.Network, p.Sockets, p.Reduced)
		}
		if writes := len(p.Write) > 0; writes == (name == "read") {
			t.Errorf("%s: write is %q", name, p.Write)
		}
	}
	if _, ok := Builtin("none"); ok {
		t.Error("there is a profile none")
	}
}

func TestParse(t *testing.T) {
	const good = "root = \"listed\"\nnet = \"none\"\nunix = \"off\"\n"
	for _, tt := range []struct{ name, text, want string }{
		{"the least", good, ""},
		{"lists", good + "read = [\"/usr\", \"~/go\"]\nwrite = [\".\", \"./sub\"]\n[limits]\nmemory = \"2G\"\n", ""},
		{"no root", "net = \"none\"\nunix = \"off\"\n", `root is "", want listed or host`},
		{"unknown net", strings.Replace(good, "none", "some", 1), `net is "some"`},
		{"unknown key", good + "wirte = [\".\"]\n", "unknown key wirte"},
		{"unknown limit", good + "[limits]\nmem = \"1G\"\n", "unknown key limits.mem"},
		{"relative", good + "read = [\"usr\"]\n", "begins with neither"},
		{"climbs", good + "read = [\"./../x\"]\n", "leads out of"},
		{"no size", good + "[limits]\nmemory = \"much\"\n", `size "much"`},
		{"negative size", good + "[limits]\nmemory = \"-1\"\n", `size "-1"`},
		{"size with rest", good + "[limits]\nmemory = \"1x\"\n", `size "1x"`},
		{"large size", good + "[limits]\nmemory = \"9999999999G\"\n", "size"},
		{"sockets of the machine", "root = \"host\"\nnet = \"none\"\nunix = \"own\"\n", "could not keep to those of the box"},
		{"no TOML", "root = ", "profile x:"},
	} {
		_, err := Parse("x", tt.text)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "17": 17, "1K": 1 << 10, "512M": 512 << 20, "2G": 2 << 30} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%s is %d, %v; want %d", text, s, err, want)
		}
	}
}

func TestNarrowed(t *testing.T) {
	wide := &Profile{Name: "wide", Root: plan.Listed, Network: plan.Host, Sockets: plan.OwnSockets, Hidden: []string{"/a"}, Protected: []string{"./b"}}
	got, err := wide.Narrowed("hidden = [\"./c\"]\nprotected = [\"./d\"]\nnet = \"none\"\nunix = \"off\"\n")
	if err != nil {
		t.Fatal(err)
	}
	if got.Network != plan.Offline || got.Sockets != plan.NoSockets || len(got.Hidden) != 2 || len(got.Protected) != 2 {
		t.Errorf("got %+v", got)
	}
	if len(wide.Hidden) != 1 || wide.Network != plan.Host {
		t.Errorf("the profile itself has changed: %+v", wide)
	}
	if got, err := wide.Narrowed(""); err != nil || got.Digest() != wide.Digest() {
		t.Errorf("an empty file changes it: %+v, %v", got, err)
	}
	for _, text := range []string{
		"read = [\"/\"]", "write = [\"/\"]", "env = [\"*\"]", "reduced = true", "root = \"host\"", "net = \"host\"", "net = \"proxy\"", "unix = \"own\"",
		"[limits]\nmemory = \"1T\"", "hidden = [\"x\"]", "hidden = [\"./../x\"]", "hidden = ",
	} {
		if got, err := wide.Narrowed(text); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestDigest(t *testing.T) {
	seen := map[string]string{}
	for name, p := range map[string]*Profile{
		"empty": {}, "root": {Root: plan.HostView}, "read": {Read: []string{"/a"}}, "write": {Write: []string{"/a"}}, "two": {Read: []string{"/a", "/b"}},
		"one of two": {Read: []string{"/a,/b"}}, "net": {Network: plan.Host}, "limit": {Limits: Limits{Wall: 1}}, "other limit": {Limits: Limits{CPU: 1}},
	} {
		d := p.Digest()
		if other, ok := seen[d]; ok || len(d) != 64 {
			t.Errorf("%s has the digest %s of %s", name, d, other)
		}
		seen[d] = name
	}
	if (&Profile{Name: "a"}).Digest() != (&Profile{Name: "b"}).Digest() {
		t.Error("the name is part of the digest")
	}
}
