package flow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"vogt/internal/api"
	"vogt/internal/grant"
	"vogt/internal/statement"
)

// Audience is what the requests and tokens of this door are meant for.
const Audience = "vogt"

// Authority is asked, and waited for.
type Authority interface {
	// Ask returns the grant that the request became or joined.
	Ask(ctx context.Context, req grant.Request) (api.Grant, error)
	// Wait returns the grant when it is no longer pending, and as it is after
	// limit at the latest; a limit of zero looks once.
	Wait(ctx context.Context, id string, limit time.Duration) (api.Grant, error)
}

// Ledger keeps what was permitted and what came of it.
type Ledger interface {
	// Redeem turns the approved grant id into one execution of req: it gets the
	// token, verifies it against req, and consumes it. It returns nil only when
	// the authority has recorded the intent; use names the execution.
	Redeem(ctx context.Context, id string, req grant.Request) (use string, err error)
	// Report records the outcome, or keeps it to be sent later.
	Report(ctx context.Context, id string, outcome api.Outcome) error
}

// Executor ties a command to the files that it would run from.
type Executor interface {
	Bind(argv []string, folder string) (Bound, error)
}

// Bound is a command that runs exactly as it was bound, or not at all.
type Bound interface {
	Context() grant.Context
	Run(ctx context.Context) (Exit, error)
	Close() error
}

// Exit tells how a child ended.
type Exit struct {
	Code   int    // exit code, or 128+n for signal n
	Signal string // name of the signal, or empty
}

// Door is where a command enters and by whose hands it passes.
type Door struct {
	Authority Authority
	Ledger    Ledger
	Executor  Executor
	Now       func() time.Time
	// Links, when set, says which paths of a command lead elsewhere here. If it
	// cannot, nobody is asked: a pattern could cover what it does not mean.
	Links func(grant.Request) (map[string]string, error)
	// Announce, when set, is called once before a wait for a person begins.
	Announce func(api.Grant)
	// Covered, when set, is called when a standing grant has allowed the request.
	Covered func(api.Grant)
}

// Asking is a command that somebody wants to run.
type Asking struct {
	Argv     []string
	Folder   string        // working directory; empty for the process's own
	Grant    string        // an existing grant to use; empty to ask
	Type     grant.Type    // how long a permission is wished for
	Duration time.Duration // of a timed one
	Host     string        // name of this machine
	Reason   string
	Wait     time.Duration // how long a person may take; zero does not wait
}

// Ending is what became of an asking. The zero value is a refusal.
type Ending uint8

// The endings.
const (
	Refused    Ending = iota // the grant is in a state that permits nothing
	Ran                      // the command ran; see Result.Exit
	Waiting                  // a person has yet to answer
	Unanswered               // nobody answered within the wait
	Denied                   // a person said no
	Revoked                  // the permission or request was taken back
	Expired                  // its time ran out, before or after an answer
	Used                     // it was used before
)

// Result is the ending, with the grant as it was last seen.
type Result struct {
	Ending Ending
	Grant  api.Grant
	Exit   Exit
	// Unreported is why the outcome neither reached the authority nor could be
	// kept for later. The command ran all the same.
	Unreported error
}

// Run is the path of a command from a door: bind it, ask, wait if told to,
// redeem the permission, execute, report. Nothing is executed unless the grant
// is approved for the very action that was bound and Redeem has acknowledged
// this one execution. A command that was redeemed but could not start is an
// error too, and reported.
func Run(ctx context.Context, door Door, ask Asking) (Result, error) {
	bound, err := door.Executor.Bind(ask.Argv, ask.Folder)
	if err != nil {
		return Result{}, err
	}
	defer bound.Close()
	req := ask.request(bound.Context())
	if door.Links != nil {
		if req.Context.Links, err = door.Links(req); err != nil {
			return Result{}, err
		}
	}
	g, err := door.obtain(ctx, req, ask.Grant)
	if err != nil {
		return Result{}, err
	}
	if err := sameAction(req, g); err != nil {
		return Result{Grant: g}, err
	}
	if g.Status == grant.Pending {
		if ask.Wait <= 0 {
			return Result{Ending: Waiting, Grant: g}, nil
		}
		if g, err = door.wait(ctx, g, ask.Wait); err != nil {
			return Result{Grant: g}, err
		}
		// While it waited, a link may have been laid that nobody has seen.
		if door.Links != nil {
			facts := *req.Context
			if facts.Links, err = door.Links(req); err != nil {
				return Result{Grant: g}, err
			}
			req.Context = &facts
			if err := sameAction(req, g); err != nil {
				return Result{Grant: g}, err
			}
		}
	}
	if g.Status != grant.Approved {
		return Result{Ending: EndingOf(g.Status), Grant: g}, nil
	}
	if door.Covered != nil && g.Automatic && (g.Standing != "" || g.Policy != "") {
		door.Covered(g)
	}
	use, err := door.Ledger.Redeem(ctx, g.ID, req)
	if err != nil {
		return Result{Grant: g}, err
	}
	return door.execute(ctx, bound, g, use)
}

// obtain asks, or looks an existing grant up.
func (d Door) obtain(ctx context.Context, req grant.Request, id string) (api.Grant, error) {
	if id != "" {
		return d.Authority.Wait(ctx, id, 0)
	}
	return d.Authority.Ask(ctx, req)
}

// wait waits for a person. What comes back must still be the grant that was
// waited for.
func (d Door) wait(ctx context.Context, g api.Grant, limit time.Duration) (api.Grant, error) {
	if d.Announce != nil {
		d.Announce(g)
	}
	answered, err := d.Authority.Wait(ctx, g.ID, limit)
	if err != nil {
		return g, err
	}
	if answered.ID != g.ID {
		return g, fmt.Errorf("the authority answered about grant %q when asked about %q", answered.ID, g.ID)
	}
	return answered, nil
}

// execute runs a redeemed command and reports its outcome. The report is made
// even when the caller was interrupted while the child ran.
func (d Door) execute(ctx context.Context, bound Bound, g api.Grant, use string) (Result, error) {
	start := d.Now()
	exit, runErr := bound.Run(ctx)
	outcome := api.Outcome{
		Use:        use,
		ExitCode:   exit.Code,
		Signal:     exit.Signal,
		DurationMS: d.Now().Sub(start).Milliseconds(),
	}
	if runErr != nil {
		const cannotExecute = 126
		outcome.ExitCode, outcome.Error = cannotExecute, runErr.Error()
	}
	result := Result{Ending: Ran, Grant: g, Exit: exit}
	result.Unreported = d.Ledger.Report(context.WithoutCancel(ctx), g.ID, outcome)
	if runErr != nil {
		result.Ending = Refused
	}
	return result, runErr
}

// request is what goes to the authority.
func (a Asking) request(c grant.Context) grant.Request {
	return grant.Request{
		Host:     a.Host,
		Audience: Audience,
		Type:     a.Type,
		Duration: int64(a.Duration / time.Second),
		Command:  c.Argv,
		Reason:   a.Reason,
		Context:  &c,
	}
}

// EndingOf is how an asking ends whose grant is in state s after the wait. An
// approved one has not ended yet, so that it permits nothing here.
func EndingOf(s grant.Status) Ending {
	switch s {
	case grant.Pending:
		return Unanswered
	case grant.Denied:
		return Denied
	case grant.Revoked:
		return Revoked
	case grant.Expired:
		return Expired
	case grant.Used:
		return Used
	case grant.Approved:
	}
	return Refused
}

// MismatchError tells that a grant is for another action than the one that
// would run.
type MismatchError struct {
	What    string // "command", "host", "folder", "program", "user", "standard input", "box", "network", "set of links", "connection" or "interpreter"
	Granted string // as in the grant
	Found   string // as it is here and now
}

// Error implements error.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("the grant is for another %s: it says %s, here it is %s", e.What, e.Granted, e.Found)
}

// sameAction compares what would run with what the grant is for: every field of
// the request that a statement shows. What the grant does not bind is not
// compared: the person who approved saw that it is not. What it binds and this
// door cannot observe differs.
func sameAction(req grant.Request, g api.Grant) error {
	if g.Request == nil {
		return fmt.Errorf("the authority does not show what grant %q is for; it belongs to somebody else", g.ID)
	}
	granted := g.Request
	switch {
	case !slices.Equal(granted.Command, req.Command):
		return &MismatchError{"command", fmt.Sprintf("%q", granted.Command), fmt.Sprintf("%q", req.Command)}
	case !same(granted.Connect, req.Connect) || (granted.Connect == nil) != (req.Connect == nil):
		return &MismatchError{"connection", value(granted.Connect), value(req.Connect)}
	case granted.Host != req.Host:
		return &MismatchError{"host", granted.Host, req.Host}
	case granted.Context == nil:
		return nil
	}
	was, is := *granted.Context, *req.Context
	standing := g.Standing != "" || g.Policy != "" // nobody saw it: that there were no links has decided, too
	switch {
	case !sameFile(was.Cwd, is.Cwd):
		return &MismatchError{"folder", pathOf(was.Cwd), pathOf(is.Cwd)}
	case !sameFile(was.File, is.File):
		return &MismatchError{"program", describe(was.File), describe(is.File)}
	case standing && (was.File == nil || was.Executable != is.Executable):
		return &MismatchError{"program", was.Executable, is.Executable}
	case !same(was.UID, is.UID):
		return &MismatchError{"user", value(was.UID), value(is.UID)}
	case !same(was.Stdin, is.Stdin):
		return &MismatchError{"standard input", value(was.Stdin), value(is.Stdin)}
	case !same(was.Confinement, is.Confinement):
		return &MismatchError{"box", value(was.Confinement), value(is.Confinement)}
	case (len(was.Links) > 0 || standing) && !maps.Equal(was.Links, is.Links):
		return &MismatchError{"set of links", fmt.Sprint(was.Links), fmt.Sprint(is.Links)}
	case !same(was.NetworkMode, is.NetworkMode):
		return &MismatchError{"network", value(was.NetworkMode), value(is.NetworkMode)}
	}
	return sameInterpreters(was.Interpreters, is.Interpreters)
}

// sameInterpreters compares a list that was bound, whole.
func sameInterpreters(bound, found []statement.File) error {
	if len(bound) == 0 {
		return nil
	}
	at := func(list []statement.File, i int) *statement.File {
		if i < len(list) {
			return &list[i]
		}
		return nil
	}
	for i := range max(len(bound), len(found)) {
		was, is := at(bound, i), at(found, i)
		if was == nil || !sameFile(was, is) {
			return &MismatchError{"interpreter", describe(was), describe(is)}
		}
	}
	return nil
}

// sameFile reports whether the file is all that was bound.
func sameFile(bound, found *statement.File) bool {
	if bound == nil {
		return true
	}
	return found != nil && same(bound.Path, found.Path) && same(bound.Device, found.Device) &&
		same(bound.Inode, found.Inode) && same(bound.SHA256, found.SHA256) && same(bound.Size, found.Size)
}

func same[T comparable](bound, found *T) bool {
	return bound == nil || found != nil && *bound == *found
}

// value shows what may be missing.
func value[T any](v *T) string {
	if v == nil {
		return "not bound"
	}
	return fmt.Sprint(*v)
}

func pathOf(f *statement.File) string {
	if f == nil || f.Path == nil {
		return "unknown"
	}
	return *f.Path
}

// describe names a program by path and content: an update changes the latter.
func describe(f *statement.File) string {
	if f == nil || f.SHA256 == nil {
		return pathOf(f)
	}
	return fmt.Sprintf("%s (SHA-256 %.12s…)", pathOf(f), *f.SHA256)
}
