package pages

import (
	"encoding/json"
	"errors"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"time"

	"vogt/internal/api"
	"vogt/internal/grant"
)

const (
	// HistoryDays is how far back the pages look for what patterns would have covered.
	HistoryDays = 30
	// unusedAfter is when a pattern that nobody needed is marked.
	unusedAfter = 30 * 24 * time.Hour
	// patternsShown is how many patterns one page lists.
	patternsShown = 50
)

// standingView is a pattern of the list.
type standingView struct {
	api.Standing
	Title  template.HTML
	For    whom
	Words  []template.HTML
	Ends   time.Time
	Last   time.Time // zero: never used
	Over   bool
	Unused bool   // not used for a while, and old enough for that to tell something
	Resume string // body of the call that prepares resuming
	Again  string // address where one like it is put together; "" where no form makes one
}

// Call is the address that revokes it.
func (s standingView) Call() string { return "/p/patterns/" + url.PathEscape(s.ID) + "/revoke" }

// agentsOf are the person's agents that were not removed, and their names by address.
func (s *server) agentsOf(v *visit) (agents []Agent, names map[string]string, err error) {
	all, err := s.backend.People.Agents(v.Context(), v.session)
	names = make(map[string]string, len(all))
	for _, a := range all {
		if a.Active {
			agents = append(agents, a)
		}
		names[a.Email] = a.label()
	}
	return agents, names, err
}

func (s *server) patternsPage(v *visit) (*page, error) {
	all, err := s.backend.Patterns.Standing(v.Context(), v.session)
	if err != nil {
		return nil, err
	}
	_, names, err := s.agentsOf(v)
	if err != nil {
		return nil, err
	}
	query := v.URL.Query()
	data := struct {
		Rows       []standingView
		Over       bool // those that are over are shown
		InForce    int
		Ended      int
		Unused     int
		Agent      string // whose patterns alone are shown
		Name       string
		New        string // address of the form
		Here       string // this list, without its place
		Earlier    string // addresses of the list's other parts
		Later      string
		From, Till int
	}{Over: query.Get("over") == "1", Agent: query.Get("agent")}
	data.Name = names[data.Agent]
	if data.Name == "" {
		data.Name = data.Agent
	}
	groups, err := s.groupsOf(v, data.Agent)
	if err != nil {
		return nil, err
	}
	var rows []api.Standing
	for _, g := range all {
		if data.Agent != "" && !about(g.Pattern, data.Agent, groups) {
			continue
		}
		if over := g.Status != grant.Approved; over != data.Over {
			if over {
				data.Ended++
			} else {
				data.InForce++
			}
			continue
		}
		rows = append(rows, g)
	}
	if data.Over {
		data.Ended = len(rows)
	} else {
		data.InForce = len(rows)
	}
	here := url.Values{}
	if data.Agent != "" {
		here.Set("agent", data.Agent)
	}
	data.New = address("/patterns/new", here)
	if data.Over {
		here.Set("over", "1")
	}
	data.Here = address("/patterns", here)
	from, _ := strconv.Atoi(query.Get("from")) // anything else is the beginning
	from = min(max(from, 0), max(len(rows)-1, 0))
	to := min(from+patternsShown, len(rows))
	data.From, data.Till = from+1, to
	part := func(at int) string {
		here.Set("from", strconv.Itoa(at))
		return address("/patterns", here)
	}
	if from > 0 {
		data.Later = part(max(from-patternsShown, 0))
	}
	if to < len(rows) {
		data.Earlier = part(to)
	}
	for _, g := range rows {
		if !data.Over && s.unused(g) {
			data.Unused++
		}
	}
	for _, g := range rows[from:to] {
		view, err := s.standingView(v, g, names)
		if err != nil {
			return nil, err
		}
		data.Rows = append(data.Rows, view)
	}
	return &page{view: "patterns", section: "patterns", title: v.must("patterns.title"), data: data}, nil
}

func address(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// groupsOf are the groups that an agent is in.
func (s *server) groupsOf(v *visit, agent string) (names []string, err error) {
	if agent == "" {
		return nil, nil
	}
	groups, err := s.backend.Groups.Groups(v.Context(), v.session)
	for _, g := range groups {
		if slices.Contains(g.Agents, agent) {
			names = append(names, g.Name)
		}
	}
	return names, err
}

// about reports whether a pattern is for an agent, by name or as one of several.
func about(p grant.Pattern, agent string, groups []string) bool {
	to := whomOf(p.Agent, nil)
	return p.Agent == agent || to.Kind == "all" || to.Kind == "group" && slices.Contains(groups, to.Name)
}

// unused reports whether nobody needed a pattern for a while.
func (s *server) unused(g api.Standing) bool {
	return s.cfg.Clock().Sub(time.Unix(max(g.CreatedAt, g.LastUsedAt), 0)) >= unusedAfter
}

func (s *server) standingView(v *visit, g api.Standing, names map[string]string) (out standingView, err error) {
	out = standingView{Standing: g, For: whomOf(g.Pattern.Agent, names), Ends: time.Unix(g.ExpiresAt, 0), Over: g.Status != grant.Approved}
	out.Unused = !out.Over && s.unused(g)
	if g.LastUsedAt != 0 {
		out.Last = time.Unix(g.LastUsedAt, 0)
	}
	if out.Title, err = titleOf(v, g.Pattern); err != nil {
		return out, err
	}
	if out.Words, err = wordsOf(v, g.Pattern); err != nil {
		return out, err
	}
	body, err := json.Marshal(prepareBody{api.TrustStandingResume, map[string]string{"id": g.ID}})
	out.Resume = string(body)
	if d, ok := draftOf(g.Pattern); ok {
		d.Reason = g.Reason
		out.Again = d.address(false)
	}
	return out, err
}

// patternRevoke takes a pattern back. One that was taken back elsewhere meanwhile is
// what the person wanted.
func (s *server) patternRevoke(c *call) (any, error) {
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	err := s.backend.Patterns.RevokeStanding(c.Context(), c.session, c.PathValue("id"))
	if errors.Is(err, ErrClosed) {
		return then{Say: plain(c.must("patterns.revoked.already"))}, nil
	}
	if err != nil {
		return nil, err
	}
	return then{Say: plain(c.must("patterns.revoked"))}, nil
}

// groupLeave takes an agent out of a group.
func (s *server) groupLeave(c *call) (any, error) {
	var body struct {
		Email string `json:"email"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	return nil, s.backend.Groups.LeaveGroup(c.Context(), c.session, c.PathValue("name"), body.Email)
}

// suggestionView is a pattern that would have spared cards.
type suggestionView struct {
	api.Suggestion
	Title template.HTML
	For   whom
	Words []template.HTML
	Write string // address of the form, filled in
}

func (s *server) suggestionsPage(v *visit) (*page, error) {
	all, err := s.backend.Previews.Suggestions(v.Context(), v.session)
	if err != nil {
		return nil, err
	}
	_, names, err := s.agentsOf(v)
	if err != nil {
		return nil, err
	}
	rows := []suggestionView{}
	for _, g := range all {
		d, ok := draftOf(g.Pattern)
		if !ok {
			continue
		}
		row := suggestionView{Suggestion: g, For: whomOf(g.Pattern.Agent, names), Write: d.address(false)}
		if row.Title, err = titleOf(v, g.Pattern); err != nil {
			return nil, err
		}
		if row.Words, err = wordsOf(v, g.Pattern); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return &page{view: "suggestions", section: "patterns", back: "/patterns", title: v.must("suggestions.title"), data: struct{ Rows []suggestionView }{rows}}, nil
}
