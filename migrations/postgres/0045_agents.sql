-- Agents: sessions that work for a call of another session. Absent of the session of a person. The root is the person's
-- session above all of them, and the depth counts the agents above one and with it.
ALTER TABLE sessions ADD COLUMN parent_session_id TEXT COLLATE "C";
ALTER TABLE sessions ADD COLUMN root_session_id TEXT COLLATE "C";
ALTER TABLE sessions ADD COLUMN agent_depth BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN agent_name TEXT COLLATE "C";
ALTER TABLE sessions ADD COLUMN agent_role TEXT COLLATE "C";

CREATE INDEX sessions_of_parent ON sessions (tenant_id, parent_session_id) WHERE parent_session_id IS NOT NULL;
CREATE INDEX sessions_of_root ON sessions (tenant_id, root_session_id) WHERE root_session_id IS NOT NULL;

-- The call of another session for which a turn works: its end is told there. Absent of the turn of a person's message.
ALTER TABLE turns ADD COLUMN caller_session_id TEXT COLLATE "C";
ALTER TABLE turns ADD COLUMN caller_turn_id TEXT COLLATE "C";
ALTER TABLE turns ADD COLUMN caller_step BIGINT;
ALTER TABLE turns ADD COLUMN caller_ordinal BIGINT;
