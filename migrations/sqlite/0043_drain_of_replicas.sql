-- The version of a replica's program. Absent of a replica of an earlier release.
ALTER TABLE replicas ADD COLUMN version TEXT;

-- Since when the operator lets a replica drain: it takes no new links and claims no turns. Absent where it works.
ALTER TABLE replicas ADD COLUMN draining_since INTEGER;
