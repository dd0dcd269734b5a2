-- When a session was put out of its user's list, and when it was deleted. A deleted one is seen by
-- nobody; its row goes once nothing of it runs any more.
ALTER TABLE sessions ADD COLUMN archived_at INTEGER;
ALTER TABLE sessions ADD COLUMN deleted_at INTEGER;
CREATE INDEX sessions_deleted ON sessions (deleted_at) WHERE deleted_at IS NOT NULL;
-- Links by which strangers read a session.
CREATE TABLE session_links (
    tenant_id  TEXT    NOT NULL,
    hash       TEXT    NOT NULL UNIQUE,
    session_id TEXT    NOT NULL,
    made_at    INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (tenant_id, session_id, hash),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id)
) STRICT;
