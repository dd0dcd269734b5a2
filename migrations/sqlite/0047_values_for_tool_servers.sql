-- The values of people that stand for variables in the addresses and headers of tool servers.
CREATE TABLE tool_values (
    tenant_id  TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    host       TEXT    NOT NULL,  -- the host to which it may be sent, with its port where the address has one
    secret_id  TEXT    NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, user_id, name),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, secret_id) REFERENCES secrets (tenant_id, id)
) STRICT;
