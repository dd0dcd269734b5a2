-- The words of messages and answers, for searches of a user over their own sessions.
CREATE TABLE chat_texts (
    tenant_id  TEXT    NOT NULL,
    session_id TEXT    NOT NULL,
    seq        INTEGER NOT NULL,  -- the event with the text
    user_id    TEXT    NOT NULL,  -- the session's owner
    at         INTEGER NOT NULL,
    speaker    TEXT    NOT NULL,  -- user or model
    words      TEXT    NOT NULL,  -- in lower case, a space before each
    PRIMARY KEY (tenant_id, session_id, seq),
    -- An earlier release deletes a session without knowing of its texts.
    FOREIGN KEY (tenant_id, session_id) REFERENCES sessions (tenant_id, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX chat_texts_of_user ON chat_texts (tenant_id, user_id, at);
