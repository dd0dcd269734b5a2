-- The to-do list that a user's sessions left in a folder of a runner: a session that begins there later goes on with it.
CREATE TABLE todo_lists (
    tenant_id  TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    user_id    TEXT COLLATE "C" NOT NULL,
    place      TEXT COLLATE "C" NOT NULL,  -- the runner, its workspace and the folder
    items      TEXT COLLATE "C" NOT NULL,  -- JSON
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, place)
);
ALTER TABLE todo_lists ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON todo_lists
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
-- Texts of a session that its model is shown in part, such as pages of the web; each once.
CREATE TABLE session_texts (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,  -- the SHA-256 of the bytes
    bytes      BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, session_id, digest),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id)
);
ALTER TABLE session_texts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON session_texts
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
