-- A page of a user's sessions is read in its order: by last use, then by id. Without the id all of them were sorted for it.
DROP INDEX sessions_of_user;
CREATE INDEX sessions_of_user ON sessions (tenant_id, user_id, updated_at, id);
