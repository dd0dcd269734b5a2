-- For how long a runner has been silent since its newest link ended, in microseconds: time in which
-- a server was there to hear it, on the boot-time clock of the server's host. It counts for the link of
-- this generation alone; NULL where nothing was counted yet.
ALTER TABLE runners ADD COLUMN silent_us BIGINT;
ALTER TABLE runners ADD COLUMN silent_generation BIGINT;
