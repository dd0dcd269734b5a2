-- Who lets a runner drain, and since when: it is given nothing new to run, and what runs there goes on. Absent where it
-- takes work.
ALTER TABLE runners ADD COLUMN drained_by TEXT;
ALTER TABLE runners ADD COLUMN drained_at INTEGER;

-- Lists of sessions count the questions that wait for an answer.
CREATE INDEX approvals_waiting ON approvals (tenant_id, session_id) WHERE answer IS NULL;
