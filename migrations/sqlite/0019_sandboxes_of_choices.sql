-- The place of a sandbox in what its runner reports: the first, 0, is meant where a choice names the runner
-- alone. And why nothing can happen there; empty where it can.
ALTER TABLE sandboxes ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN problem TEXT NOT NULL DEFAULT '';
-- The sandbox that was chosen with the runner; NULL for its first one. One of another runner counts as NULL:
-- an earlier release changes the runner alone.
ALTER TABLE users ADD COLUMN active_sandbox_id TEXT;
ALTER TABLE sessions ADD COLUMN pinned_sandbox_id TEXT;
ALTER TABLE turns ADD COLUMN chosen_sandbox_id TEXT;
