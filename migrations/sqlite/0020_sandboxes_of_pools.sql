-- A runner that makes sandboxes as it is asked to: with what, from what (JSON), what is kept apart there by
-- its word, and why nothing can be made there now. NULL where it serves folders of its host.
ALTER TABLE runners ADD COLUMN pool_backend TEXT;
ALTER TABLE runners ADD COLUMN pool_templates TEXT;
ALTER TABLE runners ADD COLUMN pool_isolation TEXT;
ALTER TABLE runners ADD COLUMN pool_problem TEXT;
-- A sandbox of a pool belongs to one user, and is there whatever the runner reports with its link: its
-- generation is 0. What it is to be (JSON), whether it is wanted at all, and how its runner says that it is.
ALTER TABLE sandboxes ADD COLUMN owner_id TEXT;
ALTER TABLE sandboxes ADD COLUMN spec TEXT;
ALTER TABLE sandboxes ADD COLUMN wanted INTEGER NOT NULL DEFAULT 1;
ALTER TABLE sandboxes ADD COLUMN state TEXT NOT NULL DEFAULT 'wanted';
ALTER TABLE sandboxes ADD COLUMN state_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN state_since INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sandboxes_of_owner ON sandboxes (tenant_id, owner_id, id) WHERE owner_id IS NOT NULL;
