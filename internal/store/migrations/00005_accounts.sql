-- +goose Up
-- Who administers, links that make a first passkey, recoveries that wait, and
-- where people are told of requests.

CREATE TABLE admins (
  email      TEXT PRIMARY KEY,
  generation INTEGER NOT NULL,
  given_by   TEXT NOT NULL,
  created    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE account_links (
  id       TEXT PRIMARY KEY,
  hash     TEXT NOT NULL UNIQUE,
  email    TEXT NOT NULL,
  name     TEXT NOT NULL,
  given_by TEXT NOT NULL,
  created  INTEGER NOT NULL,
  expires  INTEGER NOT NULL,
  used     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX account_links_email ON account_links (email, created, id);
CREATE INDEX account_links_expires ON account_links (expires);

CREATE TABLE recoveries (
  id         TEXT PRIMARY KEY,
  hash       TEXT NOT NULL UNIQUE,
  email      TEXT NOT NULL,
  generation INTEGER NOT NULL,
  created    INTEGER NOT NULL,
  ready      INTEGER NOT NULL,
  expires    INTEGER NOT NULL,
  status     TEXT NOT NULL,
  ended_by   TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE UNIQUE INDEX recoveries_open ON recoveries (email) WHERE status = 'pending';
CREATE INDEX recoveries_expires ON recoveries (expires);

-- People who are away: a recovery of theirs waits longer.
CREATE TABLE vacations (
  email   TEXT PRIMARY KEY,
  created INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE push_subscriptions (
  endpoint TEXT PRIMARY KEY,
  email    TEXT NOT NULL,
  p256dh   TEXT NOT NULL,
  auth     TEXT NOT NULL,
  language TEXT NOT NULL,
  created  INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX push_subscriptions_email ON push_subscriptions (email, created);

-- The key that signs to push services (RFC 8292), a P-256 scalar.
CREATE TABLE push_keys (
  id      TEXT PRIMARY KEY,
  private BLOB NOT NULL,
  created INTEGER NOT NULL
) WITHOUT ROWID;

-- +goose Down
DROP TABLE push_keys;
DROP TABLE push_subscriptions;
DROP TABLE vacations;
DROP TABLE recoveries;
DROP TABLE account_links;
DROP TABLE admins;
