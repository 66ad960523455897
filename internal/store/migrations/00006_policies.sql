-- +goose Up
-- What approves an agent's requests without a card: one policy in force for each
-- agent and audience. Every change is a row of its own, so that what an earlier one
-- approved can be told apart.

CREATE TABLE policies (
  id         TEXT PRIMARY KEY,
  agent      TEXT NOT NULL,
  audience   TEXT NOT NULL,
  author     TEXT NOT NULL,
  generation INTEGER NOT NULL,
  policy     TEXT NOT NULL,
  created    INTEGER NOT NULL,
  valid_until INTEGER NOT NULL,
  strength   TEXT NOT NULL,
  record     INTEGER NOT NULL,
  ended      INTEGER NOT NULL DEFAULT 0,
  ended_by   TEXT NOT NULL DEFAULT '',
  paused     TEXT NOT NULL DEFAULT '',
  uses       INTEGER NOT NULL DEFAULT 0,
  last_used  INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE UNIQUE INDEX policies_in_force ON policies (agent, audience) WHERE ended = 0;
CREATE INDEX policies_author ON policies (author) WHERE ended = 0;

CREATE TABLE policy_uses (
  policy   TEXT NOT NULL,
  at       INTEGER NOT NULL,
  grant_id TEXT NOT NULL,
  deletes  INTEGER NOT NULL,
  PRIMARY KEY (policy, at, grant_id)
) WITHOUT ROWID;
CREATE INDEX policy_uses_at ON policy_uses (at);

-- +goose Down
DROP TABLE policy_uses;
DROP TABLE policies;
