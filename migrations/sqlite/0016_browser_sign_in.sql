-- A browser's cookie has two secrets. `hash` is of the one that stays. These are of the one that is replaced
-- and of the one before it; when that was, with which salt, and when the newer one was first seen. NULL: the
-- credential is no browser's, or its cookie was not replaced yet.
ALTER TABLE credentials ADD COLUMN second_hash TEXT;
ALTER TABLE credentials ADD COLUMN replaced_hash TEXT;
ALTER TABLE credentials ADD COLUMN replaced_at INTEGER;
ALTER TABLE credentials ADD COLUMN salt TEXT;
ALTER TABLE credentials ADD COLUMN taken_up_at INTEGER;
-- The address from which the credential was last used, as far as that was recorded.
ALTER TABLE credentials ADD COLUMN last_address TEXT;
-- person or service. Not `kind`, which statements of earlier releases name beside a join with users.
ALTER TABLE users ADD COLUMN user_kind TEXT NOT NULL DEFAULT 'person';
-- Tickets with which a page opens a WebSocket, once.
CREATE TABLE stream_tickets (
    tenant_id     TEXT    NOT NULL,
    hash          TEXT    NOT NULL UNIQUE,
    credential_id TEXT    NOT NULL,
    operation_id  TEXT,              -- NULL: the stream of sessions
    expires_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, hash),
    FOREIGN KEY (tenant_id, credential_id) REFERENCES credentials (tenant_id, id)
) STRICT;
CREATE INDEX stream_tickets_of_credential ON stream_tickets (tenant_id, credential_id);
CREATE INDEX stream_tickets_by_end ON stream_tickets (tenant_id, expires_at);
