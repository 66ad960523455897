package execution

import (
	"errors"
	"net"
	"net/netip"
	"os"

	"golang.org/x/term"

	"vogt/internal/execution/confine"
	"vogt/internal/execution/confine/plan"
	"vogt/internal/grant"
)

// Box is where commands run that are confined. See package confine.
type Box struct {
	Helper    string // path of vogt-confine
	Profile   *confine.Profile
	Workspace string // canonical path of the folder that it is about
	Home      string
	State     string   // folder for what is kept between boxes
	Kept      string   // folder in the place of the home, or empty
	Variables []string // name=value for the box alone
	Trust     []byte   // authorities for TLS, at plan.TrustPath in the box
	Secret    []string // folders and files that it may not see
	// Serve serves ports of the box, if its profile has a network for them.
	Serve map[int]func(net.Listener)
	// Direct is the way for programs that know of no proxy, where there is one.
	Direct *confine.Direct
	// Asks says that a person is asked about hosts that no rule covers.
	Asks bool
	// Addresses are those of ports that are on another address than 127.0.0.1.
	Addresses map[int]netip.Addr
	// Started is as in confine.Request.
	Started func(pid int, level plan.Level) error
	// Said, when set, is told how the box held, and what of the protected files
	// has changed.
	Said func(confine.Outcome)
}

// facts are what a request says about the box.
func (x *Box) facts() (confinement, network *string) {
	what := grant.Confinement{Profile: x.Profile.Name, Digest: x.Profile.Digest(), Workspace: x.Workspace}.String()
	mode := string(x.Profile.Network)
	// What the box may reach belongs to what is allowed, where it is all of it: no
	// rules besides, and nobody who is asked for more.
	if x.Profile.Network == plan.Proxied && len(x.Profile.Hosts) > 0 && len(x.Profile.Named) == 0 && !x.Asks {
		mode = grant.ProxyMode(x.Profile.Hosts)
	}
	return &what, &mode
}

// Check refuses a box about a workspace that cannot have one, before anybody is asked
// whether a command may run in it.
func (x *Box) Check() error {
	err := confine.CheckWorkspace(confine.Request{Workspace: x.Workspace, Home: x.Home, State: x.State, Secret: x.Secret})
	if err != nil {
		return &Error{Kind: Unboxed, Err: err}
	}
	return nil
}

// changedCode is the exit code of a box whose command changed what it should
// not have.
const changedCode = 126

// run starts what was bound in the box, and nothing else.
func (x *Box) run(b *Bound, attr *os.ProcAttr) (Outcome, error) {
	file := b.program.identity()
	out, err := confine.Run(x.Helper, confine.Request{
		Profile: x.Profile, Workspace: x.Workspace, Dir: b.cwd.path, Home: x.Home, State: x.State, Kept: x.Kept, Trust: x.Trust, Secret: x.Secret, Variables: x.Variables, Serve: x.Serve, Addresses: x.Addresses, Direct: x.Direct, Started: x.Started,
		Program: b.program.found, File: file, Argv: b.argv, Environ: attr.Env,
		Terminal: term.IsTerminal(int(attr.Files[0].Fd())),
	}, confine.Streams{In: attr.Files[0], Out: attr.Files[1], Err: attr.Files[2]})
	if x.Said != nil {
		x.Said(out)
	}
	if refused, ok := errors.AsType[*confine.RefusedError](err); ok {
		if refused.Unseen {
			return Outcome{}, &Error{Kind: Unseen, Path: b.program.found}
		}
		if refused.Remedy != "" {
			err = errors.New(refused.Reason + "; what helps: " + refused.Remedy)
		}
	}
	if err != nil {
		return Outcome{}, &Error{Kind: Unboxed, Path: b.program.found, Err: err}
	}
	if len(out.Changed) > 0 {
		return Outcome{Code: changedCode}, nil
	}
	return Outcome{Code: out.Code}, nil
}

// identity is the file as the helper will find it.
func (o object) identity() plan.File {
	s := o.statement()
	if s.Device == nil || s.Inode == nil {
		return plan.File{}
	}
	return plan.File{Device: *s.Device, Inode: *s.Inode}
}
