-- +goose Up
-- What persons let others do in their name: delegations to services, and deputies
-- who answer for them. Both name whom they bind by address and generation, so that
-- whoever is enrolled under an address later has no part in them.

CREATE TABLE delegations (
  id            TEXT PRIMARY KEY,
  status        TEXT NOT NULL,
  type          TEXT NOT NULL,
  delegator     TEXT NOT NULL,
  delegator_gen INTEGER NOT NULL,
  delegate      TEXT NOT NULL,
  delegate_gen  INTEGER NOT NULL,
  audience      TEXT NOT NULL,
  scopes        TEXT NOT NULL,
  duration      INTEGER NOT NULL DEFAULT 0,
  created       INTEGER NOT NULL,
  valid_until   INTEGER NOT NULL DEFAULT 0,
  strength      TEXT NOT NULL,
  record        INTEGER NOT NULL,
  revoked       INTEGER NOT NULL DEFAULT 0,
  revoked_by    TEXT NOT NULL DEFAULT '',
  uses          INTEGER NOT NULL DEFAULT 0,
  last_used     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX delegations_delegator ON delegations (delegator, created, id);
CREATE INDEX delegations_delegate ON delegations (delegate, created, id);

CREATE TABLE deputies (
  id          TEXT PRIMARY KEY,
  person      TEXT NOT NULL,
  person_gen  INTEGER NOT NULL,
  deputy      TEXT NOT NULL,
  deputy_gen  INTEGER NOT NULL,
  agents      TEXT NOT NULL,
  max_risk    INTEGER NOT NULL,
  reason      TEXT NOT NULL DEFAULT '',
  created     INTEGER NOT NULL,
  valid_from  INTEGER NOT NULL,
  valid_until INTEGER NOT NULL,
  strength    TEXT NOT NULL,
  record      INTEGER NOT NULL,
  revoked     INTEGER NOT NULL DEFAULT 0,
  revoked_by  TEXT NOT NULL DEFAULT '',
  answers     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX deputies_person ON deputies (person, created, id);
CREATE INDEX deputies_deputy ON deputies (deputy, created, id);

-- What a deputy allowed, to be taken back with the deputy.
CREATE TABLE deputy_answers (
  deputy   TEXT NOT NULL,
  grant_id TEXT NOT NULL,
  PRIMARY KEY (deputy, grant_id)
) WITHOUT ROWID;

-- How many persons must allow a grant, and the first one's yes while the second
-- is awaited and afterwards.
ALTER TABLE grants ADD COLUMN approvals INTEGER NOT NULL DEFAULT 1;
ALTER TABLE grants ADD COLUMN endorsed TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE grants DROP COLUMN endorsed;
ALTER TABLE grants DROP COLUMN approvals;
DROP TABLE deputy_answers;
DROP TABLE deputies;
DROP TABLE delegations;
