package pages

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/grant"
)

// agentView is an agent with the addresses of what can be done to it.
type agentView struct {
	Agent
	Resume string // body of the call that prepares resuming
}

func viewOf(a Agent) (agentView, error) {
	body, err := json.Marshal(prepareBody{api.TrustAgentResume, map[string]string{"email": a.Email}})
	return agentView{Agent: a, Resume: string(body)}, err
}

// Page is the agent's own address.
func (a agentView) Page() string { return "/agents/" + url.PathEscape(a.Email) }

// Own is the body of calls that name the agent.
func (a agentView) Own() (string, error) {
	body, err := json.Marshal(map[string]string{"email": a.Email})
	return string(body), err
}

// Call is the address of an act.
func (a agentView) Call(act string) string { return "/p/agents/" + url.PathEscape(a.Email) + "/" + act }

func (s *server) agentsPage(v *visit) (*page, error) {
	agents, err := s.backend.People.Agents(v.Context(), v.session)
	if err != nil {
		return nil, err
	}
	data := struct {
		Active, Removed []agentView
		AnyPaused       bool
		AnyRunning      bool
		ResumeAll       string
	}{}
	all, err := json.Marshal(prepareBody{api.TrustAgentResume, map[string]string{"email": ""}})
	if err != nil {
		return nil, err
	}
	data.ResumeAll = string(all)
	for _, a := range agents {
		view, err := viewOf(a)
		if err != nil {
			return nil, err
		}
		if !a.Active {
			data.Removed = append(data.Removed, view)
			continue
		}
		data.Active = append(data.Active, view)
		data.AnyPaused = data.AnyPaused || a.Paused
		data.AnyRunning = data.AnyRunning || !a.Paused
	}
	return &page{view: "agents", section: "agents", title: v.must("agents.title"), data: data}, nil
}

func (s *server) agentPage(v *visit) (*page, error) {
	agents, err := s.backend.People.Agents(v.Context(), v.session)
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		if a.Email != v.PathValue("email") {
			continue
		}
		data := struct {
			agentView
			Permissions []permission
			More        bool // not all are listed
			agentScope
		}{}
		if data.agentView, err = viewOf(a); err != nil {
			return nil, err
		}
		if data.agentScope, err = s.scopeOf(v, a); err != nil {
			return nil, err
		}
		grants, err := s.backend.Cards.Permissions(v.Context(), v.session, a.Email, permissionsShown+1)
		if err != nil {
			return nil, err
		}
		if data.More = len(grants) > permissionsShown; data.More {
			grants = grants[:permissionsShown]
		}
		for _, g := range grants {
			p, err := permissionOf(v, g)
			if err != nil {
				return nil, err
			}
			data.Permissions = append(data.Permissions, p)
		}
		return &page{view: "agent", section: "agents", back: "/agents", title: v.must("agent.title"), data: data}, nil
	}
	return nil, ErrNotFound
}

// labelView is something that an agent has seen or written.
type labelView struct {
	Key   string // of the catalog: secret, foreign, wrote, wrote.all or other
	Path  string
	Since time.Time
	Grant string // address of the card under which; "" for none
}

// agentScope is what widens and narrows what an agent's patterns cover.
type agentScope struct {
	Safe       *api.SafeAgent // nil where nothing is known
	SafeOn     bool           // and they are on for all
	Groups     []string
	Marks      []labelView
	MoreMarks  int
	EndLabels  string // body of the call that prepares ending them
	Patterns   string // address of the list
	NewPattern string // of the form
}

// labelsShown is how many labels an agent's page lists.
const labelsShown = 12

func (s *server) scopeOf(v *visit, a Agent) (out agentScope, err error) {
	mine := url.Values{"agent": {a.Email}}
	out.Patterns, out.NewPattern = address("/patterns", mine), address("/patterns/new", mine)
	if !a.Active {
		return out, nil
	}
	if out.Groups, err = s.groupsOf(v, a.Email); err != nil {
		return out, err
	}
	safe, err := s.backend.Safes.Safe(v.Context(), v.session)
	if err != nil {
		return out, err
	}
	out.SafeOn = safe.On
	for _, row := range safe.Agents {
		if row.Email == a.Email {
			out.Safe = &row
		}
	}
	for i, l := range a.Labels {
		if i == labelsShown {
			out.MoreMarks = len(a.Labels) - i
			break
		}
		view := labelView{Key: l.Label, Since: time.Unix(l.Since, 0)}
		switch path, wrote := strings.CutPrefix(l.Label, "wrote:"); {
		case wrote && path == "*":
			view.Key = "wrote.all"
		case wrote:
			view.Key, view.Path = "wrote", path
		case l.Label != "secret" && l.Label != "foreign":
			view.Key, view.Path = "other", l.Label
		}
		if l.GrantID != "" {
			view.Grant = "/grants/" + url.PathEscape(l.GrantID)
		}
		out.Marks = append(out.Marks, view)
	}
	body, err := json.Marshal(prepareBody{api.TrustLabelsEnd, map[string]string{"email": a.Email}})
	out.EndLabels = string(body)
	return out, err
}

// permissionsShown is how many permissions an agent's page lists.
const permissionsShown = 100

// permission is what an agent may do without asking.
type permission struct {
	Line  string
	As    string        // other user, if it crosses
	Until template.HTML // "" for one without an end
	Uses  int64
	Page  string // of the card
	Call  string // address that revokes it
}

func permissionOf(v *visit, g grant.Grant) (p permission, err error) {
	id := url.PathEscape(g.ID)
	p = permission{Line: lineOf(g.Request), Uses: g.Uses, Page: "/grants/" + id, Call: "/p/grants/" + id + "/revoke"}
	p.As, _ = firstRunes(g.Request.RunAs, 40)
	if g.Type != grant.Always {
		p.Until, err = v.moment(g.ValidUntil.Time())
	}
	return p, err
}

func (s *server) agentChange(c *call) (any, error) {
	act := AgentAct(c.PathValue("act"))
	if act != PauseAgent && act != RemoveAgent {
		return nil, ErrNotFound
	}
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	if err := s.backend.People.ChangeAgent(c.Context(), c.session, c.PathValue("email"), act); err != nil {
		return nil, err
	}
	if act == RemoveAgent {
		return then{Location: "/agents"}, nil
	}
	return nil, nil
}

// panicNow stops everything. It answers with what it stopped, for the page
// that comes next to say.
func (s *server) panicNow(c *call) (any, error) {
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	r, err := s.backend.People.Panic(c.Context(), c.session)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, p := range []struct {
		key string
		n   int64
	}{{"panic.agents", r.Agents}, {"panic.tokens", r.Tokens}, {"panic.grants", r.Grants}} {
		text, err := c.count(p.key, p.n)
		if err != nil {
			return nil, fmt.Errorf("panic done, but not told: %w", err)
		}
		parts = append(parts, plain(text))
	}
	return then{Say: strings.Join(parts, " ")}, nil
}
