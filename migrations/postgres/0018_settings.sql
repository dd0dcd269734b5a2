-- What the tenant, a user or a session has set: `subject` is the id of one of them, and ids of different
-- kinds differ. The runners of users and sessions stay in their own rows.
CREATE TABLE settings (
    tenant_id TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    subject   TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    value     TEXT COLLATE "C" NOT NULL,
    set_by    TEXT COLLATE "C" NOT NULL,
    set_at    BIGINT           NOT NULL,
    PRIMARY KEY (tenant_id, subject, name),
    FOREIGN KEY (tenant_id, set_by) REFERENCES users (tenant_id, id)
);
ALTER TABLE settings ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON settings
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
-- Grows with each change of a setting of the tenant, its users and its sessions.
ALTER TABLE tenants ADD COLUMN settings_generation BIGINT NOT NULL DEFAULT 0;
-- Since when the runner is chosen; NULL where an earlier release recorded the choice.
ALTER TABLE users ADD COLUMN active_runner_at BIGINT;
ALTER TABLE sessions ADD COLUMN pinned_runner_at BIGINT;
-- What a turn is run with (JSON), resolved when it is first claimed; NULL before.
ALTER TABLE turns ADD COLUMN settings TEXT COLLATE "C";
