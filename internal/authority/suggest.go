package authority

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"vogt/internal/api"
	"vogt/internal/coverage"
	"vogt/internal/detail"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/reading"
	"vogt/internal/store"
)

const (
	// maxHistory is how many requests are looked at, the newest first.
	maxHistory = 2000
	// maxHistoryDays is how far back, defaultHistoryDays when nothing is said.
	maxHistoryDays, defaultHistoryDays = 90, 30
	// maxIdeas bounds the patterns that are tried on the history.
	maxIdeas = 300
	// minCards is how many cards a pattern must have spared to be suggested.
	minCards = 3
	// maxFolderIdeas bounds the folders that one request suggests.
	maxFolderIdeas = 8
	// maxSuggestions and maxShown bound what is answered.
	maxSuggestions, maxShown = 8, 6
)

// past is a request of the history, read again.
type past struct {
	agent    string
	machine  string
	audience string
	command  string
	calls    []coverage.Call
	where    coverage.Where
	read     flow.Reading
	critical bool
	allowed  bool // by a person
	denied   bool
	count    int // of equal ones
}

// history reads what a person's agents have asked, equal requests as one.
func (a *Authority) history(ctx context.Context, person store.Principal, days int) ([]*past, error) {
	if days <= 0 {
		days = defaultHistoryDays
	}
	since := a.now() - grant.Millis(min(days, maxHistoryDays))*24*hourMS
	var rows []grant.Grant
	err := a.view(ctx, func(tx store.Tx) (err error) {
		f := store.Filter{Viewer: person.Email, Since: max(since, grant.Millis(person.Created)), Limit: maxHistory, Now: a.now()}
		if rows, err = store.ListGrants(tx, f); err != nil {
			return err
		}
		// What was denied is looked at by itself: an agent that asks much, and gets it
		// by its patterns, cannot push it out.
		f.Status = grant.Denied
		denied, err := store.ListGrants(tx, f)
		for _, g := range denied {
			if len(rows) >= maxHistory && older(g, rows[len(rows)-1]) {
				rows = append(rows, g)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []*past
	seen := make(map[string]*past)
	for _, g := range rows {
		if g.Owner != person.Email || g.Request.Requester == person.Email || g.Request.Connect != nil {
			continue
		}
		state := "asked"
		switch {
		case g.Status == grant.Denied:
			state = "denied"
		case g.Decision != nil && g.Decision.Standing == "" && g.Decision.Policy == "":
			state = "allowed"
		}
		key := state + " " + g.Request.Requester + " " + hex.EncodeToString(g.Identity[:])
		if p := seen[key]; p != nil {
			p.count++
			continue
		}
		read, err := flow.Read(a.reader, g.Request)
		if err != nil || len(read.Calls) == 0 {
			continue
		}
		p := &past{
			agent: g.Request.Requester, machine: g.Request.Host, audience: g.Request.Audience, command: shorten(read.Calls[0].Shown(), maxReason),
			calls: read.Covered(), where: flow.WhereOf(g.Request), read: read, critical: !read.Coverable(),
			allowed: state == "allowed", denied: state == "denied", count: 1,
		}
		seen[key], out = p, append(out, p)
	}
	return out, nil
}

// older reports whether a stands after b in a list with the newest first.
func older(a, b grant.Grant) bool {
	return a.Created < b.Created || a.Created == b.Created && a.ID < b.ID
}

// covers reports whether a pattern alone covers a request of the history.
func (p *past) covers(pattern *grant.Pattern, groups []string, author string) (bool, string) {
	s := grant.Standing{Author: author, Pattern: *pattern}
	if !s.For(p.agent, author, groups, p.machine, p.audience) {
		return false, "it is another agent's, or from another machine or for another audience"
	}
	if p.critical {
		return false, "it is critical, which is asked every time"
	}
	for i := range p.calls {
		if ok, why := coverage.Covers(pattern, &p.calls[i], p.where); !ok {
			return false, why
		}
	}
	return true, ""
}

// groupsOf are the groups of each of a person's agents.
func (a *Authority) groupsOf(ctx context.Context, owner string) (map[string][]string, error) {
	out := make(map[string][]string)
	err := a.view(ctx, func(tx store.Tx) error {
		members, err := store.Groups(tx, owner)
		for _, m := range members {
			out[m.Agent] = append(out[m.Agent], m.Group)
		}
		return err
	})
	return out, err
}

// PreviewStanding says what a pattern would have covered, and shows examples of
// what it covers and what stays out.
func (a *Authority) PreviewStanding(ctx context.Context, by Actor, in api.PreviewStanding) (out api.StandingPreview, err error) {
	if !by.Person() {
		return out, problem(403, "Only a person looks at what patterns would cover", "", "Log in as a person: vogt login.").kind("forbidden")
	}
	p, err := in.Pattern.Complete()
	if err != nil {
		return out, problem(400, "The pattern cannot be taken", err.Error()+".", "Correct it; vogt standing add --help names what a pattern may hold.")
	}
	p.Agent = lower(p.Agent)
	out = api.StandingPreview{Pattern: p, Covers: []api.Previewed{}, StaysOut: []api.Previewed{}}
	groups, err := a.groupsOf(ctx, by.Principal.Email)
	if err != nil {
		return out, err
	}
	history, err := a.history(ctx, by.Principal, in.Days)
	if err != nil {
		return out, err
	}
	for _, was := range history {
		out.Requests += was.count
		ok, why := was.covers(&p, groups[was.agent], by.Principal.Email)
		row := api.Previewed{Command: was.command, Count: was.count}
		if ok {
			out.Covered += was.count
			if was.allowed {
				out.Cards += was.count
			}
			if len(out.Covers) < maxShown {
				out.Covers = append(out.Covers, row)
			}
			continue
		}
		// What other programs do is no neighbour of the pattern.
		if row.Why = why; len(out.StaysOut) < maxShown && was.near(&p) {
			out.StaysOut = append(out.StaysOut, row)
		}
	}
	a.examples(&p, &out)
	return out, nil
}

// near reports whether a request is about what a pattern names.
func (p *past) near(pattern *grant.Pattern) bool {
	if len(pattern.Programs) == 0 {
		return true
	}
	return slices.ContainsFunc(p.read.Details, func(d detail.Detail) bool {
		c, ok := d.(detail.Command)
		return ok && slices.Contains(pattern.Programs, c.Program)
	})
}

// exampleLines are ordinary and dangerous commands that show where a pattern ends.
// They are read and compared like requests, never run.
func exampleLines() []string {
	return []string{
		"ls -la", "cat README.md", "grep -rn TODO .", "find . -name '*.go'", "wc -l a.txt", "date",
		"git log --oneline", "git status", "git diff", "go version", "npm ls",
		"sed -i s/a/b/ a.txt", "cp a.txt b.txt", "mkdir out", "touch a.txt", "go test ./...", "npm ci", "make", "./run.sh",
		"find . -delete", "cat .env", "cat ~/.ssh/id_ed25519", "cat ../other/secret.txt", "rm -rf out", "tee .git/hooks/pre-commit", "cp a.txt .github/workflows/ci.yml",
		"git push", "curl https://example.com", "sudo true",
	}
}

// examples adds what a pattern covers and what stays out, in its own folder.
func (a *Authority) examples(p *grant.Pattern, out *api.StandingPreview) {
	cwd := "/home/agent/project"
	if folders := p.Folders(); len(folders) > 0 && !strings.Contains(folders[0], "*") {
		cwd = folders[0]
	}
	var far []api.Previewed
	for _, line := range exampleLines() {
		read := a.reader.Text(line, reading.Place{Cwd: cwd, Home: "/home/agent"})
		r := flow.Reading{Reading: read, Details: read.Details(), Risk: read.Risk}
		was := past{agent: p.Agent, machine: p.Machine, audience: p.Audience, calls: r.Covered(), read: r, critical: !r.Coverable()}
		if p.Box != nil {
			was.where = coverage.Where{Profile: p.Box.Profile, Workspace: cwd, Offline: len(p.Hosts) == 0, Reaches: p.Hosts}
		}
		ok, why := true, ""
		if was.critical {
			ok, why = false, "it is critical, which is asked every time"
		}
		for i := range was.calls {
			if ok {
				ok, why = coverage.Covers(p, &was.calls[i], was.where)
			}
		}
		row := api.Previewed{Command: line, Why: why}
		switch {
		case ok && len(out.Covers) < 2*maxShown:
			out.Covers = append(out.Covers, row)
		case !ok && was.near(p) && len(p.Programs) > 0:
			out.StaysOut = append(out.StaysOut, row)
		case !ok && (len(p.Programs) == 0 || read.Effects.Has(detail.Writes|detail.Executes|detail.Secrets)):
			far = append(far, row)
		}
	}
	// The dangerous neighbours of what is covered come first.
	out.StaysOut = append(out.StaysOut, far[:min(len(far), max(0, 2*maxShown-len(out.StaysOut)))]...)
}

// Suggestions are patterns that would have spared cards of the last days, the most
// useful first. None covers anything that was denied.
func (a *Authority) Suggestions(ctx context.Context, by Actor, days int) ([]api.Suggestion, error) {
	if !by.Person() {
		return nil, problem(403, "Only a person gets suggestions", "", "Log in as a person: vogt login.").kind("forbidden")
	}
	all, err := a.history(ctx, by.Principal, days)
	if err != nil {
		return nil, err
	}
	groups, err := a.groupsOf(ctx, by.Principal.Email)
	if err != nil {
		return nil, err
	}
	var standing []store.Standing
	err = a.view(ctx, func(tx store.Tx) (err error) {
		standing, err = store.StandingOf(tx, by.Principal.Email)
		return err
	})
	if err != nil {
		return nil, err
	}
	// What a pattern covers by now makes no card any more.
	var open, denied []*past
	for _, was := range all {
		covered := slices.ContainsFunc(standing, func(s store.Standing) bool {
			ok, _ := was.covers(&s.Pattern, groups[was.agent], by.Principal.Email)
			return ok && s.Active(a.now())
		})
		switch {
		case was.denied:
			denied = append(denied, was)
		case was.allowed && !covered:
			open = append(open, was)
		}
	}
	ideas := make(map[string]grant.Pattern)
	gives := make(map[*past][]string) // the ideas that a request gives
	for _, was := range open {
		for _, p := range was.ideas() {
			encoded, err := json.Marshal(p)
			if err != nil {
				return nil, err
			}
			key := string(encoded)
			if _, known := ideas[key]; !known && len(ideas) >= maxIdeas {
				continue
			}
			ideas[key], gives[was] = p, append(gives[was], key)
		}
	}
	for key, p := range ideas {
		if slices.ContainsFunc(denied, func(was *past) bool { ok, _ := was.covers(&p, nil, by.Principal.Email); return ok }) {
			delete(ideas, key)
		}
	}
	out := []api.Suggestion{}
	for len(out) < maxSuggestions {
		best, bestKey := api.Suggestion{}, ""
		for key, p := range ideas {
			s := api.Suggestion{Pattern: p}
			// A request counts for what it gives by itself: reads are no reason to
			// permit writes, which would cover them too.
			for _, was := range open {
				if slices.Contains(gives[was], key) {
					s.Cards += was.count
					if len(s.Examples) < maxShown {
						s.Examples = append(s.Examples, api.Previewed{Command: was.command, Count: was.count})
					}
				}
			}
			if s.Cards > best.Cards || s.Cards == best.Cards && narrower(p, best.Pattern, key < bestKey) {
				best, bestKey = s, key
			}
		}
		if best.Cards < minCards {
			break
		}
		sum := sha256.Sum256([]byte(bestKey))
		best.Key = hex.EncodeToString(sum[:6])
		out = append(out, best)
		open = slices.DeleteFunc(open, func(was *past) bool {
			ok, _ := was.covers(&best.Pattern, nil, by.Principal.Email)
			return ok
		})
	}
	return out, nil
}

// narrower reports whether p permits less than q, as far as programs and folders
// tell; last decides what is equal.
func narrower(p, q grant.Pattern, last bool) bool {
	programs := func(p grant.Pattern) int {
		if len(p.Programs) == 0 {
			return 1 << 20
		}
		return len(p.Programs)
	}
	folder := func(p grant.Pattern) int {
		if folders := p.Folders(); len(folders) > 0 {
			return len(folders[0])
		}
		return 0
	}
	if a, b := programs(p), programs(q); a != b {
		return a < b
	}
	if a, b := folder(p), folder(q); a != b {
		return a > b
	}
	return last
}

// ideas are patterns that would cover this request: the narrow ones that its own
// program and folder give, and the classes.
func (p *past) ideas() (out []grant.Pattern) {
	if p.critical {
		return nil
	}
	add := func(pattern grant.Pattern, err error) {
		if err != nil {
			return
		}
		for i := range p.calls {
			if ok, _ := coverage.Covers(&pattern, &p.calls[i], p.where); !ok {
				return
			}
		}
		out = append(out, pattern)
	}
	if p.where.Profile != "" {
		for _, folder := range around(p.where.Workspace) {
			if p.where.Profile == "default" && p.where.Offline {
				add(grant.NewClass(grant.ClassBox, p.agent, []string{folder}, nil))
			}
			if p.where.Profile == "default" && len(p.where.Reaches) > 0 {
				add(grant.NewClass(grant.ClassInstall, p.agent, []string{folder}, p.where.Reaches))
			}
		}
		if p.where.Profile == "read" {
			add(grant.NewClass(grant.ClassInspect, p.agent, nil, nil))
		}
		return out
	}
	var programs, operations, hosts []string
	for _, c := range p.calls {
		command, ok := c.Detail.(detail.Command)
		if !ok || c.Carrier {
			continue
		}
		programs = append(programs, command.Program)
		if command.Operation != detail.GenericOperation {
			operations = append(operations, command.Operation)
		}
		hosts = append(hosts, c.Hosts...)
	}
	does := []grant.Deed{grant.DeedRead}
	for _, e := range []struct {
		effect detail.Effects
		deed   grant.Deed
	}{{detail.Writes, grant.DeedWrite}, {detail.Destroys, grant.DeedDelete}, {detail.Contacts, grant.DeedConnect}} {
		if p.read.Effects.Has(e.effect) {
			does = append(does, e.deed)
		}
	}
	// The very files, where they lie in nobody's project.
	files := grant.Pattern{Agent: p.agent, Programs: programs, Operations: operations, Does: does, Hosts: hosts}
	folders := around(p.calls[0].Cwd)
	for _, c := range p.calls {
		files.Read, files.Write = append(files.Read, c.Read...), append(files.Write, c.Write...)
		for _, name := range c.Read {
			for _, folder := range around(path.Dir(name)) {
				if !slices.Contains(folders, folder) {
					folders = append(folders, folder)
				}
			}
		}
	}
	// A star in a name would be more than that name.
	if starred := func(name string) bool { return strings.Contains(name, "*") }; !slices.ContainsFunc(files.Read, starred) && !slices.ContainsFunc(files.Write, starred) {
		add(files.Complete())
	}
	for _, folder := range folders[:min(len(folders), maxFolderIdeas)] {
		add(grant.NewClass(grant.ClassSafe, p.agent, []string{folder}, nil))
		if p.read.Effects.Has(detail.Writes) {
			add(grant.NewClass(grant.ClassEdit, p.agent, []string{folder}, nil))
		}
		narrow := grant.Pattern{Agent: p.agent, Programs: programs, Operations: operations, Does: does, Hosts: hosts, Read: []string{path.Join(folder, "**")}}
		if p.read.Effects.Has(detail.Writes | detail.Destroys) {
			narrow.Read, narrow.Write = nil, narrow.Read
		}
		if p.read.Risk > detail.Medium {
			narrow.MaxRisk = p.read.Risk
		}
		add(narrow.Complete())
	}
	return out
}

// around are a folder and those that it lies in, as far as they are somebody's
// project: never a home or what holds homes.
func around(folder string) (out []string) {
	if !strings.HasPrefix(folder, "/") || path.Clean(folder) != folder {
		return nil
	}
	least := 2 // parts of a path
	if strings.HasPrefix(folder, "/home/") || strings.HasPrefix(folder, "/Users/") {
		least = 3
	}
	for strings.Count(folder, "/") >= least && len(out) < 4 {
		out = append(out, folder)
		folder = path.Dir(folder)
	}
	return out
}
