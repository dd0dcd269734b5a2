-- Operations that a caller of the API asked for: whose they are, what the caller calls them, and the
-- request itself (JSON), so that a server which starts anew goes on with them. NULL of a tool call's.
ALTER TABLE operations ADD COLUMN user_id TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN request_key TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN request TEXT COLLATE "C";
-- Whether its output is kept here. Of one whose output is not, its runner forgets nothing before its
-- reader has all of it.
ALTER TABLE operations ADD COLUMN kept BIGINT NOT NULL DEFAULT 1 CHECK (kept IN (0, 1));
-- What was asked, for lists: a kind such as exec, and a line for people. Empty where an earlier
-- release placed it.
ALTER TABLE operations ADD COLUMN kind TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN title TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE UNIQUE INDEX operations_by_key ON operations (tenant_id, user_id, request_key)
    WHERE request_key IS NOT NULL;
CREATE INDEX operations_by_age ON operations (tenant_id, placed_at);
-- Under which a sandbox's operations are sent, as a session's are under the session's.
ALTER TABLE sandboxes ADD COLUMN epoch BIGINT NOT NULL DEFAULT 1;
