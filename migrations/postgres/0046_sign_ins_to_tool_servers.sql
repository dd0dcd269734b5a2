-- The tokens of people for tool servers of the web, and the sign-ins that servers want.
CREATE TABLE tool_grants (
    tenant_id      TEXT COLLATE "C" NOT NULL,
    user_id        TEXT COLLATE "C" NOT NULL,
    url            TEXT COLLATE "C" NOT NULL,  -- the tool server; a token goes to no other address
    secret_id      TEXT COLLATE "C",  -- the tokens; absent until the user has signed in
    issuer         TEXT COLLATE "C" NOT NULL,  -- the authorization server that gave them; may be empty
    scopes         TEXT COLLATE "C" NOT NULL,  -- those of the tokens, parted by spaces
    wanted         TEXT COLLATE "C",  -- the scopes that the server has refused a request for; absent if it wants no sign-in
    ends_at        BIGINT,  -- the end of the token that is sent; absent where it is not known
    renewing_until BIGINT,  -- another replica renews the tokens until then
    changed_at     BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, url),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets (tenant_id, id)
);
ALTER TABLE tool_grants ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON tool_grants
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
-- Sign-ins that wait for the browser of their user, each of them good for one answer.
CREATE TABLE tool_sign_ins (
    tenant_id TEXT COLLATE "C" NOT NULL,
    state     TEXT COLLATE "C" NOT NULL,  -- the digest of the word by which the answer is known
    user_id   TEXT COLLATE "C" NOT NULL,
    url       TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,  -- the tool server's name for its user
    secret_id TEXT COLLATE "C" NOT NULL,
    ends_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, state),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets (tenant_id, id)
);
ALTER TABLE tool_sign_ins ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON tool_sign_ins
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));
CREATE INDEX tool_sign_ins_of_users ON tool_sign_ins (tenant_id, user_id);
