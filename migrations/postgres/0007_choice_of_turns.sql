-- The runner on which a session works, whatever its user chooses; NULL where the user's choice counts.
-- It may have been revoked since: then the session works nowhere until another one is chosen.
ALTER TABLE sessions ADD COLUMN pinned_runner_id TEXT COLLATE "C";
-- The runner on which a turn works, read once when it is first claimed, and where that choice comes
-- from: none, session or user. NULL before, and where an earlier release claimed it.
ALTER TABLE turns ADD COLUMN chosen_by TEXT COLLATE "C";
ALTER TABLE turns ADD COLUMN chosen_runner_id TEXT COLLATE "C";
