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
CREATE INDEX standing_uses_deletes ON standing_uses (standing, at) WHERE deletes > 0;

-- +goose Down
DROP INDEX standing_uses_deletes;
DROP INDEX standing_grants_ends;
ALTER TABLE standing_grants DROP COLUMN lapsed;
DROP TABLE standing_versions;
