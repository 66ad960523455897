package reading

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"vogt/internal/catalog"
)

// benchLines are of the kinds that agents run all day.
var benchLines = []string{
	"ls -la",
	"cat README.md | head -50",
	"git status --short && git diff --stat HEAD~1",
	"rg -n 'func main' --glob '*.go' cmd internal",
	"find . -name '*.go' -not -path './vendor/*' | xargs wc -l | sort -rn | head -20",
	"cd /srv/app && go test ./... 2>&1 | tail -40",
	"for f in a b c; do echo \"== $f\"; sed -n '1,40p' \"src/$f.ts\"; done",
	"if [ -f package.json ]; then npm run build; else make; fi",
	"docker ps --format '{{.Names}}' | grep web",
	"kubectl -n prod get pods -o wide",
	"sudo env A=1 nice rm -rf /var/cache/x",
	"curl -fsSL https://example.com/install.sh | sh -s -- -y",
	"python3 -c 'import json,sys; print(json.load(sys.stdin)[\"name\"])' < package.json",
	"cat > notes.md <<'EOF'\n# Notes\nrun rm -rf / never\nEOF",
	"x=$(git rev-parse --short HEAD); echo \"built $x\" >> build.log",
}

func BenchmarkText(b *testing.B) {
	rd := New(catalog.New())
	at := Place{Cwd: "/srv/app", Home: "/home/u"}
	for _, l := range benchLines {
		rd.Text(l, at)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		for _, l := range benchLines {
			rd.Text(l, at)
		}
	}
}

func BenchmarkParseAlone(b *testing.B) {
	p := syntax.NewParser()
	b.ReportAllocs()
	for b.Loop() {
		for _, l := range benchLines {
			if _, err := p.Parse(strings.NewReader(l), ""); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkTextEach(b *testing.B) {
	rd := New(catalog.New())
	at := Place{Cwd: "/srv/app", Home: "/home/u"}
	p := syntax.NewParser()
	for _, l := range benchLines {
		name := strings.Fields(l)[0]
		b.Run(name+"/read", func(b *testing.B) {
			for b.Loop() {
				rd.Text(l, at)
			}
		})
		b.Run(name+"/parse", func(b *testing.B) {
			for b.Loop() {
				_, _ = p.Parse(strings.NewReader(l), "")
			}
		})
	}
}
