-- Messages that joined a turn that worked already.
ALTER TABLE turns ADD COLUMN steers INTEGER NOT NULL DEFAULT 0;        -- so many joined it
ALTER TABLE turns ADD COLUMN steers_taken INTEGER NOT NULL DEFAULT 0;  -- so many of them, the first ones, the model was sent

CREATE TABLE steers (
    tenant_id     TEXT    NOT NULL,
    turn_id       TEXT    NOT NULL,  -- the turn that it joined
    number        INTEGER NOT NULL,  -- among those of the turn, from 1
    session_id    TEXT    NOT NULL,
    seq           INTEGER NOT NULL,  -- the event with the message
    client_id     TEXT,
    credential_id TEXT,
    next_turn_id  TEXT    NOT NULL,  -- the turn that it starts, where its turn fails before it takes it
    bytes         INTEGER NOT NULL,  -- of its text
    PRIMARY KEY (tenant_id, turn_id, number),
    UNIQUE (tenant_id, session_id, client_id),
    -- An earlier release deletes a turn without knowing of what joined it.
    FOREIGN KEY (tenant_id, turn_id) REFERENCES turns (tenant_id, id) ON DELETE CASCADE
) STRICT;
