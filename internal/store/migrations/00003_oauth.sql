-- +goose Up
-- OAuth 2 and OpenID Connect: codes, families of refresh tokens, consents, the
-- clients that a domain's administrators allow, and client assertions seen.
-- Codes and refresh tokens are kept as SHA-256 only.

-- Which authorization a token came from; '' is a login by key or page.
ALTER TABLE tokens ADD COLUMN origin TEXT NOT NULL DEFAULT '';
CREATE INDEX tokens_origin ON tokens (origin) WHERE origin <> '';

CREATE TABLE oauth_codes (
  hash         BLOB PRIMARY KEY,
  id           TEXT NOT NULL,
  client       TEXT NOT NULL,
  redirect_uri TEXT NOT NULL,
  email        TEXT NOT NULL,
  generation   INTEGER NOT NULL,
  epoch        INTEGER NOT NULL,
  login        TEXT NOT NULL DEFAULT '',
  delegated    TEXT NOT NULL DEFAULT '',
  scope        TEXT NOT NULL,
  nonce        TEXT NOT NULL DEFAULT '',
  challenge    TEXT NOT NULL,
  auth_time    INTEGER NOT NULL,
  expires      INTEGER NOT NULL,
  used         INTEGER NOT NULL DEFAULT 0,
  keep_until   INTEGER NOT NULL
);
CREATE INDEX oauth_codes_email ON oauth_codes (email);
CREATE INDEX oauth_codes_keep ON oauth_codes (keep_until);

CREATE TABLE oauth_families (
  id         TEXT PRIMARY KEY,
  handle     BLOB NOT NULL UNIQUE,
  token      BLOB NOT NULL,
  client     TEXT NOT NULL,
  email      TEXT NOT NULL,
  generation INTEGER NOT NULL,
  epoch      INTEGER NOT NULL,
  login      TEXT NOT NULL DEFAULT '',
  scope      TEXT NOT NULL,
  auth_time  INTEGER NOT NULL,
  created    INTEGER NOT NULL,
  used       INTEGER NOT NULL,
  expires    INTEGER NOT NULL,
  ended      INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX oauth_families_email ON oauth_families (email, created, id);
CREATE INDEX oauth_families_expires ON oauth_families (expires);

CREATE TABLE oauth_consents (
  email      TEXT NOT NULL,
  client     TEXT NOT NULL,
  generation INTEGER NOT NULL,
  name       TEXT NOT NULL,
  scope      TEXT NOT NULL,
  created    INTEGER NOT NULL,
  PRIMARY KEY (email, client)
);

CREATE TABLE oauth_allowed (
  domain  TEXT NOT NULL,
  client  TEXT NOT NULL,
  created INTEGER NOT NULL,
  PRIMARY KEY (domain, client)
);

CREATE TABLE oauth_assertions (
  email   TEXT NOT NULL,
  jti     TEXT NOT NULL,
  expires INTEGER NOT NULL,
  PRIMARY KEY (email, jti)
);
CREATE INDEX oauth_assertions_expires ON oauth_assertions (expires);

-- +goose Down
DROP TABLE oauth_assertions;
DROP TABLE oauth_allowed;
DROP TABLE oauth_consents;
DROP TABLE oauth_families;
DROP TABLE oauth_codes;
DROP INDEX tokens_origin;
ALTER TABLE tokens DROP COLUMN origin;
