-- Questions to people: a call of a turn waits for the answer. A row is written with the event that asks, and gets its
-- outcome with the event that answers. It goes with its turn, also where the previous release deletes that.
CREATE TABLE approvals (
    tenant_id   TEXT    NOT NULL,
    id          TEXT    NOT NULL,
    session_id  TEXT    NOT NULL,
    user_id     TEXT    NOT NULL,  -- the person who may answer
    turn_id     TEXT    NOT NULL,
    step        INTEGER NOT NULL,
    ordinal     INTEGER NOT NULL,
    question    TEXT    NOT NULL,  -- JSON
    asked_at    INTEGER NOT NULL,
    until_at    INTEGER NOT NULL,
    answer      TEXT,              -- JSON; NULL while it is open
    answered_by TEXT,              -- NULL where no person answered
    answered_at INTEGER,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, turn_id) REFERENCES turns (tenant_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX approvals_of_user ON approvals (tenant_id, user_id, id);
CREATE INDEX approvals_of_turn ON approvals (tenant_id, turn_id);
CREATE INDEX approvals_of_session ON approvals (tenant_id, session_id);

-- Rules about what agents may do.
CREATE TABLE permission_rules (
    tenant_id  TEXT    NOT NULL REFERENCES tenants (id),
    id         TEXT    NOT NULL,
    user_id    TEXT,              -- whose agents it is for; NULL for all people of the tenant
    decision   TEXT    NOT NULL,  -- allow, ask or deny
    rule       TEXT    NOT NULL,
    set_by     TEXT    NOT NULL,
    set_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX permission_rules_once
    ON permission_rules (tenant_id, COALESCE(user_id, ''), decision, rule);
