-- Messages that joined a turn that worked already.
ALTER TABLE turns ADD COLUMN steers BIGINT NOT NULL DEFAULT 0;        -- so many joined it
ALTER TABLE turns ADD COLUMN steers_taken BIGINT NOT NULL DEFAULT 0;  -- so many of them, the first ones, the model was sent

CREATE TABLE steers (
    tenant_id     TEXT COLLATE "C" NOT NULL,
    turn_id       TEXT COLLATE "C" NOT NULL,  -- the turn that it joined
    number        BIGINT NOT NULL,  -- among those of the turn, from 1
    session_id    TEXT COLLATE "C" NOT NULL,
    seq           BIGINT NOT NULL,  -- the event with the message
    client_id     TEXT COLLATE "C",
    credential_id TEXT COLLATE "C",
    next_turn_id  TEXT COLLATE "C" NOT NULL,  -- the turn that it starts, where its turn fails before it takes it
    bytes         BIGINT NOT NULL,  -- of its text
    PRIMARY KEY (tenant_id, turn_id, number),
    UNIQUE (tenant_id, session_id, client_id),
    -- An earlier release deletes a turn without knowing of what joined it.
    FOREIGN KEY (tenant_id, turn_id) REFERENCES turns (tenant_id, id) ON DELETE CASCADE
);
ALTER TABLE steers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON steers
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
