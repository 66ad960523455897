package pages

import (
	"encoding/json"
	"errors"
	"html/template"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"vogt/internal/api"
	"vogt/internal/grant"
	"vogt/internal/sshkey"
	"vogt/internal/statement"
)

// trustView is a change of trust as its page shows it.
type trustView struct {
	api.Trust
	Open    bool
	Known   bool   // the operation has words in the catalog
	Own     bool   // it is about the account of whoever confirms
	Subject string // whom it is about, for the heading
	All     bool   // it is about all agents
	Group   bool   // Subject is a group of agents
	Params  []paramView
	Left    remaining
	Fields  []fieldView
	Code    statement.Digest
}

type paramView struct {
	Name        string
	Value       string
	Fingerprint string // of a public key
	Fault       string // why it is not a usable key
	Known       bool   // the name has a word in the catalog
	Word        string // key of a catalog phrase that stands for the value
}

func (s *server) trustPage(v *visit) (*page, error) {
	t, err := s.backend.Trusts.Trust(v.Context(), v.session, v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	view := &trustView{Trust: t, Params: paramsOf(t.Params)}
	switch t.Operation {
	case api.TrustAgentAdd, api.TrustDevice:
		view.Known, view.Subject = true, t.Params["name"]
	case api.TrustAgentRotate, api.TrustAgentResume, api.TrustSafeOn, api.TrustLabelsEnd:
		view.Known, view.Subject = true, t.Params["email"]
		view.All = view.Subject == ""
	case api.TrustKeyAdd, api.TrustPasskeyAdd:
		view.Known, view.Own = true, true
	case api.TrustStandingAdd:
		// One that this version does not know whole has no words here: it is shown
		// as it is.
		if p, err := grant.ParsePattern(t.Params["pattern"]); err == nil {
			view.Known, view.Subject, view.All = true, p.Agent, p.Agent == "*"
			if name, group := strings.CutPrefix(p.Agent, grant.GroupPrefix); group {
				view.Subject, view.Group = name, true
			}
		}
	case api.TrustPolicySet:
		if p, err := grant.ParsePolicy(t.Params["policy"]); err == nil {
			view.Known, view.Subject = true, p.Agent
		}
	case api.TrustDeputyAdd:
		view.Known, view.Own, view.Subject = true, true, t.Params["deputy"]
	case api.TrustDelegationAdd:
		view.Known, view.Own, view.Subject = true, true, t.Params["delegate"]
	case api.TrustBridgeAdd:
		view.Known, view.Own, view.Subject = true, true, t.Params["client"]
	case api.TrustStandingResume:
		view.Known, view.Subject = true, t.Params["id"]
	case api.TrustGroupSet:
		view.Known, view.Subject = true, t.Params["name"]
		if t.Params["agents"] == "" {
			view.Params = append(view.Params, paramView{Name: "agents", Known: true, Word: "agents.nobody"})
		}
	}
	ends := time.Unix(t.ExpiresAt, 0)
	view.Open = t.Status == "pending" && ends.After(v.now) && t.Statement != nil && t.Digest != nil
	if t.Status == "pending" && !view.Open {
		view.Status = "expired"
	}
	if t.Statement != nil {
		view.Fields, view.Code = fieldsOf(v, *t.Statement), t.Statement.Digest()
		if t.Digest == nil || *t.Digest != view.Code {
			view.Open = false
		}
	}
	if view.Left, err = v.remaining(ends.Add(-trustLives), ends); err != nil {
		return nil, err
	}
	p := &page{view: "trust", section: view.Home(), back: "/" + view.Home(), title: v.must("trust.title"), data: view}
	if view.Open {
		p.body = "no-nav has-bar"
	}
	return p, nil
}

// trustLives is how long a prepared change waits, for the ring on its page.
const trustLives = 10 * time.Minute

// paramsOf lists parameters in the order of their names. A key is shown with
// its fingerprint, or with the reason why it is none.
func paramsOf(params map[string]string) (out []paramView) {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		p := paramView{Name: name, Value: params[name]}
		switch name {
		case "name", "email", "days", "reason", "id", "delegate", "audience", "scopes", "grant_type", "duration", "expires_at", "deputy", "max_risk", "from", "until", "client", "service", "request":
			p.Known = true
		case "pattern":
			if pattern, err := grant.ParsePattern(p.Value); err == nil {
				out = append(out, patternParams(pattern)...)
				continue
			}
		case "policy":
			if policy, err := grant.ParsePolicy(p.Value); err == nil {
				out = append(out, policyParams(policy)...)
				continue
			}
		case "safe":
			out = append(out, safeParam(p.Value))
			continue
		case "agents":
			p.Known, p.Value = true, strings.ReplaceAll(p.Value, ",", ", ")
		case "public_key":
			p.Known = true
			p.Fingerprint, p.Fault = fingerprintOf(p.Value)
		}
		if p.Value != "" {
			out = append(out, p)
		}
	}
	return out
}

// safeParam says in which folders an agent may use the safe commands.
func safeParam(value string) paramView {
	p := paramView{Name: "safe", Value: value, Known: true}
	var folders []string
	switch err := json.Unmarshal([]byte(value), &folders); {
	case value == "off":
		p.Word = "safe.param.off"
	case value == "" || err == nil && len(folders) == 0:
		p.Word = "safe.param.nowhere"
	case err == nil:
		p.Value = strings.Join(folders, ", ")
	}
	return p
}

func fingerprintOf(line string) (fingerprint, fault string) {
	key, err := sshkey.ParsePublic(line)
	if err != nil {
		return "", err.Error()
	}
	return key.Fingerprint(), ""
}

var agentName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,23}$`)

// enrollPage is where clients of the wire protocol send a person to add an
// agent. Opening it changes nothing; its button prepares the change of trust.
func (s *server) enrollPage(v *visit) (*page, error) {
	name, key := v.URL.Query().Get("name"), strings.TrimSpace(v.URL.Query().Get("key"))
	fingerprint, fault := fingerprintOf(key)
	body, err := json.Marshal(prepareBody{api.TrustAgentAdd, map[string]string{"name": name, "public_key": key}})
	if err != nil {
		return nil, err
	}
	return &page{view: "enroll", section: "agents", back: "/agents", title: v.must("enroll.title"), data: struct {
		Name, Key, Fingerprint, Fault string
		NameOK                        bool
		Body                          string
	}{name, key, fingerprint, fault, agentName.MatchString(name), string(body)}}, nil
}

type prepareBody struct {
	Operation string            `json:"operation"`
	Params    map[string]string `json:"params"`
}

func (s *server) trustPrepare(c *call) (any, error) {
	var body prepareBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	return s.prepare(c, body)
}

// prepare prepares a change and sends the browser to its page.
func (s *server) prepare(c *call, change prepareBody) (any, error) {
	id, err := s.backend.Trusts.PrepareTrust(c.Context(), c.session, NewTrust(change))
	if err != nil {
		return nil, err
	}
	return then{Location: "/trust/" + url.PathEscape(id)}, nil
}

func (s *server) trustPasskey(c *call) (any, error) {
	var body struct {
		Digest statement.Digest `json:"digest"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	options, err := s.backend.Confirms.BeginConfirm(c.Context(), c.session, c.PathValue("id"), body.Digest)
	return Ceremony{Options: options}, err
}

func (s *server) trustConfirm(c *call) (any, error) {
	var body struct {
		Digest   statement.Digest `json:"digest"`
		Response json.RawMessage  `json:"response"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if len(body.Response) == 0 {
		return nil, ErrProof
	}
	link, err := s.backend.Confirms.Confirm(c.Context(), c.session,
		TrustAnswer{ID: c.PathValue("id"), Digest: body.Digest, Assertion: body.Response, Click: c.click})
	if err != nil || link == "" {
		return nil, err
	}
	path, ok := strings.CutPrefix(link, s.cfg.PagesOrigin+"/")
	if !ok {
		return nil, errors.New("confirmed, but the link that follows leads away from these pages")
	}
	return then{Location: "/" + path}, nil
}

func (s *server) trustDecline(c *call) (any, error) {
	return nil, s.backend.Confirms.Decline(c.Context(), c.session, c.PathValue("id"))
}

// Call is the address that answers are posted to.
func (t *trustView) Call() string { return "/p/trust/" + url.PathEscape(t.ID) }

// Page is the change's own address.
func (t *trustView) Page() string { return "/trust/" + url.PathEscape(t.ID) }

// Home is the section that the change belongs to.
func (t *trustView) Home() string {
	switch t.Operation {
	case api.TrustStandingAdd, api.TrustStandingResume, api.TrustSafeOn:
		return "patterns"
	}
	if t.Own {
		return "account"
	}
	return "agents"
}

// Heading says what would change; its words are the catalog's.
func (t *trustView) Heading(f *frameData) (template.HTML, error) {
	subject, more := firstRunes(t.Subject, 80)
	if more {
		subject += "…"
	}
	switch {
	case !t.Known:
		return f.text("trust.other")
	case t.All:
		return f.text("trust." + t.Operation + ".all")
	case t.Group:
		return f.text("trust."+t.Operation+".group", "who", marked(subject, false))
	}
	return f.text("trust."+t.Operation, "who", marked(subject, false))
}

// Meaning says what the change lets somebody do.
func (t *trustView) Meaning(f *frameData) (template.HTML, error) {
	if !t.Known {
		return f.text("trust.other.means")
	}
	return f.text("trust." + t.Operation + ".means")
}
