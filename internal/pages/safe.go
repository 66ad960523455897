package pages

import (
	"encoding/json"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"vogt/internal/api"
)

// safeMost is how many folders the authority takes for the safe commands.
const safeMost = 16

// safeView is the page of the safe commands: the state of each agent, and the form
// that switches them on.
type safeView struct {
	api.Safe
	Some    bool // an agent has them
	Asked   bool // the form is shown
	For     string
	Name    string // of the agent; "" for all
	Folders string
	Fault   template.HTML
	Ready   bool
	List    []string
	Body    string // of the call that prepares it
}

// safePage shows what of the safe commands is in force. Its form, too, changes
// nothing: what it makes is a change of trust.
func (s *server) safePage(v *visit) (*page, error) {
	in, err := s.backend.Safes.Safe(v.Context(), v.session)
	if err != nil {
		return nil, err
	}
	q := v.URL.Query()
	data := &safeView{Safe: in, Asked: q.Has("for"), For: q.Get("for"), Folders: q.Get("folders")}
	known := data.For == ""
	for _, a := range in.Agents {
		data.Some = data.Some || a.On
		if a.Email == data.For {
			known, data.Name = true, Person{Email: a.Email, Name: a.Name}.label()
			if !q.Has("folders") {
				data.Folders = strings.Join(a.Folders, "\n")
			}
		}
	}
	if !known {
		return nil, ErrNotFound
	}
	p := &page{view: "safe", section: "patterns", back: "/patterns", title: v.must("safe.title"), data: data}
	if !data.Asked || q.Get("show") == "" {
		return p, nil
	}
	data.List = (&draft{Folders: data.Folders}).folders()
	at := slices.IndexFunc(data.List, func(folder string) bool { return !plainFolder(folder) })
	switch {
	case len(data.List) > safeMost:
		data.Fault, err = v.text("draft.fault.many", "most", safeMost)
	case at >= 0:
		data.Fault, err = v.text("draft.fault.folder", "folder", shortened(data.List[at], pathShown))
	}
	if err != nil || data.Fault != "" {
		return p, err
	}
	folders, err := json.Marshal(append([]string{}, data.List...))
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(prepareBody{api.TrustSafeOn, map[string]string{"email": data.For, "safe": string(folders)}})
	data.Ready, data.Body = true, string(body)
	return p, err
}

// safeOff switches the safe commands off, for one agent or all.
func (s *server) safeOff(c *call) (any, error) {
	var body struct {
		Email string `json:"email"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	return nil, s.backend.Safes.SafeOff(c.Context(), c.session, body.Email)
}

// OffBody is the body of the call that switches them off for an agent.
func (v *safeView) OffBody(email string) (string, error) {
	body, err := json.Marshal(map[string]string{"email": email})
	return string(body), err
}

// Form is the address of the form with these folders in it.
func (v *safeView) Form() string {
	return address("/patterns/safe", url.Values{"for": {v.For}, "folders": {v.Folders}})
}
