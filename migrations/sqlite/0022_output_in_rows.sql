-- The output of operations, where several servers share the database; here it comes with a backup of such
-- servers, and is otherwise in files. Of each stream: where it ends, and whether all of it is kept or only its
-- head and its tail.
CREATE TABLE outputs (
    tenant_id    TEXT    NOT NULL REFERENCES tenants (id),
    operation_id TEXT    NOT NULL,
    stream       TEXT    NOT NULL,  -- stdout | stderr
    ends         INTEGER NOT NULL,
    whole        INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, operation_id, stream)
) STRICT;
-- Its bytes. Frames do not overlap; what lies between two of them is not kept.
CREATE TABLE output_frames (
    tenant_id    TEXT    NOT NULL,
    operation_id TEXT    NOT NULL,
    stream       TEXT    NOT NULL,
    begins       INTEGER NOT NULL,
    ends         INTEGER NOT NULL,
    bytes        BLOB    NOT NULL,
    PRIMARY KEY (tenant_id, operation_id, stream, begins),
    FOREIGN KEY (tenant_id, operation_id, stream) REFERENCES outputs (tenant_id, operation_id, stream)
) STRICT;
