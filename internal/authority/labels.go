package authority

import (
	"slices"
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
// in its workspace, where it executes in boxes only. A box is what has a name.
func earned(read flow.Reading, g grant.Grant) (out []string) {
	if flow.WhereOf(g.Request).Profile != "" {
		return nil
	}
	// What runs may read anything. The content of what a pattern covers is known.
	shows := detail.Secrets | detail.Opaque
	if g.Decision == nil || g.Decision.Standing == "" {
		shows |= detail.Executes | detail.Door
	}
	if read.Effects.Has(shows) || slices.ContainsFunc(read.Covered(), func(c coverage.Call) bool { return c.Effects.Has(detail.Secrets) }) {
		out = append(out, labelSecret)
	}
	// Hosts that a pattern names are known to the person who signed it.
	if read.Effects.Has(detail.Contacts) && (g.Decision == nil || g.Decision.Standing == "") {
		out = append(out, labelForeign)
	}
	for _, c := range read.Calls {
		for _, path := range c.Paths.Writes {
			out = append(out, labelWrote+path)
			if target := g.Request.Context; target != nil && target.Links[path] != "" {
				out = append(out, labelWrote+target.Links[path])
			}
		}
	}
	return out
}

// foreseen is what a use of a grant means for the labels of its agent: those that
// it gives, and whether one that the agent has by then keeps it from being used.
type foreseen struct {
	labels  []string
	network bool
}

// foresee finds that out beside the writer: what was asked never changes.
func (a *Authority) foresee(g grant.Grant) (f foreseen) {
	if g.Status != grant.Approved {
		return f // it cannot be used
	}
	read, err := flow.Read(a.reader, g.Request)
	if err != nil {
		return f
	}
	f.labels = earned(read, g)
	if d := g.Decision; d != nil && (d.Standing != "" || d.Policy != "") {
		where := flow.WhereOf(g.Request)
		f.network = where.Profile != "" && !where.Offline || where.Profile == "" && (read.Effects.Has(detail.Contacts) || len(read.Hosts) > 0)
	}
	return f
}

// labelsStill checks that an agent that may use the network in a person's name has
// seen nothing since that would have made this a question.
func labelsStill(tx store.Tx, g grant.Grant, f foreseen) error {
	if !f.network {
		return nil
	}
	have, err := labelsOf(tx, g.Request.Requester)
	if err != nil || !have.Secret && !have.Foreign {
		return err
	}
	return problem(403, "The agent has a label by now", "Since this was permitted it has seen what keeps patterns from covering what leaves the machine.", "Ask again.").kind("grant_revoked")
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
