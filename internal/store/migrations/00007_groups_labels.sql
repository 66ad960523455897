-- +goose Up
-- Groups of an owner's agents, which patterns may be for.

CREATE TABLE agent_groups (
  owner TEXT NOT NULL,
  name  TEXT NOT NULL,
  agent TEXT NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (owner, name, agent)
) WITHOUT ROWID;
CREATE INDEX agent_groups_agent ON agent_groups (agent);

-- Owners who have switched the safe commands of their agents off.
CREATE TABLE safe_off (
  owner TEXT PRIMARY KEY,
  since INTEGER NOT NULL
) WITHOUT ROWID;

-- What an agent has seen and done that changes what patterns cover.
CREATE TABLE agent_labels (
  agent    TEXT NOT NULL,
  label    TEXT NOT NULL,
  since    INTEGER NOT NULL,
  grant_id TEXT NOT NULL,
  PRIMARY KEY (agent, label)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE agent_labels;
DROP TABLE safe_off;
DROP TABLE agent_groups;
