package code
import ("testing";"strings";"time")
func TestSlow(t *testing.T){
	for lang := Lang(1); lang < langs; lang++ {
		for _, p := range append(pieces, seeds...) {
			for _, tail := range []string{"", strings.Repeat("\n", MaxText/4)} {
			best:=time.Hour
			for range 3 {
			s:=time.Now()
			Read(lang, strings.Repeat(p, (MaxText-len(tail))/len(p))+tail)
			if d:=time.Since(s); d<best { best=d }
			if best<40*time.Millisecond {break}
			}
			if best>40*time.Millisecond { t.Logf("%s %q %v", lang, p, best) }
			}
		}
	}
}
