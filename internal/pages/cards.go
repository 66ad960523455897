package pages

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"unicode/utf8"

	"vogt/internal/grant"
	"vogt/internal/statement"
)

// inboxRows is how many cards one page lists; the rest are counted.
const inboxRows = 50

// row is a line of the inbox.
type row struct {
	ID      string
	Risk    string
	Ask     ask
	Line    string // the command in one line
	As      string // other user, if it crosses
	Left    remaining
	Current bool
}

// group is the rows of one agent.
type group struct {
	Agent Person
	Rows  []row
}

func (s *server) inboxPage(v *visit) (*page, error) {
	inbox, err := s.backend.Cards.Inbox(v.Context(), v.session, inboxRows)
	if err != nil {
		return nil, err
	}
	current := v.URL.Query().Get("card")
	if current == "" && len(inbox.Rows) > 0 {
		current = inbox.Rows[0].Grant.ID
	}
	data := struct {
		Total, More int
		Groups      []*group
		Card        *cardView
	}{Total: inbox.Total, More: inbox.Total - len(inbox.Rows)}
	byAgent := map[string]*group{}
	for _, w := range inbox.Rows {
		left, err := v.remaining(w.Grant.Created.Time(), w.Grant.ValidUntil.Time())
		if err != nil {
			return nil, err
		}
		g := byAgent[w.Agent.Email]
		if g == nil {
			g = &group{Agent: w.Agent}
			byAgent[w.Agent.Email] = g
			data.Groups = append(data.Groups, g)
		}
		user, _ := firstRunes(w.Grant.Request.RunAs, 40)
		g.Rows = append(g.Rows, row{
			ID: w.Grant.ID, Risk: riskName(w.Grant.Risk), Ask: askOf(w.Grant.Request.Command, w.Grant.Request), Line: lineOf(w.Grant.Request),
			As: user, Left: left, Current: w.Grant.ID == current,
		})
	}
	if current != "" {
		data.Card, err = s.cardView(v, current, inbox)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	title, err := v.count("inbox.title", inbox.Total)
	return &page{view: "inbox", title: title, section: "inbox", data: data}, err
}

func (s *server) cardPage(v *visit) (*page, error) {
	inbox, err := s.backend.Cards.Inbox(v.Context(), v.session, inboxRows)
	if err != nil {
		return nil, err
	}
	card, err := s.cardView(v, v.PathValue("id"), inbox)
	if err != nil {
		return nil, err
	}
	p := &page{view: "closed", section: "inbox", back: "/", title: v.must("card.closed"), data: card}
	if card.Open {
		p.view, p.body, p.title = "card", "no-nav has-bar", card.Title
	}
	return p, nil
}

// grantApproval is the address that clients of the wire protocol print.
func (s *server) grantApproval(v *visit) (*page, error) {
	id := v.URL.Query().Get("grant_id")
	if id == "" {
		return nil, ErrNotFound
	}
	return nil, goTo("/grants/" + url.PathEscape(id))
}

// choiceBody names a reach in the script's calls.
type choiceBody struct {
	GrantType grant.Type       `json:"grant_type"`
	ExpiresAt int64            `json:"expires_at,omitempty"`
	Digest    statement.Digest `json:"digest"`
}

func (b choiceBody) choice(id string) (Choice, error) {
	if !b.GrantType.Valid() || (b.GrantType == grant.Timed) != (b.ExpiresAt > 0) {
		return Choice{}, ErrInvalid
	}
	return Choice{Grant: id, Type: b.GrantType, Expires: b.ExpiresAt, Digest: b.Digest}, nil
}

func (s *server) cardPasskey(c *call) (any, error) {
	var body choiceBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	choice, err := body.choice(c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	options, err := s.backend.Decisions.BeginDecision(c.Context(), c.session, choice)
	return Ceremony{Options: options}, err
}

// maxNote is the length of a note in bytes.
const maxNote = 2000

func (s *server) cardDecision(c *call) (any, error) {
	var body struct {
		choiceBody
		Answer    string          `json:"answer"`
		Note      string          `json:"note,omitempty"`
		Assertion json.RawMessage `json:"assertion,omitempty"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	choice, err := body.choice(c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if body.Answer != "allow" && body.Answer != "deny" || len(body.Note) > maxNote || !utf8.ValidString(body.Note) {
		return nil, ErrInvalid
	}
	return nil, s.backend.Decisions.Decide(c.Context(), c.session, Decision{
		Choice: choice, Allow: body.Answer == "allow", Note: body.Note, Click: c.click, Assertion: body.Assertion,
	})
}

func (s *server) cardRevoke(c *call) (any, error) {
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	return nil, s.backend.Decisions.Revoke(c.Context(), c.session, c.PathValue("id"))
}

func (s *server) events(w http.ResponseWriter, r *http.Request) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		http.Error(w, "events are for these pages only", http.StatusForbidden)
		return
	}
	v, err := s.visit(w, r)
	if err == nil && !v.signedIn() {
		err = ErrNoSession
	}
	if err != nil {
		s.problem(v, err)
		return
	}
	s.stream(v)
}
