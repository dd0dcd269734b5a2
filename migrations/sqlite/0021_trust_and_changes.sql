-- Who has granted that what a runner reports of its isolation counts, and when. What the tenant demands is one
-- of its settings (`isolation`); tenants.demanded_isolation is not read any more.
ALTER TABLE runners ADD COLUMN trusted_by TEXT;
ALTER TABLE runners ADD COLUMN trusted_at INTEGER;
-- What a sandbox of a pool went through lately, as its runner told it (JSON, the newest last).
ALTER TABLE sandboxes ADD COLUMN changes TEXT NOT NULL DEFAULT '[]';
