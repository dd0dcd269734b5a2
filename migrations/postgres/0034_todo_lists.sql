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
