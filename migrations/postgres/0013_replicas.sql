-- The server processes that live: a row is renewed again and again, and a turn or a link of a replica
-- without one is free to be taken.
CREATE TABLE replicas (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    place      TEXT COLLATE "C" NOT NULL,  -- host and folder: one process at a time
    renewals   BIGINT NOT NULL DEFAULT 0,
    started_at BIGINT NOT NULL
);
