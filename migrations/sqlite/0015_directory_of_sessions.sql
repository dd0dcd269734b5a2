-- Where a session's commands start and its paths begin, relative to the root of the sandbox; empty for the
-- root itself.
ALTER TABLE sessions ADD COLUMN directory TEXT NOT NULL DEFAULT '';
