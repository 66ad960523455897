package authority

import (
	"context"
	"encoding/json"
	"fmt"

	"vogt/internal/audit"
	"vogt/internal/store"
)

// scrubBatch is how many records one round of housekeeping compares.
const scrubBatch = 5000

// scrub reads the log in batches, again and again from its begin, and compares
// what makes a record findable with what the record says: the tree is over the
// latter only, and whoever can write to the database could hide a record from
// those whom it concerns. What it finds is logged and told by Damage.
func (a *Authority) scrub(ctx context.Context) error {
	const page = 100
	for done := 0; done < scrubBatch; {
		next := a.scrubbed.Load()
		var rows []store.LogRecord
		var size int64
		err := a.db.View(ctx, func(tx store.Tx) (err error) {
			if size, err = store.LogSize(tx); err == nil {
				rows, err = store.LogRecords(tx, store.LogFilter{After: next - 1, Limit: page})
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if what := misfiled(r, next); what != "" && a.damage.CompareAndSwap(nil, &what) {
				a.log.Error("the log is damaged; stop vogtd, keep a copy of the data folder, and restore the last backup", "what", what)
			}
			next = r.Index + 1
		}
		if next >= size || len(rows) == 0 {
			a.scrubbed.Store(0)
			return nil
		}
		a.scrubbed.Store(next)
		done += len(rows)
	}
	return nil
}

// Damage says what is wrong with the stored log, as far as housekeeping has
// read it; "" for nothing.
func (a *Authority) Damage() string {
	if what := a.damage.Load(); what != nil {
		return *what
	}
	return ""
}

// misfiled tells what is wrong with a stored record that should be number want.
func misfiled(r store.LogRecord, want int64) string {
	switch {
	case r.Index != want:
		return fmt.Sprintf("record %d is missing", want)
	case r.Body == nil:
		return "" // erased: nothing is left to compare with
	case string(r.Leaf) != leafOf(r):
		return fmt.Sprintf("record %d is not what was recorded", r.Index)
	}
	var says struct{ Grant, By, Email, Subject string }
	if err := json.Unmarshal(r.Body, &says); err != nil {
		return fmt.Sprintf("record %d cannot be read: %v", r.Index, err)
	}
	if r.Grant != says.Grant {
		return fmt.Sprintf("record %d tells of grant %q and is filed under %q", r.Index, says.Grant, r.Grant)
	}
	var party string
	switch r.Type {
	case recordRequest, recordJoin, recordIntent, recordOutcome, recordDelegation:
		party = says.By
	case recordLogin, recordLogout:
		party = says.Email
	case recordTrust, recordOAuth, recordOAuthEnd:
		party = says.Subject
	default:
		return "" // the body does not name whom it concerns
	}
	if r.Party != party {
		return fmt.Sprintf("record %d concerns %q and is filed under %q", r.Index, party, r.Party)
	}
	return ""
}

func leafOf(r store.LogRecord) string {
	leaf := audit.LeafOf(r.Type, r.Time, r.Salt, r.Body)
	return string(leaf[:])
}
