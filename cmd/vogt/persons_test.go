package main

import (
	"crypto/rand"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vogt/internal/authority"
	"vogt/internal/authoritytest"
	"vogt/internal/detail"
	"vogt/internal/sshkey"
)

// TestScriptsWithPersons runs the transcripts that need more than one person: an
// authority with a rule of two from high risk up, the owner, Ben, and Cleo, and
// "helper", an agent of the owner for which Ben answers as well.
func TestScriptsWithPersons(t *testing.T) {
	bin := filepath.Dir(program(t, "vogt"))
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join(scripts, "persons"), Cmds: commands(),
		Setup: func(env *testscript.Env) error {
			public, err := setUp(env, bin)
			if err != nil {
				return err
			}
			s := authoritytest.Start(t, authoritytest.WithConfig(func(c *authority.Config) { c.SecondApprover = detail.High }))
			s.Clock.Set(time.Now())
			if err := s.Authority.CreateOwner(t.Context(), ownerEmail, "Owner", public.String()); err != nil {
				return err
			}
			for _, name := range []string{"ben", "cleo", "helper"} {
				pem, public, err := sshkey.Generate(rand.Reader, name)
				if err != nil {
					return err
				}
				key := filepath.Join(env.WorkDir, name+"-key")
				if err := sshkey.WriteNew(key, pem, public); err != nil {
					return err
				}
				env.Setenv(name+"_key", key)
				email := name + "@example.com"
				if name == "helper" {
					email = authority.AgentEmail(name, ownerEmail, s.URL)
					s.Manager().Post("/api/agent/enroll", map[string]string{
						"email": email, "name": name, "publicKey": public.String(), "owner": ownerEmail, "approver": "ben@example.com",
					}).Want(200)
				} else {
					s.Manager().Post("/api/admin/users", map[string]string{"email": email, "name": name}).Want(200)
					s.Manager().Post("/api/admin/users/"+url.PathEscape(email)+"/ssh-keys", map[string]string{"publicKey": public.String()}).Want(200)
				}
				env.Setenv(name, email)
			}
			env.Setenv("IDP", s.URL)
			env.Setenv("TOMORROW", time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339))
			return nil
		},
	})
}
