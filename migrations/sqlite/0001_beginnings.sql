-- The first schema. What every table follows:
--   * A tenant in every table, and foreign keys that carry it, so that no row can refer to
--     another tenant's. The one exception is `attempts`: who tries has not said who they are.
--   * Plural names and `_id` columns, because `user` is a reserved word of PostgreSQL.
--   * Ids are TEXT in their text form; times are INTEGER microseconds since 1970 in UTC, given
--     by the caller; digests and hashes are TEXT of 64 hexadecimal digits; JSON is TEXT.
--   * A fact that happens once is a nullable time: it is set once and never cleared.
--   * Words of a closed set have a CHECK. Words of a set that will grow (roles, kinds, states)
--     have none, because SQLite changes a CHECK only by building the table anew.

CREATE TABLE tenants (
    id                 TEXT    NOT NULL PRIMARY KEY,
    name               TEXT    NOT NULL,
    -- What a sandbox must be proved to keep apart before the tenant's work goes there.
    demanded_isolation TEXT    NOT NULL DEFAULT 'none',
    -- The number of the newest row of `audit`.
    audit_seq          INTEGER NOT NULL DEFAULT 0,
    created_at         INTEGER NOT NULL
) STRICT;

CREATE TABLE users (
    tenant_id        TEXT    NOT NULL REFERENCES tenants (id),
    id               TEXT    NOT NULL,
    name             TEXT    NOT NULL,
    role             TEXT    NOT NULL,  -- owner, admin, member or viewer
    active_runner_id TEXT,
    created_at       INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, name),
    FOREIGN KEY (tenant_id, active_runner_id) REFERENCES runners (tenant_id, id)
) STRICT;

CREATE TABLE credentials (
    tenant_id    TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    kind         TEXT    NOT NULL,  -- api_key or sign_in
    name         TEXT    NOT NULL,
    hash         TEXT    NOT NULL UNIQUE,
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id)
) STRICT;
CREATE INDEX credentials_of_user ON credentials (tenant_id, user_id);

-- One code per user: a new one takes the place of the old one.
CREATE TABLE sign_in_codes (
    tenant_id  TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    hash       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER,
    PRIMARY KEY (tenant_id, user_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id)
) STRICT;

-- Failed attempts to get in, so that a restart does not forget whom to slow down.
CREATE TABLE attempts (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    kind    TEXT    NOT NULL,  -- sign_in or enrol
    address TEXT    NOT NULL,
    at      INTEGER NOT NULL
) STRICT;
CREATE INDEX attempts_of_address ON attempts (kind, address, at);
CREATE INDEX attempts_by_age ON attempts (at);

CREATE TABLE runners (
    tenant_id        TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    owner_id         TEXT    NOT NULL,
    name             TEXT    NOT NULL,
    labels           TEXT    NOT NULL,  -- JSON object of strings
    public_key       BLOB    NOT NULL,  -- Ed25519
    hostname         TEXT    NOT NULL,
    os               TEXT    NOT NULL,  -- empty before the first link
    architecture     TEXT    NOT NULL,  -- empty before the first link
    version          TEXT    NOT NULL,
    features         TEXT    NOT NULL,  -- JSON array of strings
    ephemeral        INTEGER NOT NULL CHECK (ephemeral IN (0, 1)),  -- removed when it says goodbye
    enrolled_at      INTEGER NOT NULL,
    revoked_at       INTEGER,
    -- The link. A runner is online while a replica holds it.
    generation       INTEGER NOT NULL DEFAULT 0,
    replica_id       TEXT,
    connected_at     INTEGER,
    last_seen_at     INTEGER,
    -- What its memory of operations was worth at the newest link; absent before the first one.
    journal_id       TEXT,
    boot_id          TEXT,
    journal_sequence INTEGER NOT NULL DEFAULT 0,
    -- Copies of a runner's folder betray themselves by an old join state: the one that a link has
    -- used last, and the newest that was handed out.
    join_state         INTEGER NOT NULL DEFAULT 0,
    offered_join_state INTEGER NOT NULL DEFAULT 0,
    locked_at          INTEGER,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (id),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES users (tenant_id, id),
    CHECK ((replica_id IS NULL) = (connected_at IS NULL)),
    CHECK ((journal_id IS NULL) = (boot_id IS NULL))
) STRICT;
CREATE UNIQUE INDEX runners_by_name ON runners (tenant_id, name) WHERE revoked_at IS NULL;

-- A sandbox that the runner stopped to report keeps its row, because operations name it; it is
-- there while its generation is its runner's.
CREATE TABLE sandboxes (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    runner_id  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    root       TEXT    NOT NULL,
    isolation  TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, runner_id, name),
    FOREIGN KEY (tenant_id, runner_id) REFERENCES runners (tenant_id, id)
) STRICT;

CREATE TABLE join_tokens (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    owner_id   TEXT    NOT NULL,
    name       TEXT    NOT NULL,  -- the runner's name; empty lets the runner say
    labels     TEXT    NOT NULL,  -- JSON object of strings
    hash       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    uses       INTEGER NOT NULL CHECK (uses > 0),  -- runners that may enrol with it
    used       INTEGER NOT NULL DEFAULT 0,         -- runners that have; audit names them
    ephemeral  INTEGER NOT NULL CHECK (ephemeral IN (0, 1)),  -- of the runners that enrol with it
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, owner_id) REFERENCES users (tenant_id, id),
    CHECK (used <= uses)
) STRICT;

CREATE TABLE sessions (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    title      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,  -- the number of the newest event
    epoch      INTEGER NOT NULL,  -- only grows; fences the engine's writes
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id)
) STRICT;
CREATE INDEX sessions_of_user ON sessions (tenant_id, user_id, updated_at);

CREATE TABLE turns (
    tenant_id           TEXT    NOT NULL,
    id                  TEXT    NOT NULL,
    session_id          TEXT    NOT NULL,
    client_id           TEXT,
    input_seq           INTEGER NOT NULL,  -- the event of its input; turns run in this order
    state               TEXT    NOT NULL,  -- queued, running or ended
    created_at          INTEGER NOT NULL,
    claimed_at          INTEGER,
    claimed_by          TEXT,              -- the replica
    claimed_epoch       INTEGER,
    cancel_requested_at INTEGER,
    ended_at            INTEGER,
    outcome             TEXT CHECK (outcome IN ('completed', 'failed', 'cancelled', 'interrupted')),
    reason              TEXT,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, session_id, id),
    UNIQUE (tenant_id, session_id, client_id),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id),
    CHECK ((claimed_at IS NULL) = (claimed_by IS NULL)),
    CHECK ((claimed_at IS NULL) = (claimed_epoch IS NULL)),
    CHECK ((state = 'queued') = (claimed_at IS NULL)),
    CHECK ((state = 'ended') = (ended_at IS NOT NULL)),
    CHECK ((state = 'ended') = (outcome IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX turns_running ON turns (tenant_id, session_id) WHERE state = 'running';
CREATE INDEX turns_unfinished ON turns (id) WHERE state <> 'ended';
CREATE INDEX turns_queued ON turns (tenant_id, session_id, input_seq) WHERE state <> 'ended';

CREATE TABLE events (
    tenant_id  TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    seq        INTEGER NOT NULL,  -- from 1, without gaps
    at         INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    body       TEXT    NOT NULL,  -- JSON, with its kind and version
    PRIMARY KEY (tenant_id, session_id, seq),
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id)
) STRICT;

-- The intent, never changed after its insert but for the last five columns, each set once.
CREATE TABLE operations (
    tenant_id           TEXT    NOT NULL,
    id                  TEXT    NOT NULL,
    owner               TEXT    NOT NULL,  -- a session's or a sandbox's id
    epoch               INTEGER NOT NULL,
    -- The tool call that asked; absent where a caller of the API asked.
    session_id          TEXT,
    turn_id             TEXT,
    step                INTEGER,
    ordinal             INTEGER,
    attempt             INTEGER,
    digest              TEXT    NOT NULL,
    runner_id           TEXT    NOT NULL,
    sandbox_id          TEXT    NOT NULL,
    journal_id          TEXT    NOT NULL,
    boot_id             TEXT    NOT NULL,
    effect              TEXT    NOT NULL CHECK (effect IN ('pure', 'idempotent', 'effectful')),
    deadline_at         INTEGER NOT NULL,
    placed_at           INTEGER NOT NULL,
    cancel_requested_at INTEGER,
    outcome             TEXT,  -- JSON
    outcome_at          INTEGER,
    closed_at           INTEGER,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, turn_id, step, ordinal, attempt),
    FOREIGN KEY (tenant_id, session_id, turn_id) REFERENCES turns (tenant_id, session_id, id),
    FOREIGN KEY (tenant_id, runner_id) REFERENCES runners (tenant_id, id),
    FOREIGN KEY (tenant_id, sandbox_id) REFERENCES sandboxes (tenant_id, id),
    CHECK ((outcome IS NULL) = (outcome_at IS NULL)),
    CHECK ((session_id IS NULL) = (turn_id IS NULL)),
    CHECK ((session_id IS NULL) = (step IS NULL)),
    CHECK ((session_id IS NULL) = (ordinal IS NULL)),
    CHECK ((session_id IS NULL) = (attempt IS NULL))
) STRICT;
CREATE INDEX operations_unsettled ON operations (tenant_id, runner_id, id) WHERE outcome IS NULL;

-- The tenant's own log: runners, tokens, sign-ins, people.
CREATE TABLE audit (
    tenant_id TEXT    NOT NULL REFERENCES tenants (id),
    seq       INTEGER NOT NULL,  -- from 1, without gaps
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,  -- a user's or a runner's id, or `system`
    kind      TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    detail    TEXT    NOT NULL,  -- JSON
    PRIMARY KEY (tenant_id, seq)
) STRICT;
