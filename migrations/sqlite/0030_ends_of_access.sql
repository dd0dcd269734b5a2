-- When the user of an operation that ran there lost the right to use its runner: it has to stop, and what it writes from
-- then on is not for that user.
ALTER TABLE operations ADD COLUMN access_ended_at INTEGER;
