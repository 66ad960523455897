package authority_test
import ("testing";"time";"vogt/internal/authoritytest")
func TestZZ(t *testing.T){
 for range 3 {
 t0:=time.Now(); s:=authoritytest.Start(t); t.Log("start",time.Since(t0))
 t0=time.Now(); s.Restart(); t.Log("restart",time.Since(t0))
 t0=time.Now(); s.Restart(); t.Log("restart",time.Since(t0))
 }
}
