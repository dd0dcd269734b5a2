-- The server processes that live: a row is renewed again and again, and a turn or a link of a replica
-- without one is free to be taken.
CREATE TABLE replicas (
    id         TEXT    NOT NULL PRIMARY KEY,
    place      TEXT    NOT NULL,  -- host and folder: one process at a time
    renewals   INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER NOT NULL
) STRICT;
