-- Extensions that people registered: of one user, or of the tenant where no user is named.
CREATE TABLE extensions (
    tenant_id TEXT    NOT NULL REFERENCES tenants (id),
    id        TEXT    NOT NULL,
    kind      TEXT    NOT NULL,  -- skill | agent | hooks | mcp
    user_id   TEXT,
    name      TEXT    NOT NULL,
    text      TEXT    NOT NULL,  -- its file: SKILL.md, the Markdown of an agent, or JSON
    digest    TEXT    NOT NULL,  -- of the text and the packed files
    source    TEXT    NOT NULL,  -- the path or address that it was added from; may be empty
    packed    BLOB    NOT NULL,  -- the other files of a skill's folder, as a tar archive; empty without any
    secret_id TEXT,              -- the secrets that belong to it
    set_by    TEXT    NOT NULL,
    set_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, set_by) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX extensions_of_users ON extensions (tenant_id, kind, user_id, name) WHERE user_id IS NOT NULL;
CREATE UNIQUE INDEX extensions_of_tenants ON extensions (tenant_id, kind, name) WHERE user_id IS NULL;
-- Files with hooks, tool servers or plugins on runners that a user trusts with this very text. Others do nothing.
CREATE TABLE trusted_extensions (
    tenant_id  TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    sandbox_id TEXT    NOT NULL,  -- the workspace with the file
    path       TEXT    NOT NULL,  -- relative to the root of the workspace
    digest     TEXT    NOT NULL,
    trusted_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, user_id, sandbox_id, path),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, sandbox_id) REFERENCES sandboxes (tenant_id, id)
) STRICT;
