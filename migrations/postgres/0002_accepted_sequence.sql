-- Operations that a runner has accepted by its own word over its newest link: a journal that says
-- less in the same boot later has gone back, although it was not stored yet when the link began.
ALTER TABLE runners ADD COLUMN accepted_sequence BIGINT NOT NULL DEFAULT 0;
