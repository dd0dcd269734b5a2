-- Requests that were sent with an Idempotency-Key in the last day, and what was answered, so that the same
-- request is carried out once and answered alike. Without a status it is under way, or its server died.
CREATE TABLE request_keys (
    tenant_id   TEXT    NOT NULL,
    user_id     TEXT    NOT NULL,
    request_key TEXT    NOT NULL,
    digest      TEXT    NOT NULL,
    begun_at    INTEGER NOT NULL,
    status      INTEGER,
    -- What was made. Its answer is not kept where it held a secret, or once the thing is deleted.
    made_id     TEXT,
    answer      TEXT,
    PRIMARY KEY (tenant_id, user_id, request_key),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id)
) STRICT;
CREATE INDEX request_keys_by_age ON request_keys (tenant_id, begun_at);
CREATE INDEX request_keys_by_made ON request_keys (tenant_id, made_id) WHERE made_id IS NOT NULL;
