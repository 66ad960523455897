package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vogt/cmd/vogt/messages"
	"vogt/internal/api"
	"vogt/internal/client"
	"vogt/internal/detail"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/reading"
	"vogt/internal/terminal"
)

func newStandingCommand(e *env) *cobra.Command {
	return newGroup("standing", "Permit classes of commands before anybody asks",
		newStandingAddCommand(e), newStandingListCommand(e), newStandingShowCommand(e), newStandingTestCommand(e),
		newStandingRevokeCommand(e), newStandingResumeCommand(e), newStandingUnusedCommand(e),
		newStandingSuggestCommand(e), newStandingPreviewCommand(e),
	)
}

// patternFlags are the parts of a pattern as flags.
type patternFlags struct {
	who, class, folder, risk string
	pattern                  grant.Pattern
	does                     []string
	box, workspace           string
	days                     int
	reason                   string
	files                    []string // programs, covered by content
	suggested, file          string   // a pattern from elsewhere
}

func newStandingAddCommand(e *env) *cobra.Command {
	var f patternFlags
	var trust trustOptions
	cmd := &cobra.Command{
		Use:   "add [flags]",
		Short: "Sign a pattern: what it covers runs without a card",
		Long: `Sign a pattern. A request that it covers is allowed at once, as a grant of its own
that names the pattern; everything else is asked as before.

A pattern covers by meaning, not by text: programs and operations of the catalog,
what they do, and the folders that they may touch. In a path * stands for any
part of one name and ** for any folders. Outside of a box nothing is covered that
could run what the agent has written, that consults a repository's settings, shows
credentials, or cannot be known from its text; with --box these are the box's to
hold. What is critical is never covered.

--class fills in what is usual for a kind of work in --folder (default: this one):
  safe       the safe commands (vogt help safe), reading in the folder and in the
             documentation of the system
  inspect    what reads repositories and builds (git log, go version, npm ls …), in
             the box read
  box        anything at all, in the box default about the folder, without a network:
             to build and to test
  edit       changes of files in the folder, but for those that run or steer later
  install    as box, with no other network than the hosts of --host: package installs
             through a mirror (vogt run --confine --allow HOST -- npm ci)

--content covers a program of your own by what its file holds, whatever it does.
"vogt standing preview" takes the same flags and shows what a pattern would have
covered of what was asked; "vogt standing suggest" makes patterns from that.

Signing is a change of trust: it is signed with the SSH key of your login, or
confirmed on the page whose address is printed.`,
		Example: `  vogt standing add --class box --for coder
  vogt standing add --program git --operation git.log --box read --reason "history"
  vogt standing add --program grep,rg --read "/home/me/src/**" --days 30`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error { return e.addStanding(cmd.Context(), f, trust) }),
	}
	f.add(cmd)
	cmd.Flags().IntVar(&f.days, "days", grant.DefaultDays, "how many days it lasts")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, in words for yourself")
	cmd.Flags().StringVar(&trust.key, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}

// add gives a command the flags that describe a pattern.
func (f *patternFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.who, "for", "*", "the agent `NAME` that it is for, or group:NAME (default: all of yours)")
	flags.StringVar(&f.class, "class", "", "fill in a `CLASS`: safe, inspect, box, edit or install")
	flags.StringVar(&f.suggested, "suggested", "", "the pattern of a suggestion, by its `KEY`")
	flags.StringVar(&f.file, "pattern-file", "", "the pattern as JSON in a `FILE` (- for standard input)")
	flags.StringSliceVar(&f.files, "content", nil, "cover this `PROGRAM` by the SHA-256 of its file, in its folder")
	flags.StringVar(&f.folder, "folder", "", "the `FOLDER` of the class (default: this one)")
	flags.StringSliceVar(&f.pattern.Programs, "program", nil, "a `PROGRAM`, as the catalog names it")
	flags.StringSliceVar(&f.pattern.Operations, "operation", nil, "an `OPERATION` of the catalog, such as git.log")
	flags.StringSliceVar(&f.does, "does", nil, "what it may do: read, write, delete, connect, any (in a box)")
	flags.StringSliceVar(&f.pattern.Read, "read", nil, "a `PATTERN` of paths that may be read")
	flags.StringSliceVar(&f.pattern.Write, "write", nil, "a `PATTERN` of paths that may be written, too")
	flags.StringSliceVar(&f.pattern.Hosts, "host", nil, "a `HOST` that may be contacted: name or *.name")
	flags.StringVar(&f.pattern.Machine, "machine", "", "only requests from this `MACHINE`")
	flags.StringVar(&f.box, "box", "", "cover only what runs in a box of this `PROFILE`, without a network")
	flags.StringVar(&f.workspace, "workspace", "", "a `PATTERN` of the folder that the box is about")
	flags.StringVar(&f.risk, "max-risk", "", "the highest `RISK`: low, medium or high (default: medium, in a box high)")
	flags.Int64Var(&f.pattern.Limits.PerMinute, "per-minute", 0, "how many uses a minute, before it is paused (default: 60)")
	flags.Int64Var(&f.pattern.Limits.Deletes, "deletes", 0, "how many uses an hour that delete (default: 50)")
	flags.Int64Var(&f.pattern.Limits.Uses, "uses", 0, "how many uses in all (default: any number)")
}

// complete is the pattern that the flags describe.
func (f patternFlags) complete(e *env) (grant.Pattern, error) {
	p := f.pattern
	for _, name := range f.files {
		digest, folder, err := e.fileDigest(name)
		if err != nil {
			return p, err
		}
		p.Files = append(p.Files, digest)
		if len(p.Read)+len(p.Write) == 0 || len(f.pattern.Read) == 0 {
			p.Read = append(p.Read, filepath.Join(folder, "**"))
		}
	}
	for _, d := range f.does {
		p.Does = append(p.Does, grant.Deed(d))
	}
	if f.risk != "" {
		if err := p.MaxRisk.UnmarshalText([]byte(f.risk)); err != nil {
			return p, err
		}
	}
	if f.box != "" || f.workspace != "" {
		p.Box = &grant.Box{Profile: f.box, Workspace: f.workspace}
	}
	switch said := f.said(); {
	case f.class != "" && len(said) > 0:
		return p, fmt.Errorf("%s beside --class: a class says it already; leave one of them out", strings.Join(said, ", "))
	case f.class != "":
		if err := f.fill(e, &p); err != nil {
			return p, err
		}
	case f.folder != "":
		return p, errors.New("--folder is that of a --class")
	}
	return p.Complete()
}

// fill adds what is usual for a class.
func (f patternFlags) fill(e *env, p *grant.Pattern) error {
	var folders []string
	if class := grant.Class(f.class); class != grant.ClassInspect {
		folder := f.folder
		if folder == "" {
			folder = "."
		}
		folder, err := canonical(folder)
		if err != nil {
			return err
		}
		if e.holdsHome(folder) {
			return fmt.Errorf("the folder %s is or holds your home: name a project in it with --folder", folder)
		}
		folders = []string{folder}
	}
	filled, err := grant.NewClass(grant.Class(f.class), p.Agent, folders, p.Hosts)
	if err != nil {
		return err
	}
	filled.Machine = p.Machine
	if p.Limits.PerMinute != 0 {
		filled.Limits.PerMinute = p.Limits.PerMinute
	}
	if p.Limits.Deletes != 0 {
		filled.Limits.Deletes = p.Limits.Deletes
	}
	filled.Limits.Uses = p.Limits.Uses
	*p = filled
	return nil
}

// said are the flags of the parts that a class fills in: beside one they would be
// lost, or widen what it means.
func (f patternFlags) said() (names []string) {
	for _, part := range []struct {
		name string
		is   bool
	}{
		{"--program", len(f.pattern.Programs) > 0}, {"--operation", len(f.pattern.Operations) > 0}, {"--does", len(f.does) > 0},
		{"--read", len(f.pattern.Read) > 0}, {"--write", len(f.pattern.Write) > 0}, {"--host", len(f.pattern.Hosts) > 0 && f.class != string(grant.ClassInstall)},
		{"--box", f.box != ""}, {"--workspace", f.workspace != ""}, {"--content", len(f.files) > 0}, {"--max-risk", f.risk != "" && f.class != ""},
	} {
		if part.is {
			names = append(names, part.name)
		}
	}
	return names
}

// pattern is the one that the flags describe, of a class, a suggestion or a file.
func (e *env) pattern(ctx context.Context, f patternFlags) (p grant.Pattern, err error) {
	if f.pattern.Agent, err = e.agentAddress(ctx, f.who); err != nil {
		return p, err
	}
	switch {
	case f.suggested != "" || f.file != "":
		if said := f.said(); len(said) > 0 || f.class != "" || f.suggested != "" && f.file != "" {
			return p, &usageError{text: e.text(messages.BadPattern, "it is whole already: leave --class and the flags of its parts out")}
		}
		if f.file != "" {
			return e.patternFile(f.file)
		}
		return e.suggested(ctx, f.suggested)
	default:
		if p, err = f.complete(e); err != nil {
			return p, &usageError{text: e.text(messages.BadPattern, err.Error())}
		}
		return p, nil
	}
}

// patternFile reads a pattern from JSON.
func (e *env) patternFile(name string) (p grant.Pattern, err error) {
	var text []byte
	if name == "-" {
		text, err = io.ReadAll(io.LimitReader(e.stdin, grant.MaxPattern+1))
	} else {
		text, err = os.ReadFile(name)
	}
	if err == nil {
		p, err = grant.ParsePattern(strings.TrimSpace(string(text)))
	}
	if err != nil {
		return p, &usageError{text: e.text(messages.PatternNotFile, terminal.Visible(err.Error()))}
	}
	return p, nil
}

// suggestDays is how far back suggestions look.
const suggestDays = 30

// suggested finds a suggestion again by its key.
func (e *env) suggested(ctx context.Context, key string) (p grant.Pattern, err error) {
	c, err := e.open(ctx)
	if err != nil {
		return p, err
	}
	defer c.Close()
	list, err := c.Suggestions(ctx, suggestDays)
	if err != nil {
		return p, err
	}
	for _, s := range list {
		if s.Key == key {
			return s.Pattern, nil
		}
	}
	return p, &client.Error{Kind: client.Unknown, Detail: e.text(messages.NoSuggestion, terminal.Visible(key))}
}

func (e *env) addStanding(ctx context.Context, f patternFlags, trust trustOptions) error {
	p, err := e.pattern(ctx, f)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		return err
	}
	params := map[string]string{"pattern": string(encoded), "days": strconv.Itoa(f.days)}
	if f.reason != "" {
		params["reason"] = f.reason
	}
	done, authority, err := e.changeTrust(ctx, trust, api.TrustStandingAdd, params)
	if err != nil {
		return err
	}
	if done.Standing == nil {
		return &client.Error{Kind: client.Malformed, Where: authority, Detail: "the standing grant is missing in the answer"}
	}
	return e.print(done.Standing, func(w io.Writer) error {
		s := &sheet{w: w}
		s.standing(*done.Standing)
		if box := done.Standing.Pattern.Box; s.err == nil && box != nil {
			_, s.err = fmt.Fprintln(w, e.text(messages.StandingInBox, "vogt run --confine="+box.Profile+" -- …"))
		}
		return s.err
	})
}

// agentAddress is the address of one of the person's agents, by its name. An address
// stays itself, and so does "*" for all of them.
func (e *env) agentAddress(ctx context.Context, who string) (address string, err error) {
	if who == "*" || strings.Contains(who, "@") || strings.HasPrefix(who, grant.GroupPrefix) {
		return who, nil
	}
	err = e.withAgent(ctx, who, func(_ *client.Client, p api.Principal) error {
		address = p.Email
		return nil
	})
	return address, err
}

// standing shows a pattern whole.
func (s *sheet) standing(g api.Standing) {
	s.fact("ID", g.ID)
	state := string(g.Status)
	if g.Status == grant.Approved {
		state = "in force"
	}
	if g.Paused != "" && g.Status == grant.Approved {
		state = "paused: " + g.Paused
	}
	s.fact("State", state)
	for _, f := range patternFacts(g.Pattern) {
		s.fact(f[0], f[1])
	}
	s.some("Reason", g.Reason)
	s.some("Signed", moment(g.CreatedAt)+" by "+g.Author+" ("+string(g.Strength)+", record "+strconv.FormatInt(g.Record, 10)+")")
	s.some("Ends", moment(g.ExpiresAt))
	used := strconv.FormatInt(g.Uses, 10)
	if g.LastUsedAt != 0 {
		used += ", last " + moment(g.LastUsedAt)
	}
	s.fact("Used", used)
}

// patternFacts are the parts of a pattern by name.
func patternFacts(p grant.Pattern) (out [][2]string) {
	list := func(name string, values []string, none string) {
		if text := strings.Join(values, ", "); text != "" {
			out = append(out, [2]string{name, text})
		} else if none != "" {
			out = append(out, [2]string{name, none})
		}
	}
	agent := p.Agent
	if agent == "*" {
		agent = "all your agents"
	}
	if p.Class != "" {
		list("Class", []string{string(p.Class)}, "")
	}
	list("Agent", []string{agent}, "")
	if p.Machine != "" {
		list("Machine", []string{p.Machine}, "")
	}
	if p.Audience != "" {
		list("Audience", []string{p.Audience}, "")
	}
	if p.Unseen {
		list("Also", []string{"requests that do not say where they run; nobody has looked where links lead"}, "")
	}
	if len(p.Files) == 0 {
		list("Programs", p.Programs, "any")
	}
	list("Operations", p.Operations, "")
	var deeds []string
	for _, d := range p.Does {
		deeds = append(deeds, string(d))
	}
	list("May", deeds, "")
	if p.Box != nil {
		where := "the box " + p.Box.Profile + ", without a network"
		if len(p.Hosts) > 0 {
			where = "the box " + p.Box.Profile + ", with no network but " + strings.Join(p.Hosts, ", ")
		}
		if p.Box.Workspace != "" {
			where += ", about " + p.Box.Workspace
		}
		list("Only in", []string{where}, "")
	} else {
		list("Reads in", p.Read, "")
		list("Writes in", p.Write, "")
	}
	if p.Box == nil {
		list("Hosts", p.Hosts, "")
	}
	list("Content", p.Files, "")
	limits := fmt.Sprintf("risk %s, %d uses a minute, %d deletes an hour", p.MaxRisk, p.Limits.PerMinute, p.Limits.Deletes)
	if p.Limits.Uses > 0 {
		limits += fmt.Sprintf(", %d uses in all", p.Limits.Uses)
	}
	list("Up to", []string{limits}, "")
	return out
}

// brief is a pattern in a line.
func brief(p grant.Pattern) string {
	var parts []string
	for _, f := range patternFacts(p) {
		switch f[0] {
		case "Class":
			parts = append(parts, "class "+f[1]) // its programs say no more
		case "Programs", "Operations":
			if p.Class == "" {
				parts = append(parts, f[1])
			}
		case "Content":
			parts = append(parts, fmt.Sprintf("%d programs by content", len(p.Files)))
		case "May", "Only in", "Reads in", "Writes in", "Hosts":
			parts = append(parts, strings.ToLower(f[0][:1])+f[0][1:]+" "+f[1])
		}
	}
	return strings.Join(parts, "; ")
}

func newStandingListCommand(e *env) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the patterns that are in force",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			return e.listStanding(cmd.Context(), "", func(s api.Standing) bool { return all || s.Status == grant.Approved })
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "those that are over, too")
	return cmd
}

// listStanding lists those that are wanted, or says none where there are others.
func (e *env) listStanding(ctx context.Context, none string, wanted func(api.Standing) bool) error {
	c, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	list, err := c.Standing(ctx)
	if err != nil {
		return err
	}
	shown := []api.Standing{}
	for _, s := range list {
		if wanted(s) {
			shown = append(shown, s)
		}
	}
	return e.print(shown, func(w io.Writer) error {
		switch {
		case len(shown) == 0 && len(list) == 0:
			return line(e.text(messages.NoStanding))(w)
		case len(shown) == 0 && none != "":
			return line(none)(w)
		case len(shown) == 0:
			return line(e.text(messages.NoneOfStanding, len(list)))(w)
		}
		table := terminal.Table{Header: []string{"ID", "STATE", "USED", "FOR", "ENDS", "COVERS"}, Width: terminal.Width(e.stdout)}
		for _, s := range shown {
			state := string(s.Status)
			if s.Paused != "" && s.Status == grant.Approved {
				state = "paused"
			}
			table.Rows = append(table.Rows, []string{s.ID, state, strconv.FormatInt(s.Uses, 10), forWhom(s.Pattern.Agent), onDay(s.ExpiresAt), brief(s.Pattern)})
		}
		return table.Print(w)
	})
}

// forWhom is whom a pattern is for, as short as a list wants it.
func forWhom(agent string) string {
	if agent == "*" {
		return "all"
	}
	name, _, _ := strings.Cut(agent, "+")
	return name
}

func onDay(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.DateOnly) }

// withStanding finds a standing grant by its id, or what it begins with.
func (e *env) withStanding(ctx context.Context, id string, do func(*client.Client, api.Standing) error) error {
	c, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	list, err := c.Standing(ctx)
	if err != nil {
		return err
	}
	s, ok := byID(list, id, func(s api.Standing) string { return s.ID })
	if !ok {
		return &client.Error{Kind: client.Unknown, Detail: e.text(messages.NoSuchStanding, terminal.Visible(id))}
	}
	return do(c, s)
}

// byID finds the one of a list that has an id, or alone begins with at least eight
// characters of one.
func byID[T any](list []T, id string, of func(T) string) (found T, ok bool) {
	n := 0
	for _, v := range list {
		if of(v) == id {
			return v, true
		}
		if len(id) >= 8 && strings.HasPrefix(of(v), id) {
			found = v
			n++
		}
	}
	return found, n == 1
}

func newStandingShowCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a pattern",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.withStanding(cmd.Context(), args[0], func(_ *client.Client, g api.Standing) error {
				return e.print(g, func(w io.Writer) error {
					s := &sheet{w: w}
					s.standing(g)
					return s.err
				})
			})
		}),
	}
}

func newStandingRevokeCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID…",
		Short: "Take patterns back, and what they gave and nobody has used; the login suffices",
		Args:  cobra.MinimumNArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			for _, id := range args {
				err := e.withStanding(cmd.Context(), id, func(c *client.Client, s api.Standing) error {
					if err := c.RevokeStanding(cmd.Context(), s.ID); err != nil {
						return err
					}
					return e.print(map[string]any{"id": s.ID, "status": grant.Revoked}, line(e.text(messages.StandingRevoked, s.ID)))
				})
				if err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func newStandingResumeCommand(e *env) *cobra.Command {
	var trust trustOptions
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Let a pattern cover again that was paused because a limit was exceeded",
		Args:  cobra.ExactArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			return e.withStanding(cmd.Context(), args[0], func(_ *client.Client, s api.Standing) error {
				if _, _, err := e.changeTrust(cmd.Context(), trust, api.TrustStandingResume, map[string]string{"id": s.ID}); err != nil {
					return err
				}
				return e.print(map[string]any{"id": s.ID, "paused": ""}, line(e.text(messages.StandingResumed, s.ID)))
			})
		}),
	}
	cmd.Flags().StringVar(&trust.key, "owner-key", "", "the SSH key `FILE` to sign with (default: that of the login)")
	return cmd
}

func newStandingUnusedCommand(e *env) *cobra.Command {
	days := 30
	cmd := &cobra.Command{
		Use:   "unused",
		Short: "List the patterns that nobody has used for some time",
		Args:  cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			if days < 0 {
				return &usageError{text: e.text(messages.BadPattern, "--days is negative")}
			}
			before := e.now().Add(-time.Duration(days) * 24 * time.Hour).Unix()
			return e.listStanding(cmd.Context(), e.text(messages.NoneUnused, days), func(s api.Standing) bool {
				return s.Status == grant.Approved && max(s.LastUsedAt, s.CreatedAt) <= before
			})
		}),
	}
	cmd.Flags().IntVar(&days, "days", days, "for how many `DAYS`")
	return cmd
}

func newStandingTestCommand(e *env) *cobra.Command {
	var who, confined, workspace string
	cmd := &cobra.Command{
		Use:   "test [flags] -- COMMAND [ARGUMENT…]",
		Short: "Say what the patterns would make of a command, and why; nothing is asked",
		Args:  cobra.ArbitraryArgs,
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{text: e.text(messages.NoCommandToTest)}
			}
			return e.testStanding(cmd.Context(), who, confined, workspace, args)
		}),
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&who, "for", "", "the agent `NAME` that would ask (with a person's login)")
	cmd.Flags().StringVar(&confined, "confine", "", "as if it ran in a box with this `PROFILE` (without one: default)")
	cmd.Flags().Lookup("confine").NoOptDefVal = "default"
	cmd.Flags().StringVar(&workspace, "workspace", "", "the `FOLDER` that the box is about (default: this one)")
	return cmd
}

func (e *env) testStanding(ctx context.Context, who, confined, workspace string, args []string) error {
	host, err := hostname()
	if err != nil {
		return err
	}
	if confined != "" {
		if e.box, err = e.newBox(confined, workspace); err != nil {
			return err
		}
	}
	bound, err := e.executor().Bind(args, "")
	if err != nil {
		return err
	}
	defer bound.Close()
	facts := bound.Context()
	req := grant.Request{Host: host, Command: facts.Argv, Context: &facts}
	if facts.Links, err = e.links(req); err != nil {
		return err
	}
	c, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if !c.Login().Agent() {
		if who == "" {
			return &usageError{text: e.text(messages.TestForWhom)}
		}
		if who, err = e.agentAddress(ctx, who); err != nil {
			return err
		}
	}
	answer, err := c.TestStanding(ctx, api.TestStanding{Agent: who, Request: req})
	if err != nil {
		return err
	}
	err = e.print(answer, func(w io.Writer) error {
		var b strings.Builder
		for _, call := range answer.Calls {
			shown := call.Shown
			if shown == "" {
				shown = call.Permission
			}
			if call.Standing != "" {
				fmt.Fprintf(&b, "covered   %s\n          by %s\n", terminal.Visible(shown), call.Standing)
				continue
			}
			fmt.Fprintf(&b, "asks      %s\n          risk %s; %s\n", terminal.Visible(shown), call.Risk, call.Effects)
			for _, m := range call.Missed {
				fmt.Fprintf(&b, "          not by %s: %s\n", m.Standing, terminal.Visible(m.Why))
			}
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
	if err == nil && !answer.Covered {
		err = withCode(exitUndecided, nil)
	}
	return err
}

// links are the paths of a command that lead elsewhere on this machine. Where
// something is missing, what it would be made in is looked at. Of too many paths
// the rest leads nowhere known, which no pattern covers. With them go the programs
// that the command starts in turn, where another than the system's is found.
func (e *env) links(req grant.Request) (map[string]string, error) {
	rd, err := e.reader()
	if err != nil {
		return nil, err
	}
	at := reading.Place{Home: e.getenv("HOME")}
	if c := req.Context.Cwd; c != nil && c.Path != nil {
		at.Cwd = *c.Path
	}
	r, err := rd.Argv(req.Command, req.Context.Executable, at)
	if err != nil || r.Effects.Has(detail.Opaque) {
		return nil, nil // the authority reads the same, and covers nothing of it by its paths
	}
	var out map[string]string
	add := func(name, target string) {
		if out == nil {
			out = make(map[string]string)
		}
		out[name] = target
	}
	n := 0
	for i, call := range r.Calls {
		// The first one is bound by itself.
		if name := programOf(call); i > 0 && i <= flow.MaxLinks && name != "" {
			if at := onPath(e.getenv("PATH"), at.Cwd, name); at != "" && !reading.System(at) {
				add(name, at)
			}
		}
		for _, list := range [][]string{call.Paths.Reads, call.Paths.Writes, call.Paths.Deletes, {call.Cwd}} {
			for _, name := range list {
				// Where it lies if a cd fails is looked at, too.
				for _, name := range slices.Compact([]string{name, call.Fallen(name)}) {
					if !filepath.IsAbs(name) {
						continue
					}
					target := ""
					if n++; n <= flow.MaxLinks {
						target = resolved(name)
					}
					if target != "" {
						target = e.insteadOf(rd, call, target)
					}
					if target != name {
						add(name, target)
					}
				}
			}
		}
	}
	return out, nil
}

// maxBelow bounds the files that are looked at below a folder that is searched.
const maxBelow = 50_000

// insteadOf is what reading a path would touch in truth: nothing known for what is
// neither file nor folder, and a file of credentials below a folder whose files a
// program searches. Otherwise it is the path.
func (e *env) insteadOf(rd *reading.Reader, call *reading.Call, name string) string {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return name // what is not there is made, or fails
	case info.Mode().IsRegular():
		return name
	case !info.IsDir():
		return ""
	}
	switch call.Program {
	case "grep", "egrep", "fgrep", "rgrep", "zgrep", "ugrep", "rg", "ag", "ack":
	default:
		return name
	}
	found, n := name, 0
	err = filepath.WalkDir(name, func(at string, d os.DirEntry, err error) error {
		if n++; err != nil || n > maxBelow {
			found = ""
			return filepath.SkipAll
		}
		if !d.IsDir() && rd.Classify(at).Credential {
			found = at
			return filepath.SkipAll
		}
		return nil
	})
	if err != nil {
		return ""
	}
	return found
}

// programOf is the name of a call's program that is looked for on the PATH.
func programOf(call *reading.Call) string {
	if len(call.Words) == 0 || strings.Contains(call.Words[0].Text, "/") {
		return ""
	}
	return call.Words[0].Text
}

// onPath is where a shell finds a program first, or would, if it were executable.
func onPath(path, cwd, name string) string {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
		at := filepath.Join(dir, name)
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() {
			return at
		}
	}
	return ""
}

// resolved follows the links of a path as far as it exists.
func resolved(name string) string {
	rest := ""
	for at := name; ; at = filepath.Dir(at) {
		target, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(target, rest)
		}
		if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return "" // leads nowhere, or in a circle: within no pattern
		}
		if at == filepath.Dir(at) || !errors.Is(err, os.ErrNotExist) {
			return "" // it cannot be looked at
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

func newStandingPreviewCommand(e *env) *cobra.Command {
	var f patternFlags
	days := suggestDays
	cmd := &cobra.Command{
		Use:   "preview [ID] [flags]",
		Short: "Say what a pattern would have covered of what was asked, and what stays out",
		Long: `Say what a pattern would have covered of what was asked in the last days, and where
it ends: with examples, the dangerous neighbours among them. The pattern is one that
is signed, by its ID, or described as for "vogt standing add". Nothing is changed.`,
		Args: cobra.MaximumNArgs(1),
		RunE: command(func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return e.withStanding(cmd.Context(), args[0], func(c *client.Client, s api.Standing) error {
					return e.preview(cmd.Context(), c, s.Pattern, days)
				})
			}
			p, err := e.pattern(cmd.Context(), f)
			if err != nil {
				return err
			}
			c, err := e.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			return e.preview(cmd.Context(), c, p, days)
		}),
	}
	f.add(cmd)
	cmd.Flags().IntVar(&days, "days", days, "how many `DAYS` back (at most 90)")
	return cmd
}

func (e *env) preview(ctx context.Context, c *client.Client, p grant.Pattern, days int) error {
	out, err := c.PreviewStanding(ctx, api.PreviewStanding{Pattern: p, Days: days})
	if err != nil {
		return err
	}
	return e.print(out, func(w io.Writer) error {
		var b strings.Builder
		fmt.Fprintf(&b, "In %d days: %d of %d requests, %d of them cards that you answered.\n", days, out.Covered, out.Requests, out.Cards)
		for _, part := range []struct {
			title string
			rows  []api.Previewed
		}{{"Covers", out.Covers}, {"Stays out", out.StaysOut}} {
			if len(part.rows) > 0 {
				fmt.Fprintln(&b, part.title)
			}
			for _, r := range part.rows {
				count := "e.g."
				if r.Count > 0 {
					count = strconv.Itoa(r.Count) + " ×"
				}
				fmt.Fprintf(&b, "  %-6s %s\n", count, terminal.Visible(r.Command))
				if r.Why != "" {
					fmt.Fprintf(&b, "         %s\n", terminal.Visible(r.Why))
				}
			}
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
}

func newStandingSuggestCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "suggest",
		Short: "Make patterns from what you have allowed again and again; nothing is changed",
		Long: `Make patterns from the cards of the last 30 days: each would have spared at least
three of them, and covers nothing that you denied. Nothing is ever widened by itself:
a suggestion does nothing until you sign it.`,
		Args: cobra.NoArgs,
		RunE: command(func(cmd *cobra.Command, _ []string) error {
			c, err := e.open(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			list, err := c.Suggestions(cmd.Context(), suggestDays)
			if err != nil {
				return err
			}
			return e.print(list, func(w io.Writer) error {
				if len(list) == 0 {
					return line(e.text(messages.NoSuggestions, suggestDays))(w)
				}
				var b strings.Builder
				for _, s := range list {
					fmt.Fprintf(&b, "%s  %d cards for %s\n  %s\n", s.Key, s.Cards, s.Pattern.Agent, terminal.Visible(brief(s.Pattern)))
					for _, x := range s.Examples {
						fmt.Fprintf(&b, "    %d × %s\n", x.Count, terminal.Visible(x.Command))
					}
				}
				b.WriteString(e.text(messages.SuggestedHow) + "\n")
				_, err := io.WriteString(w, b.String())
				return err
			})
		}),
	}
}
