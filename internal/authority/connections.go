package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"vogt/internal/api"
	"vogt/internal/store"
)

// boxWord is what a record of a box has in the place of a grant, so that the last
// one of each box is found quickly.
const boxWord = "box:"

// maxText bounds each text of a connection, in characters.
const maxText = 300

// Connections records what the proxy of a box has seen. From the owner, who started
// the box and whose login it does not have, it is observed; from the agent itself it
// is claimed, since what runs in the box could have said it.
func (a *Authority) Connections(ctx context.Context, by Actor, in api.Connections) error {
	if !by.Known() {
		return errUnauthenticated()
	}
	if err := checkConnections(&in); err != nil {
		return err
	}
	// The log grows by it, so that it has a rate of its own.
	if !a.rates.try("connections:"+by.Name(), a.clock()) {
		return tooFast("Connections are reported too fast.")
	}
	return a.update(ctx, func(t *txn) error {
		agent, err := store.PrincipalByEmail(t, in.Agent)
		if ignoreNotFound(err) != nil {
			return err
		}
		source := "claimed"
		switch {
		case err != nil || agent.Owner == "":
			return errNoAgent()
		case by.Person() && agent.Owner == by.Principal.Email:
			source = "observed"
		case by.Agent() && agent.Email == by.Principal.Email:
		default:
			return errNoAgent()
		}
		// A box is one agent's: nobody else continues its count.
		word := boxWord + agent.Email + ":" + in.Box
		last, err := lastReport(t, word)
		if err != nil || in.Serial <= last {
			return err
		}
		_, err = t.record(recordBox, word, agent.Email, boxRecord{
			By: by.Principal.Email, Agent: agent.Email, Box: in.Box, Serial: in.Serial, Source: source, Lost: in.Lost, Records: in.Records,
		})
		return err
	})
}

func errNoAgent() *Error {
	return problem(404, "There is no such agent of yours", "", "See your agents: vogt agent list.")
}

// lastReport is the serial of the last report of a box, or 0.
func lastReport(t *txn, word string) (int64, error) {
	rows, err := store.LogRecords(t, store.LogFilter{Before: 1 << 62, GrantID: word, Type: recordBox, Limit: 1})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	if rows[0].Body == nil { // erased: what it was is not known, and nothing is repeated
		return 0, nil
	}
	var r boxRecord
	if err := json.Unmarshal(rows[0].Body, &r); err != nil {
		return 0, fmt.Errorf("record %d: %v: %w", rows[0].Index, err, store.ErrCorrupt)
	}
	return r.Serial, nil
}

// checkConnections holds a report to its shape.
func checkConnections(in *api.Connections) error {
	in.Agent = lower(in.Agent)
	const digits = 16
	switch {
	case len(in.Box) != digits || strings.Trim(in.Box, "0123456789abcdef") != "":
		return problem(400, "The report names no box", fmt.Sprintf("box: want %d hex digits.", digits), "")
	case in.Serial < 1 || in.Lost < 0:
		return problem(400, "The report has no number", "serial counts the reports of a box from 1.", "")
	case len(in.Records) == 0 && in.Lost == 0 || len(in.Records) > api.MaxConnections:
		return problem(400, "The report is empty or too large", fmt.Sprintf("It has %d connections, want 1 to %d.", len(in.Records), api.MaxConnections), "")
	}
	for i := range in.Records {
		c := &in.Records[i]
		for _, text := range []*string{&c.Protocol, &c.Host, &c.Address, &c.SNI, &c.Verdict, &c.Reason, &c.Basis} {
			*text = shorten(*text, maxText)
		}
		switch c.Verdict {
		case "allowed", "refused", "cut":
		default:
			return problem(400, "A connection has no verdict", fmt.Sprintf("verdict %q: want allowed, refused or cut.", c.Verdict), "")
		}
	}
	return nil
}
