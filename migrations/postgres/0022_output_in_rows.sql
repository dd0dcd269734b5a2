-- The output of operations, where several servers share the database. Of each stream: where it ends, and
-- whether all of it is kept or only its head and its tail.
CREATE TABLE outputs (
    tenant_id    TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    operation_id TEXT COLLATE "C" NOT NULL,
    stream       TEXT COLLATE "C" NOT NULL,  -- stdout | stderr
    ends         BIGINT NOT NULL,
    whole        BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, operation_id, stream)
);
-- Its bytes. Frames do not overlap; what lies between two of them is not kept.
CREATE TABLE output_frames (
    tenant_id    TEXT COLLATE "C" NOT NULL,
    operation_id TEXT COLLATE "C" NOT NULL,
    stream       TEXT COLLATE "C" NOT NULL,
    begins       BIGINT NOT NULL,
    ends         BIGINT NOT NULL,
    bytes        BYTEA  NOT NULL,
    PRIMARY KEY (tenant_id, operation_id, stream, begins),
    FOREIGN KEY (tenant_id, operation_id, stream) REFERENCES outputs (tenant_id, operation_id, stream)
);
-- Output comes faster than it is compressed, and is read in pieces.
ALTER TABLE output_frames ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE outputs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON outputs
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
ALTER TABLE output_frames ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON output_frames
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
