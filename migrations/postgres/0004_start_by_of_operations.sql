-- When an operation must have started, on the boot-time clock of the server's host in this boot, in
-- microseconds: no wall clock moves it. NULL where an earlier release placed it; that does not start
-- any more, as in another boot.
ALTER TABLE operations ADD COLUMN start_by_boot TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN start_by_us BIGINT;
