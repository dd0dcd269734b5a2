-- The words of messages and answers, for searches of a user over their own sessions.
CREATE TABLE chat_texts (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    seq        BIGINT NOT NULL,  -- the event with the text
    user_id    TEXT COLLATE "C" NOT NULL,  -- the session's owner
    at         BIGINT NOT NULL,
    speaker    TEXT COLLATE "C" NOT NULL,  -- user or model
    words      TEXT COLLATE "C" NOT NULL,  -- in lower case, a space before each
    PRIMARY KEY (tenant_id, session_id, seq),
    -- An earlier release deletes a session without knowing of its texts.
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX chat_texts_of_user ON chat_texts (tenant_id, user_id, at);
ALTER TABLE chat_texts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON chat_texts
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
