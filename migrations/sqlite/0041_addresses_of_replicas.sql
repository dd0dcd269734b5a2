-- The address at which a replica answers other replicas. Absent where it does not.
ALTER TABLE replicas ADD COLUMN address TEXT;
