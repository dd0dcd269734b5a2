-- Until when a turn waits that has nothing else to do, and has no worker meanwhile. Its state stays
-- `running`, which is what an earlier release takes it for. NULL while a worker has the turn.
ALTER TABLE turns ADD COLUMN waits_until BIGINT;
CREATE INDEX turns_waiting ON turns (waits_until) WHERE waits_until IS NOT NULL;

-- What such a turn waits for, one row for each of its calls. They go once a worker has it again.
CREATE TABLE turn_waits (
    tenant_id     TEXT COLLATE "C" NOT NULL,
    turn_id       TEXT COLLATE "C" NOT NULL,
    step          BIGINT NOT NULL,
    ordinal       BIGINT NOT NULL,
    operation_id  TEXT COLLATE "C" NOT NULL,
    awaits        TEXT COLLATE "C" NOT NULL,  -- command, or runner: then for a link of its runner as well
    waits_until   BIGINT NOT NULL,
    listens_until BIGINT,                     -- then a command that still runs goes on in the background
    PRIMARY KEY (tenant_id, turn_id, step, ordinal),
    FOREIGN KEY (tenant_id, turn_id) REFERENCES turns (tenant_id, id),
    FOREIGN KEY (tenant_id, operation_id) REFERENCES operations (tenant_id, id)
);
ALTER TABLE turn_waits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON turn_waits
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
