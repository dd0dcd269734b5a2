-- What a credential is good for (JSON, words), until when, and from which addresses. NULL: all that its
-- user may do, without an end, from anywhere.
ALTER TABLE credentials ADD COLUMN scopes TEXT COLLATE "C";
ALTER TABLE credentials ADD COLUMN expires_at BIGINT;
ALTER TABLE credentials ADD COLUMN address_range TEXT COLLATE "C";
-- When a person was removed. The row stays, because sessions, runners and the audit log name it.
ALTER TABLE users ADD COLUMN removed_at BIGINT;
-- Who may use a runner beside its owner: everyone of its tenant, or the people in `runner_shares`.
ALTER TABLE runners ADD COLUMN shared_with_everyone_at BIGINT;
CREATE TABLE runner_shares (
    tenant_id TEXT COLLATE "C" NOT NULL,
    runner_id TEXT COLLATE "C" NOT NULL,
    user_id   TEXT COLLATE "C" NOT NULL,
    shared_at BIGINT           NOT NULL,
    PRIMARY KEY (tenant_id, runner_id, user_id),
    FOREIGN KEY (tenant_id, runner_id) REFERENCES runners (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id)
);
CREATE INDEX runner_shares_of_user ON runner_shares (tenant_id, user_id);
ALTER TABLE runner_shares ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON runner_shares
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
-- From where something was done, and with which credential, where that is known.
ALTER TABLE audit ADD COLUMN address TEXT COLLATE "C";
ALTER TABLE audit ADD COLUMN credential_id TEXT COLLATE "C";
