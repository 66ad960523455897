package code

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func all() []string {
	p := slices.Concat(pieces, seeds)
	for _, s := range seeds {
		for i := 0; i+6 < len(s); i += 5 {
			p = append(p, s[i:i+6])
		}
	}
	return p
}

func try(t *testing.T, lang Lang, text string) {
	defer func() {
		if e := recover(); e != nil {
			t.Errorf("PANIC %s %q: %v", lang, text, e)
		}
	}()
	Read(lang, text)
}

func TestZZStress(t *testing.T) {
	d, _ := time.ParseDuration(os.Getenv("ZZ"))
	if d == 0 {
		t.Skip()
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	ps := all()
	end := time.Now().Add(d)
	n := 0
	for time.Now().Before(end) && !t.Failed() {
		var b strings.Builder
		for range 1 + r.IntN(14) {
			b.WriteString(ps[r.IntN(len(ps))])
		}
		s := strings.ToValidUTF8(b.String()[r.IntN(2)*min(3, b.Len()):], "")
		s = strings.ToValidUTF8(s[:r.IntN(len(s)+1)], "")
		for lang := Lang(1); lang < langs; lang++ {
			try(t, lang, s)
			n++
		}
	}
	t.Log(n)
}

func TestZZTime(t *testing.T) {
	if os.Getenv("ZZT") == "" {
		t.Skip()
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	ps := all()
	type w struct {
		d time.Duration
		s string
	}
	for lang := Lang(1); lang < langs; lang++ {
		if l := os.Getenv("ZZL"); l != "" && l != lang.String() {
			continue
		}
		var worst w
		f := func(pre, p string) {
			s := pre + strings.Repeat(p, 16384/len(p))
			at := time.Now()
			Read(lang, s)
			if d := time.Since(at); d > 4*time.Millisecond {
				s = pre + strings.Repeat(p, (MaxText-len(pre))/len(p))
				at = time.Now()
				Read(lang, s)
				d = time.Since(at)
				for n := 0; n < 3 && d > 40*time.Millisecond; n++ {
					at = time.Now()
					Read(lang, s)
					d = min(d, time.Since(at))
				}
				if d > 70*time.Millisecond {
					fmt.Printf("SLOW %s %q+%q %v\n", lang, pre, p, d)
				}
				if d > worst.d {
					worst = w{d, fmt.Sprintf("%q %q", pre, p)}
				}
			}
		}
		for _, p := range ps {
			f("", p)
		}
		for range 3000 {
			p := ""
			for range 2 + r.IntN(3) {
				p += ps[r.IntN(len(ps))]
			}
			pre := ""
			if r.IntN(2) == 0 {
				pre = ps[r.IntN(len(ps))]
			}
			if len(p) > 0 {
				f(pre, p)
			}
		}
		fmt.Println(lang, worst)
	}
}
