-- Extensions that people registered: of one user, or of the tenant where no user is named.
CREATE TABLE extensions (
    tenant_id TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    id        TEXT COLLATE "C" NOT NULL,
    kind      TEXT COLLATE "C" NOT NULL,  -- skill | agent | hooks | mcp
    user_id   TEXT COLLATE "C",
    name      TEXT COLLATE "C" NOT NULL,
    text      TEXT COLLATE "C" NOT NULL,  -- its file: SKILL.md, the Markdown of an agent, or JSON
    digest    TEXT COLLATE "C" NOT NULL,  -- of the text and the packed files
    source    TEXT COLLATE "C" NOT NULL,  -- the path or address that it was added from; may be empty
    packed    BYTEA NOT NULL,  -- the other files of a skill's folder, as a tar archive; empty without any
    secret_id TEXT COLLATE "C",  -- the secrets that belong to it
    set_by    TEXT COLLATE "C" NOT NULL,
    set_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, set_by) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets (tenant_id, id)
);
ALTER TABLE extensions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON extensions
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
CREATE UNIQUE INDEX extensions_of_users ON extensions (tenant_id, kind, user_id, name) WHERE user_id IS NOT NULL;
CREATE UNIQUE INDEX extensions_of_tenants ON extensions (tenant_id, kind, name) WHERE user_id IS NULL;
-- Files with hooks, tool servers or plugins on runners that a user trusts with this very text. Others do nothing.
CREATE TABLE trusted_extensions (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL,
    sandbox_id TEXT COLLATE "C" NOT NULL,  -- the workspace with the file
    path       TEXT COLLATE "C" NOT NULL,  -- relative to the root of the workspace
    digest     TEXT COLLATE "C" NOT NULL,
    trusted_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, sandbox_id, path),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, sandbox_id) REFERENCES sandboxes (tenant_id, id)
);
ALTER TABLE trusted_extensions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON trusted_extensions
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
