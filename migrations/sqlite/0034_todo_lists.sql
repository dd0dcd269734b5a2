-- The to-do list that a user's sessions left in a folder of a runner: a session that begins there later goes on with it.
CREATE TABLE todo_lists (
    tenant_id  TEXT    NOT NULL REFERENCES tenants (id),
    user_id    TEXT    NOT NULL,
    place      TEXT    NOT NULL,  -- the runner, its workspace and the folder
    items      TEXT    NOT NULL,  -- JSON
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, user_id, place)
) STRICT;
