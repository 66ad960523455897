package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"vogt/internal/client"
	"vogt/internal/config"
)

// login is one identity of this user's home.
type login struct {
	client.Login
	file client.File
	path string
	name string // that an agent's is kept under; the person's has none
}

// readLogins reads the identities that can be read; what is wrong with the
// others shows in the check of files.
func readLogins(paths config.Paths) []login {
	home := client.Home{Folder: paths.Config}
	files, names := []client.File{home.Default()}, []string{""}
	entries, _ := os.ReadDir(filepath.Join(home.Folder, "agents")) // none is the usual case
	for _, e := range entries {
		if f, err := home.Agent(e.Name()); err == nil {
			files, names = append(files, f), append(names, e.Name())
		}
	}
	var all []login
	for i, f := range files {
		if l, err := f.Load(); err == nil {
			all = append(all, login{Login: l, file: f, path: f.Path(), name: names[i]})
		}
	}
	return all
}

// log makes one call as an identity of this home. With it the client proves
// that the log only grew since it last looked.
func (x *exam) log(ctx context.Context) Check {
	const name = "log"
	if c, ok := x.unreachable(name); ok {
		return c
	}
	var last error
	for _, l := range x.logins {
		c, err := client.Open(l.file, client.Options{Memory: x.Memory, Now: x.Now})
		if err != nil {
			last = err
			continue
		}
		_, err = c.Me(ctx)
		c.Close()
		if err == nil {
			return inForce(name, "the audit log continues what this machine saw of it last (asked as %s); `vogt audit verify` checks every record", l.Email)
		}
		last = err
		e, ok := errors.AsType[*client.Error](err)
		if !ok {
			continue
		}
		switch e.Kind {
		case client.Forked, client.Behind, client.KeyChanged, client.Distrusted:
			fix := "tell whoever runs the authority, and believe no approval until it is cleared up"
			if len(e.Evidence) > 0 {
				fix += "; the evidence is in " + strings.Join(e.Evidence, " and ")
			}
			return finding(name, Failed, fix, "%v", err)
		}
	}
	if last != nil {
		return finding(name, InPart, "vogt login", "the log could not be compared: %v", last)
	}
	return finding(name, InPart, "vogt login", "nobody is logged in here, so the log is not compared with anything")
}
