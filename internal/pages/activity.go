package pages

import (
	"net/url"
	"strconv"

	"vogt/internal/audit/mask"
)

// entriesShown is one page of the activity.
const entriesShown = 50

type entryView struct {
	Entry
	Risk   string // "" where the record has none
	Line   string
	Known  bool   // the type has a word in the catalog
	Signed bool   // it lies under a signed checkpoint
	ByWord string // the catalog's word for who is no principal, or ""
	Card   string
}

func (s *server) activityPage(v *visit) (*page, error) {
	q := LogQuery{Grant: v.URL.Query().Get("grant"), Limit: entriesShown + 1}
	if before := v.URL.Query().Get("before"); before != "" {
		n, err := strconv.ParseInt(before, 10, 64)
		if err != nil || n < 1 {
			return nil, ErrInvalid
		}
		q.Before = n
	}
	log, err := s.backend.Log.LogState(v.Context())
	if err != nil {
		return nil, err
	}
	entries, err := s.backend.Log.Entries(v.Context(), v.session, q)
	if err != nil {
		return nil, err
	}
	data := struct {
		Entries []entryView
		Older   string
		Grant   string
		State   LogState
	}{Grant: q.Grant, State: log}
	if len(entries) > entriesShown {
		entries = entries[:entriesShown]
		more := url.Values{"before": {strconv.FormatInt(entries[len(entries)-1].Index, 10)}}
		if q.Grant != "" {
			more.Set("grant", q.Grant)
		}
		data.Older = "/activity?" + more.Encode()
	}
	for _, e := range entries {
		view := entryView{Entry: e, Signed: e.Index < log.Signed && !log.Broken}
		_, view.Known = v.messages["record."+e.Type]
		view.Line, _ = cut(e.Action, lineMasked)
		view.Line, _ = firstRunes(mask.Text(view.Line), lineShown)
		if e.Risk != 0 {
			view.Risk = riskName(e.Risk)
		}
		switch e.By.Email {
		case Management:
			view.ByWord = "management"
		case Anonymous:
			view.ByWord = "anonymous"
		}
		if e.Grant != "" {
			view.Card = "/grants/" + url.PathEscape(e.Grant)
		}
		data.Entries = append(data.Entries, view)
	}
	return &page{view: "activity", section: "activity", title: v.must("activity.title"), data: data}, nil
}
