-- A call waits for a kind of event (awaits) of a subject: the end of an operation, a link of its runner, the end of
-- another turn, or nothing but a time. The subject has no foreign key, because its table depends on the kind.
--
-- The previous release writes operation_id and no subject, and reads operation_id. While it may still run, an
-- operation stands in both columns, and a row without a subject means its operation. A later migration copies
-- operation_id to the rows without a subject; the one after that removes the column.
CREATE TABLE turn_waits_new (
    tenant_id     TEXT    NOT NULL,
    turn_id       TEXT    NOT NULL,
    step          INTEGER NOT NULL,
    ordinal       INTEGER NOT NULL,
    operation_id  TEXT,
    awaits        TEXT    NOT NULL,  -- command, runner, turn or time
    waits_until   INTEGER NOT NULL,
    listens_until INTEGER,           -- then a command that still runs goes on in the background
    subject       TEXT,
    PRIMARY KEY (tenant_id, turn_id, step, ordinal),
    FOREIGN KEY (tenant_id, turn_id) REFERENCES turns (tenant_id, id),
    FOREIGN KEY (tenant_id, operation_id) REFERENCES operations (tenant_id, id)
) STRICT;
INSERT INTO turn_waits_new (tenant_id, turn_id, step, ordinal, operation_id, awaits, waits_until, listens_until)
    SELECT tenant_id, turn_id, step, ordinal, operation_id, awaits, waits_until, listens_until FROM turn_waits;
DROP TABLE turn_waits;
ALTER TABLE turn_waits_new RENAME TO turn_waits;
