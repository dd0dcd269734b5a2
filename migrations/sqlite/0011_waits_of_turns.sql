-- Until when a turn waits that has nothing else to do, and has no worker meanwhile. Its state stays
-- `running`, which is what an earlier release takes it for. NULL while a worker has the turn.
ALTER TABLE turns ADD COLUMN waits_until INTEGER;
CREATE INDEX turns_waiting ON turns (waits_until) WHERE waits_until IS NOT NULL;

-- What such a turn waits for, one row for each of its calls. They go once a worker has it again.
CREATE TABLE turn_waits (
    tenant_id     TEXT    NOT NULL,
    turn_id       TEXT    NOT NULL,
    step          INTEGER NOT NULL,
    ordinal       INTEGER NOT NULL,
    operation_id  TEXT    NOT NULL,
    awaits        TEXT    NOT NULL,  -- command, or runner: then for a link of its runner as well
    waits_until   INTEGER NOT NULL,
    listens_until INTEGER,           -- then a command that still runs goes on in the background
    PRIMARY KEY (tenant_id, turn_id, step, ordinal),
    FOREIGN KEY (tenant_id, turn_id) REFERENCES turns (tenant_id, id),
    FOREIGN KEY (tenant_id, operation_id) REFERENCES operations (tenant_id, id)
) STRICT;
