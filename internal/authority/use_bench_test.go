package authority_test

import (
	"context"
	"testing"

	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/grant"
)

// many is how many callers a benchmark has at once on each CPU.
const many = 32

// BenchmarkConsume spends uses of one lasting grant, many at once.
func BenchmarkConsume(b *testing.B) {
	s, agent, id := lastingGrant(b)
	raw := agent.Token(id)
	b.SetParallelism(many)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			out, err := s.Authority.Consume(context.Background(), raw, id)
			if err != nil || out.Refused != "" {
				b.Error(out.Refused, err)
				return
			}
		}
	})
}

// BenchmarkToken issues tokens for one lasting grant, many at once.
func BenchmarkToken(b *testing.B) {
	s, agent, id := lastingGrant(b)
	actor := agent.Actor()
	b.ResetTimer()
	b.SetParallelism(many)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, _, err := s.Authority.Token(context.Background(), actor, id); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func lastingGrant(b *testing.B) (s *authoritytest.Server, agent *authoritytest.Principal, id string) {
	b.Helper()
	s = authoritytest.Start(b, authoritytest.WithConfig(func(c *authority.Config) { c.Limits.Creations = 1e9 }))
	owner := s.Owner()
	agent = s.Agent(owner, "helper")
	g := approved(owner, agent, grant.Always, "deploy")
	b.ResetTimer()
	return s, agent, g.ID
}
