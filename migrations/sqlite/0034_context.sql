-- The to-do list that a user's sessions left in a folder of a runner: a session that begins there later goes on with it.
CREATE TABLE todo_lists (
    tenant_id  TEXT    NOT NULL REFERENCES tenants (id),
    user_id    TEXT    NOT NULL,
    place      TEXT    NOT NULL,  -- the runner, its workspace and the folder
    items      TEXT    NOT NULL,  -- JSON
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, user_id, place)
) STRICT;
-- Texts of a session that its model is shown in part, such as pages of the web; each once.
CREATE TABLE session_texts (
    tenant_id  TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    digest     TEXT    NOT NULL,  -- the SHA-256 of the bytes
    bytes      BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, session_id, digest),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id)
) STRICT;
