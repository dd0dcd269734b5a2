-- The keys that seal a tenant's secrets, each wrapped (encrypted) by a master key that is not in the database.
CREATE TABLE data_keys (
    tenant_id  TEXT    NOT NULL REFERENCES tenants (id),
    version    INTEGER NOT NULL,  -- from 1
    master_key TEXT    NOT NULL,  -- the id of the master key that wraps it
    wrapped    BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, version)
) STRICT;
-- Sealed texts. A new text takes the next version.
CREATE TABLE secrets (
    tenant_id        TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    version          INTEGER NOT NULL,  -- from 1
    data_key_version INTEGER NOT NULL,
    sealed           BLOB    NOT NULL,
    created_at       INTEGER NOT NULL,
    changed_at       INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, data_key_version) REFERENCES data_keys (tenant_id, version)
) STRICT;
-- Accounts at providers of models: of one user, or of the tenant where no user is named.
CREATE TABLE model_accounts (
    tenant_id  TEXT    NOT NULL REFERENCES tenants (id),
    id         TEXT    NOT NULL,
    user_id    TEXT,
    name       TEXT    NOT NULL,
    provider   TEXT    NOT NULL,
    format     TEXT,              -- the format of requests, where it is not that of the provider
    base_url   TEXT,              -- the address, where it is not that of the provider
    models     TEXT    NOT NULL,  -- JSON: names of models; may be empty
    secret_id  TEXT,              -- the key of the account
    created_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, created_by) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX model_accounts_of_users ON model_accounts (tenant_id, user_id, name) WHERE user_id IS NOT NULL;
CREATE UNIQUE INDEX model_accounts_of_tenants ON model_accounts (tenant_id, name) WHERE user_id IS NULL;
-- The usage of models: a row for each call that was sent. It survives its session, so it refers to none.
CREATE TABLE model_calls (
    tenant_id     TEXT    NOT NULL REFERENCES tenants (id),
    id            TEXT    NOT NULL,
    at            INTEGER NOT NULL,
    user_id       TEXT    NOT NULL,
    session_id    TEXT    NOT NULL,
    turn_id       TEXT    NOT NULL,
    step          INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,  -- of the step and its worker, from 1
    model         TEXT    NOT NULL,
    provider      TEXT    NOT NULL,
    account       TEXT    NOT NULL,  -- the id of a model account, or `operator`
    whose         TEXT    NOT NULL,  -- own | tenant | operator
    input         INTEGER NOT NULL,  -- tokens
    cached        INTEGER NOT NULL,
    cache_written INTEGER NOT NULL,
    output        INTEGER NOT NULL,
    thoughts      INTEGER NOT NULL,
    price_date    TEXT,
    cost_micros   INTEGER,           -- millionths of a dollar; absent where no price is known
    duration_ms   INTEGER NOT NULL,
    first_byte_ms INTEGER,
    outcome       TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX model_calls_of_tenants ON model_calls (tenant_id, at);
CREATE INDEX model_calls_of_users ON model_calls (tenant_id, user_id, at);
CREATE INDEX model_calls_of_turns ON model_calls (tenant_id, turn_id);
CREATE INDEX model_calls_of_sessions ON model_calls (tenant_id, session_id);
-- The images of a session, each once.
CREATE TABLE session_images (
    tenant_id  TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    digest     TEXT    NOT NULL,  -- the SHA-256 of the bytes
    media_type TEXT    NOT NULL,
    bytes      BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, session_id, digest),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id)
) STRICT;
