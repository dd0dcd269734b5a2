-- Files with a project's rules about what agents may do, which a user trusts with this very text. The rules that allow
-- count only where a look finds that text.
CREATE TABLE trusted_files (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,  -- whose agents the rules are for
    sandbox_id TEXT    NOT NULL,  -- the workspace with the file
    folder     TEXT    NOT NULL,  -- the project's, relative to the root of the workspace; empty for the root
    digest     TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    changed    INTEGER NOT NULL DEFAULT 0,  -- 1 where the last look found another text, or no file
    trusted_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, user_id, sandbox_id, folder),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, sandbox_id) REFERENCES sandboxes (tenant_id, id)
) STRICT;
