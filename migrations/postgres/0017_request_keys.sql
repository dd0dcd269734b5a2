-- Requests that were sent with an Idempotency-Key in the last day, and what was answered, so that the same
-- request is carried out once and answered alike. Without a status it is under way, or its server died.
CREATE TABLE request_keys (
    tenant_id   TEXT COLLATE "C" NOT NULL,
    user_id     TEXT COLLATE "C" NOT NULL,
    request_key TEXT COLLATE "C" NOT NULL,
    digest      TEXT COLLATE "C" NOT NULL,
    begun_at    BIGINT           NOT NULL,
    status      BIGINT,
    -- What was made. Its answer is not kept where it held a secret, or once the thing is deleted.
    made_id     TEXT COLLATE "C",
    answer      TEXT COLLATE "C",
    PRIMARY KEY (tenant_id, user_id, request_key),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id)
);
CREATE INDEX request_keys_by_age ON request_keys (tenant_id, begun_at);
CREATE INDEX request_keys_by_made ON request_keys (tenant_id, made_id) WHERE made_id IS NOT NULL;
ALTER TABLE request_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON request_keys
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
