package authority

import (
	"strings"

	"vogt/internal/coverage"
	"vogt/internal/detail"
	"vogt/internal/flow"
	"vogt/internal/grant"
	"vogt/internal/store"
)

// The labels of an agent: what it has seen and done, by grants of this authority.
// They are the agent's and not one session's: who could begin a new session by
// itself could drop them. A person ends them.
const (
	labelSecret  = "secret"
	labelForeign = "foreign"
	labelWrote   = "wrote:" // and a path
	// maxWrote bounds the paths that are remembered; of more, everything counts as
	// written.
	maxWrote = 256
	wroteAll = labelWrote + coverage.WroteAll
)

// labelsOf are an agent's labels as coverage looks at them.
func labelsOf(tx store.Tx, agent string) (out coverage.Labels, err error) {
	rows, err := store.Labels(tx, agent)
	for _, l := range rows {
		switch path, wrote := strings.CutPrefix(l.Label, labelWrote); {
		case wrote:
			out.Wrote = append(out.Wrote, path)
		case l.Label == labelSecret:
			out.Secret = true
		case l.Label == labelForeign:
			out.Foreign = true
		}
	}
	return out, err
}

// earned are the labels that a use of this grant gives its agent. What runs in a
// box sees no credentials, and what it reads and writes ends with the box or stays
// in its workspace, where it executes in boxes only.
func earned(read flow.Reading, g grant.Grant) (out []string) {
	if g.Request.Context != nil && g.Request.Context.Confinement != nil {
		return nil
	}
	if read.Effects.Has(detail.Secrets | detail.Opaque) {
		out = append(out, labelSecret)
	}
	// Hosts that a pattern names are known to the person who signed it.
	if read.Effects.Has(detail.Contacts) && (g.Decision == nil || g.Decision.Standing == "") {
		out = append(out, labelForeign)
	}
	for _, c := range read.Calls {
		for _, path := range c.Paths.Writes {
			out = append(out, labelWrote+path)
		}
	}
	return out
}

// earned are the labels that a use of a grant gives an agent, found beside the
// writer: what was asked never changes.
func (a *Authority) earned(g grant.Grant) []string {
	if g.Status != grant.Approved {
		return nil // it cannot be used
	}
	read, err := flow.Read(a.reader, g.Request)
	if err != nil {
		return nil
	}
	return earned(read, g)
}

// label gives the requester of a used grant its labels.
func (t *txn) label(g grant.Grant, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	have, err := store.Labels(t, g.Request.Requester)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(have))
	for _, l := range have {
		known[l.Label] = true
	}
	for _, l := range labels {
		if strings.HasPrefix(l, labelWrote) {
			if known[wroteAll] {
				continue
			}
			if len(known) >= maxWrote || len(l) > maxIdentityLen+len(labelWrote)+1024 {
				l = wroteAll
			}
		}
		if known[l] {
			continue
		}
		known[l] = true
		if err := store.AddLabel(t, g.Request.Requester, l, g.ID, int64(t.now)); err != nil {
			return err
		}
	}
	return nil
}
