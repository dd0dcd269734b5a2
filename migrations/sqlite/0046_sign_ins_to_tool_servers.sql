-- The tokens of people for tool servers of the web, and the sign-ins that servers want.
CREATE TABLE tool_grants (
    tenant_id      TEXT    NOT NULL,
    user_id        TEXT    NOT NULL,
    url            TEXT    NOT NULL,  -- the tool server; a token goes to no other address
    secret_id      TEXT,              -- the tokens; absent until the user has signed in
    issuer         TEXT    NOT NULL,  -- the authorization server that gave them; may be empty
    scopes         TEXT    NOT NULL,  -- those of the tokens, parted by spaces
    wanted         TEXT,              -- the scopes that the server has refused a request for; absent if it wants no sign-in
    ends_at        INTEGER,           -- the end of the token that is sent; absent where it is not known
    renewing_until INTEGER,           -- another replica renews the tokens until then
    changed_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, user_id, url),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets (tenant_id, id)
) STRICT;
-- Sign-ins that wait for the browser of their user, each of them good for one answer.
CREATE TABLE tool_sign_ins (
    tenant_id TEXT    NOT NULL,
    state     TEXT    NOT NULL,  -- the digest of the word by which the answer is known
    user_id   TEXT    NOT NULL,
    url       TEXT    NOT NULL,
    name      TEXT    NOT NULL,  -- the tool server's name for its user
    secret_id TEXT    NOT NULL,
    ends_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, state),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets (tenant_id, id)
) STRICT;
CREATE INDEX tool_sign_ins_of_users ON tool_sign_ins (tenant_id, user_id);
