-- The values of people that stand for variables in the addresses and headers of tool servers.
CREATE TABLE tool_values (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    host       TEXT COLLATE "C" NOT NULL,
    secret_id  TEXT COLLATE "C" NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, name),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets (tenant_id, id)
);
ALTER TABLE tool_values ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON tool_values
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
