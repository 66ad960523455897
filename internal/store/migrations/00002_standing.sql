-- +goose Up
-- Patterns that persons have signed, and their uses.

CREATE TABLE standing_grants (
  id         TEXT PRIMARY KEY,
  author     TEXT NOT NULL,
  generation INTEGER NOT NULL,
  agent      TEXT NOT NULL,
  pattern    TEXT NOT NULL,
  reason     TEXT NOT NULL DEFAULT '',
  created    INTEGER NOT NULL,
  valid_until INTEGER NOT NULL,
  strength   TEXT NOT NULL,
  record     INTEGER NOT NULL,
  revoked    INTEGER NOT NULL DEFAULT 0,
  revoked_by TEXT NOT NULL DEFAULT '',
  paused     TEXT NOT NULL DEFAULT '',
  uses       INTEGER NOT NULL DEFAULT 0,
  last_used  INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX standing_grants_author ON standing_grants (author, created, id);

-- Which of them may cover a program: '' stands for any. Only what is in force.
CREATE TABLE standing_programs (
  author   TEXT NOT NULL,
  agent    TEXT NOT NULL,
  program  TEXT NOT NULL,
  standing TEXT NOT NULL,
  PRIMARY KEY (author, agent, program, standing)
) WITHOUT ROWID;

CREATE TABLE standing_uses (
  standing TEXT NOT NULL,
  at       INTEGER NOT NULL,
  grant_id TEXT NOT NULL,
  deletes  INTEGER NOT NULL,
  PRIMARY KEY (standing, at, grant_id)
) WITHOUT ROWID;
CREATE INDEX standing_uses_at ON standing_uses (at);

-- +goose Down
DROP TABLE standing_uses;
DROP TABLE standing_programs;
DROP TABLE standing_grants;
