-- What the commands of a pool's sandbox may become, as its runner said last: strict | sudo.
ALTER TABLE sandboxes ADD COLUMN privilege TEXT NOT NULL DEFAULT 'strict';
-- Those of a pool's templates whose commands may be root there (JSON).
ALTER TABLE runners ADD COLUMN pool_sudo_templates TEXT NOT NULL DEFAULT '[]';
