-- +goose Up
-- What persons let one service do at another in their name: bridges. The person is
-- named by address and generation, the services by their IDs.

CREATE TABLE bridges (
  id          TEXT PRIMARY KEY,
  email       TEXT NOT NULL,
  generation  INTEGER NOT NULL,
  client      TEXT NOT NULL,
  audience    TEXT NOT NULL,
  scopes      TEXT NOT NULL,
  created     INTEGER NOT NULL,
  valid_until INTEGER NOT NULL,
  strength    TEXT NOT NULL,
  revoked     INTEGER NOT NULL DEFAULT 0,
  revoked_by  TEXT NOT NULL DEFAULT '',
  uses        INTEGER NOT NULL DEFAULT 0,
  last_used   INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX bridges_email ON bridges (email, created, id);

-- +goose Down
DROP TABLE bridges;
