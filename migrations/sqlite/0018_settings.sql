-- What the tenant, a user or a session has set: `subject` is the id of one of them, and ids of different
-- kinds differ. The runners of users and sessions stay in their own rows.
CREATE TABLE settings (
    tenant_id TEXT    NOT NULL REFERENCES tenants (id),
    subject   TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    value     TEXT    NOT NULL,
    set_by    TEXT    NOT NULL,
    set_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, subject, name),
    FOREIGN KEY (tenant_id, set_by) REFERENCES users (tenant_id, id)
) STRICT;
-- Grows with each change of a setting of the tenant, its users and its sessions.
ALTER TABLE tenants ADD COLUMN settings_generation INTEGER NOT NULL DEFAULT 0;
-- Since when the runner is chosen; NULL where an earlier release recorded the choice.
ALTER TABLE users ADD COLUMN active_runner_at INTEGER;
ALTER TABLE sessions ADD COLUMN pinned_runner_at INTEGER;
-- What a turn is run with (JSON), resolved when it is first claimed; NULL before.
ALTER TABLE turns ADD COLUMN settings TEXT;
