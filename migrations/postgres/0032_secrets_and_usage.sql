-- The keys that seal a tenant's secrets, each wrapped (encrypted) by a master key that is not in the database.
CREATE TABLE data_keys (
    tenant_id  TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    version    BIGINT NOT NULL,  -- from 1
    master_key TEXT COLLATE "C" NOT NULL,  -- the id of the master key that wraps it
    wrapped    BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, version)
);
-- Sealed texts. A new text takes the next version.
CREATE TABLE secrets (
    tenant_id        TEXT COLLATE "C" NOT NULL,
    id               TEXT COLLATE "C" NOT NULL,
    version          BIGINT NOT NULL,  -- from 1
    data_key_version BIGINT NOT NULL,
    sealed           BYTEA NOT NULL,
    created_at       BIGINT NOT NULL,
    changed_at       BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, data_key_version) REFERENCES data_keys (tenant_id, version)
);
-- Accounts at providers of models: of one user, or of the tenant where no user is named.
CREATE TABLE model_accounts (
    tenant_id  TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    id         TEXT COLLATE "C" NOT NULL,
    user_id    TEXT COLLATE "C",
    name       TEXT COLLATE "C" NOT NULL,
    provider   TEXT COLLATE "C" NOT NULL,
    format     TEXT COLLATE "C",              -- the format of requests, where it is not that of the provider
    base_url   TEXT COLLATE "C",              -- the address, where it is not that of the provider
    models     TEXT COLLATE "C" NOT NULL,  -- JSON: names of models; may be empty
    secret_id  TEXT COLLATE "C",              -- the key of the account
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, created_by) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets (tenant_id, id)
);
CREATE UNIQUE INDEX model_accounts_of_users ON model_accounts (tenant_id, user_id, name) WHERE user_id IS NOT NULL;
CREATE UNIQUE INDEX model_accounts_of_tenants ON model_accounts (tenant_id, name) WHERE user_id IS NULL;
-- The usage of models: a row for each call that was sent. It survives its session, so it refers to none.
CREATE TABLE model_calls (
    tenant_id     TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    id            TEXT COLLATE "C" NOT NULL,
    at            BIGINT NOT NULL,
    user_id       TEXT COLLATE "C" NOT NULL,
    session_id    TEXT COLLATE "C" NOT NULL,
    turn_id       TEXT COLLATE "C" NOT NULL,
    step          BIGINT NOT NULL,
    attempt       BIGINT NOT NULL,  -- of the step and its worker, from 1
    model         TEXT COLLATE "C" NOT NULL,
    provider      TEXT COLLATE "C" NOT NULL,
    account       TEXT COLLATE "C" NOT NULL,  -- the id of a model account, or `operator`
    whose         TEXT COLLATE "C" NOT NULL,  -- own | tenant | operator
    input         BIGINT NOT NULL,  -- tokens
    cached        BIGINT NOT NULL,
    cache_written BIGINT NOT NULL,
    output        BIGINT NOT NULL,
    thoughts      BIGINT NOT NULL,
    price_date    TEXT COLLATE "C",
    cost_micros   BIGINT,           -- millionths of a dollar; absent where no price is known
    duration_ms   BIGINT NOT NULL,
    first_byte_ms BIGINT,
    outcome       TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX model_calls_of_tenants ON model_calls (tenant_id, at);
CREATE INDEX model_calls_of_users ON model_calls (tenant_id, user_id, at);
CREATE INDEX model_calls_of_turns ON model_calls (tenant_id, turn_id);
CREATE INDEX model_calls_of_sessions ON model_calls (tenant_id, session_id);
-- The images of a session, each once.
CREATE TABLE session_images (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,  -- the SHA-256 of the bytes
    media_type TEXT COLLATE "C" NOT NULL,
    bytes      BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, session_id, digest),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id)
);
-- Images are compressed already.
ALTER TABLE session_images ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE data_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON data_keys
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON secrets
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
ALTER TABLE model_accounts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON model_accounts
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
ALTER TABLE model_calls ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON model_calls
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
ALTER TABLE session_images ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON session_images
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
