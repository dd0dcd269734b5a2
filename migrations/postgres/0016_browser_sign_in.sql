-- A browser's cookie has two secrets. `hash` is of the one that stays. These are of the one that is replaced
-- and of the one before it; when that was, with which salt, and when the newer one was first seen. NULL: the
-- credential is no browser's, or its cookie was not replaced yet.
ALTER TABLE credentials ADD COLUMN second_hash TEXT COLLATE "C";
ALTER TABLE credentials ADD COLUMN replaced_hash TEXT COLLATE "C";
ALTER TABLE credentials ADD COLUMN replaced_at BIGINT;
ALTER TABLE credentials ADD COLUMN salt TEXT COLLATE "C";
ALTER TABLE credentials ADD COLUMN taken_up_at BIGINT;
-- The address from which the credential was last used, as far as that was recorded.
ALTER TABLE credentials ADD COLUMN last_address TEXT COLLATE "C";
-- person or service. Not `kind`, which statements of earlier releases name beside a join with users.
ALTER TABLE users ADD COLUMN user_kind TEXT COLLATE "C" NOT NULL DEFAULT 'person';
-- Tickets with which a page opens a WebSocket, once.
CREATE TABLE stream_tickets (
    tenant_id     TEXT COLLATE "C" NOT NULL,
    hash          TEXT COLLATE "C" NOT NULL UNIQUE,
    credential_id TEXT COLLATE "C" NOT NULL,
    operation_id  TEXT COLLATE "C",  -- NULL: the stream of sessions
    expires_at    BIGINT           NOT NULL,
    PRIMARY KEY (tenant_id, hash),
    FOREIGN KEY (tenant_id, credential_id) REFERENCES credentials (tenant_id, id)
);
CREATE INDEX stream_tickets_of_credential ON stream_tickets (tenant_id, credential_id);
CREATE INDEX stream_tickets_by_end ON stream_tickets (tenant_id, expires_at);
ALTER TABLE stream_tickets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON stream_tickets
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
