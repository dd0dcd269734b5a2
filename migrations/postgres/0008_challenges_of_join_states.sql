-- The challenge with which a runner's join state was renewed last: the server process that made it, and
-- its number there. A request under an older challenge is late, and says nothing about copies. NULL
-- where nothing was renewed since this was added.
ALTER TABLE runners ADD COLUMN renewed_by_replica TEXT COLLATE "C";
ALTER TABLE runners ADD COLUMN renewed_by_number BIGINT;
-- When the runner showed a join state of this server's that the database did not know: the database is an
-- older copy. NULL where it never did.
ALTER TABLE runners ADD COLUMN went_back_at BIGINT;
-- 1 from then on until the runner's next link is claimed, with which everything open on it that it does
-- not remember is lost.
ALTER TABLE runners ADD COLUMN loses_unlisted BIGINT NOT NULL DEFAULT 0;
-- An enrolment that comes twice has the same key.
CREATE INDEX runners_by_key ON runners (tenant_id, public_key);
