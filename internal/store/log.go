package store

import (
	"fmt"
	"strings"
)

// LogRecord is a record of the audit log as stored. Salt and Body are nil once
// the record has been erased.
type LogRecord struct {
	Index int64
	Type  string
	Time  int64
	Salt  []byte
	Body  []byte
	Leaf  []byte
	Party string // the principal whom it concerns; "" for nobody
	// Grant is the grant that the record tells of, or "". Like Party it only
	// makes the record findable; the leaf is over the body, which names it too.
	Grant string
}

const logColumns = `idx, type, time, salt, body, leaf, party, grant_id`

func scanLog(r Row, l *LogRecord) error {
	return notFound(r.Scan(&l.Index, &l.Type, &l.Time, &l.Salt, &l.Body, &l.Leaf, &l.Party, &l.Grant))
}

// LogSize is the number of records.
func LogSize(tx Tx) (n int64, err error) {
	err = tx.QueryRow(`SELECT COALESCE(MAX(idx) + 1, 0) FROM log_records`).Scan(&n)
	return n, err
}

// LogNodes is the number of nodes of the log's tree.
func LogNodes(tx Tx) (n int64, err error) {
	err = tx.QueryRow(`SELECT COALESCE(MAX(idx) + 1, 0) FROM log_hashes`).Scan(&n)
	return n, err
}

// InsertLog adds a record.
func InsertLog(tx Tx, l LogRecord) error {
	_, err := tx.Exec(`INSERT INTO log_records (idx, type, time, salt, body, leaf, grant_id, party) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)`,
		l.Index, l.Type, l.Time, l.Salt, l.Body, l.Leaf, l.Grant, l.Party)
	return err
}

// InsertLogHashes stores nodes of the tree, the first under the given index.
func InsertLogHashes(tx Tx, first int64, hashes [][]byte) error {
	if len(hashes) == 0 {
		return nil
	}
	var args []any
	var values []string
	for i, hash := range hashes {
		args = append(args, first+int64(i), hash)
		values = append(values, fmt.Sprintf("(?%d,?%d)", 2*i+1, 2*i+2))
	}
	_, err := tx.Exec(`INSERT INTO log_hashes (idx, hash) VALUES `+strings.Join(values, ","), args...)
	return err
}

// EndIntent notes once that the execution has ended whose intent is record number
// index and tells of that grant; a second report is ErrConflict.
func EndIntent(tx Tx, index int64, grantID string) error {
	return mustAffect(tx.Exec(`UPDATE log_records SET ended = 1 WHERE idx = ?1 AND grant_id = ?2 AND type = 'intent' AND ended = 0`, index, grantID))
}

// LogBody reads the body of one record, nil once it was erased.
func LogBody(tx Tx, index int64) (body []byte, err error) {
	return body, notFound(tx.QueryRow(`SELECT body FROM log_records WHERE idx = ?1`, index).Scan(&body))
}

// LogHash reads one node of the tree.
func LogHash(tx Tx, index int64) (hash []byte, err error) {
	return hash, notFound(tx.QueryRow(`SELECT hash FROM log_hashes WHERE idx = ?1`, index).Scan(&hash))
}

// LogFilter selects records. Zero values select everything.
type LogFilter struct {
	After   int64 // exclusive, ascending; -1 from the start
	Before  int64 // exclusive, descending; used when above 0
	GrantID string
	Type    string
	Party   string // whom they concern; "" for anybody
	Since   int64  // Unix ms; leaves out what is older
	Limit   int
}

// LogRecords reads a page of records. Only conditions that are asked for stand in
// the query, so that the grant's or the party's index finds the records.
func LogRecords(tx Tx, f LogFilter) ([]LogRecord, error) {
	q, order, args := `idx > ?1`, ` ORDER BY idx LIMIT ?2`, []any{f.After, f.Limit}
	if f.Before > 0 {
		q, order, args[0] = `idx < ?1`, ` ORDER BY idx DESC LIMIT ?2`, f.Before
	}
	for _, c := range []struct {
		set    bool
		column string
		value  any
	}{
		// The index of grants leaves out records of none.
		{f.GrantID != "", `grant_id <> '' AND grant_id =`, f.GrantID}, {f.Type != "", `type =`, f.Type},
		{f.Party != "", `party =`, f.Party}, {f.Since > 0, `time >=`, f.Since},
	} {
		if c.set {
			args = append(args, c.value)
			q += fmt.Sprintf(` AND %s ?%d`, c.column, len(args))
		}
	}
	return collect(tx, scanLog, `SELECT `+logColumns+` FROM log_records WHERE `+q+order, args...)
}
