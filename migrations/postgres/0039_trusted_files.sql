-- Files with a project's rules about what agents may do, which a user trusts with this very text. The rules that allow
-- count only where a look finds that text.
CREATE TABLE trusted_files (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL,  -- whose agents the rules are for
    sandbox_id TEXT COLLATE "C" NOT NULL,  -- the workspace with the file
    folder     TEXT COLLATE "C" NOT NULL,  -- the project's, relative to the root of the workspace; empty for the root
    digest     TEXT COLLATE "C" NOT NULL,
    text       TEXT COLLATE "C" NOT NULL,
    changed    BIGINT NOT NULL DEFAULT 0,  -- 1 where the last look found another text, or no file
    trusted_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, user_id, sandbox_id, folder),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, sandbox_id) REFERENCES sandboxes (tenant_id, id)
);
ALTER TABLE trusted_files ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON trusted_files
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
