-- Questions to people: a call of a turn waits for the answer. A row is written with the event that asks, and gets its
-- outcome with the event that answers. It goes with its turn, also where the previous release deletes that.
CREATE TABLE approvals (
    tenant_id   TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    session_id  TEXT COLLATE "C" NOT NULL,
    user_id     TEXT COLLATE "C" NOT NULL,  -- the person who may answer
    turn_id     TEXT COLLATE "C" NOT NULL,
    step        BIGINT NOT NULL,
    ordinal     BIGINT NOT NULL,
    question    TEXT COLLATE "C" NOT NULL,  -- JSON
    asked_at    BIGINT NOT NULL,
    until_at    BIGINT NOT NULL,
    answer      TEXT COLLATE "C",              -- JSON; NULL while it is open
    answered_by TEXT COLLATE "C",              -- NULL where no person answered
    answered_at BIGINT,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, turn_id) REFERENCES turns (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX approvals_of_user ON approvals (tenant_id, user_id, id);
CREATE INDEX approvals_of_turn ON approvals (tenant_id, turn_id);
CREATE INDEX approvals_of_session ON approvals (tenant_id, session_id);

-- Rules about what agents may do.
CREATE TABLE permission_rules (
    tenant_id  TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    id         TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C",              -- whose agents it is for; NULL for all people of the tenant
    decision   TEXT COLLATE "C" NOT NULL,  -- allow, ask or deny
    rule       TEXT COLLATE "C" NOT NULL,
    set_by     TEXT COLLATE "C" NOT NULL,
    set_at     BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX permission_rules_once
    ON permission_rules (tenant_id, COALESCE(user_id, ''), decision, rule);
ALTER TABLE approvals ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON approvals
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
ALTER TABLE permission_rules ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON permission_rules
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
