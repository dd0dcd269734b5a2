-- When a session was put out of its user's list, and when it was deleted. A deleted one is seen by
-- nobody; its row goes once nothing of it runs any more.
ALTER TABLE sessions ADD COLUMN archived_at BIGINT;
ALTER TABLE sessions ADD COLUMN deleted_at BIGINT;
CREATE INDEX sessions_deleted ON sessions (deleted_at) WHERE deleted_at IS NOT NULL;
-- Links by which strangers read a session.
CREATE TABLE session_links (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    hash       TEXT COLLATE "C" NOT NULL UNIQUE,
    session_id TEXT COLLATE "C" NOT NULL,
    made_at    BIGINT           NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (tenant_id, session_id, hash),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id)
);
ALTER TABLE session_links ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON session_links
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
