-- How often the worker of a turn failed since the turn last went on, and the number of the newest
-- event that the turn had written then: a failure behind another event is counted from 1.
ALTER TABLE turns ADD COLUMN failures BIGINT NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN failed_after BIGINT;
