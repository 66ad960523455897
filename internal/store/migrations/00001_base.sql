-- +goose Up
-- Times are Unix milliseconds; 0 means "not set". Hashes and salts are blobs.

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE principals (
  email      TEXT PRIMARY KEY,
  kind       TEXT NOT NULL CHECK (kind IN ('human','agent')),
  name       TEXT NOT NULL,
  owner      TEXT NOT NULL DEFAULT '',
  approver   TEXT NOT NULL DEFAULT '',
  active     INTEGER NOT NULL DEFAULT 1,
  paused     INTEGER NOT NULL DEFAULT 0,
  removed    INTEGER NOT NULL DEFAULT 0,
  generation INTEGER NOT NULL DEFAULT 1,
  created    INTEGER NOT NULL,
  last_login INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX principals_owner ON principals (owner, created);

CREATE TABLE principal_keys (
  key_id        TEXT PRIMARY KEY,
  email         TEXT NOT NULL REFERENCES principals (email),
  name          TEXT NOT NULL,
  public_key    TEXT NOT NULL,
  source        TEXT NOT NULL,
  created       INTEGER NOT NULL,
  dormant_until INTEGER NOT NULL DEFAULT 0,
  weak          INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX principal_keys_email ON principal_keys (email, created);

CREATE TABLE passkeys (
  id            TEXT PRIMARY KEY,
  email         TEXT NOT NULL REFERENCES principals (email),
  name          TEXT NOT NULL,
  credential    TEXT NOT NULL,
  created       INTEGER NOT NULL,
  last_used     INTEGER NOT NULL DEFAULT 0,
  dormant_until INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX passkeys_email ON passkeys (email, created);

CREATE TABLE sessions (
  id        TEXT PRIMARY KEY,
  email     TEXT NOT NULL REFERENCES principals (email),
  proof_key BLOB NOT NULL,
  agent     TEXT NOT NULL,
  created   INTEGER NOT NULL,
  expires   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_email ON sessions (email, created);

CREATE TABLE tokens (
  jti     TEXT PRIMARY KEY,
  email   TEXT NOT NULL REFERENCES principals (email),
  key_id  TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tokens_email ON tokens (email);
CREATE INDEX tokens_expires ON tokens (expires);

CREATE TABLE signing_keys (
  kid      TEXT PRIMARY KEY,
  seed     BLOB NOT NULL,
  created  INTEGER NOT NULL,
  retired  INTEGER NOT NULL DEFAULT 0,
  drop_at  INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE grants (
  id            TEXT PRIMARY KEY,
  version       INTEGER NOT NULL,
  epoch         INTEGER NOT NULL,
  nonce         TEXT NOT NULL,
  status        TEXT NOT NULL,
  type          TEXT NOT NULL,
  requester     TEXT NOT NULL,
  requester_key TEXT NOT NULL,
  generation    INTEGER NOT NULL,
  owner         TEXT NOT NULL,
  approver      TEXT NOT NULL,
  reuse_key     BLOB NOT NULL,
  identity      BLOB NOT NULL,
  risk          INTEGER NOT NULL,
  request       TEXT NOT NULL,
  bytes         INTEGER NOT NULL,
  created       INTEGER NOT NULL,
  valid_until   INTEGER NOT NULL,
  decided       INTEGER NOT NULL DEFAULT 0,
  decision      TEXT NOT NULL DEFAULT '',
  record        INTEGER NOT NULL DEFAULT -1,
  revoked       INTEGER NOT NULL DEFAULT 0,
  revoked_by    TEXT NOT NULL DEFAULT '',
  last_used     INTEGER NOT NULL DEFAULT 0,
  uses          INTEGER NOT NULL DEFAULT 0,
  joined        INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX grants_requester ON grants (requester, created, id);
CREATE INDEX grants_owner ON grants (owner, created, id);
CREATE INDEX grants_owner_status ON grants (owner, status, created, id);
CREATE INDEX grants_approver ON grants (approver, created, id) WHERE approver <> owner;
CREATE INDEX grants_reuse ON grants (reuse_key, created) WHERE status IN ('pending','approved');
CREATE INDEX grants_open ON grants (requester) WHERE status IN ('pending','approved');
CREATE INDEX grants_pending_requester ON grants (requester, bytes) WHERE status = 'pending';
CREATE INDEX grants_pending_owner ON grants (owner, bytes) WHERE status = 'pending';
CREATE INDEX grants_ends ON grants (valid_until) WHERE status IN ('pending','approved') AND valid_until > 0;

CREATE TABLE uses (
  id       TEXT PRIMARY KEY,
  grant_id TEXT NOT NULL,
  started  INTEGER NOT NULL,
  ended    INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE trust_requests (
  id        TEXT PRIMARY KEY,
  operation TEXT NOT NULL,
  params    TEXT NOT NULL,
  asker     TEXT NOT NULL,
  secret    BLOB NOT NULL,
  nonce     TEXT NOT NULL,
  status    TEXT NOT NULL,
  confirmer TEXT NOT NULL DEFAULT '',
  result    TEXT NOT NULL DEFAULT '',
  created   INTEGER NOT NULL,
  expires   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX trust_requests_expires ON trust_requests (expires);
CREATE INDEX trust_requests_asker ON trust_requests (asker, created, id) WHERE status = 'pending';

CREATE TABLE log_records (
  idx   INTEGER PRIMARY KEY,
  type  TEXT NOT NULL,
  time  INTEGER NOT NULL,
  grant_id TEXT NOT NULL DEFAULT '',
  party TEXT NOT NULL DEFAULT '',
  salt  BLOB,
  body  BLOB,
  leaf  BLOB NOT NULL
);
CREATE INDEX log_records_grant ON log_records (grant_id, idx) WHERE grant_id <> '';
CREATE INDEX log_records_party ON log_records (party, idx);

CREATE TABLE log_hashes (
  idx  INTEGER PRIMARY KEY,
  hash BLOB NOT NULL
);

-- +goose Down
DROP TABLE log_hashes;
DROP TABLE log_records;
DROP TABLE trust_requests;
DROP TABLE uses;
DROP TABLE grants;
DROP TABLE signing_keys;
DROP TABLE tokens;
DROP TABLE sessions;
DROP TABLE passkeys;
DROP TABLE principal_keys;
DROP TABLE principals;
DROP TABLE meta;
