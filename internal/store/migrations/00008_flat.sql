-- +goose Up
-- What keeps a request and a list at one cost, however much is stored.

-- A number that is another one after each change to an author's patterns, and
-- that no earlier state ever had.
CREATE TABLE standing_versions (
  author  TEXT PRIMARY KEY,
  version INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO standing_versions (author, version) SELECT DISTINCT author, 1 FROM standing_grants;

-- Whether its end has been written down.
ALTER TABLE standing_grants ADD COLUMN lapsed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX standing_grants_ends ON standing_grants (valid_until) WHERE lapsed = 0 AND revoked = 0;
CREATE INDEX standing_uses_deletes ON standing_uses (standing, deletes, at) WHERE deletes = 1;

-- A list of any status, by whatever its viewer is in the grants.
CREATE INDEX grants_requester_status ON grants (requester, status, created, id);
DROP INDEX grants_open; -- the first of them finds the same
CREATE INDEX grants_approver_status ON grants (approver, status, created, id) WHERE approver <> owner;

-- A use is the record of its intent: one row, and whether it has ended. What runs
-- while this is installed reports its end in vain.
ALTER TABLE log_records ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
DROP TABLE uses;

-- +goose Down
CREATE TABLE uses (
  id       TEXT PRIMARY KEY,
  grant_id TEXT NOT NULL,
  started  INTEGER NOT NULL,
  ended    INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
ALTER TABLE log_records DROP COLUMN ended;
DROP INDEX grants_approver_status;
CREATE INDEX grants_open ON grants (requester) WHERE status IN ('pending','approved');
DROP INDEX grants_requester_status;
DROP INDEX standing_uses_deletes;
DROP INDEX standing_grants_ends;
ALTER TABLE standing_grants DROP COLUMN lapsed;
DROP TABLE standing_versions;
