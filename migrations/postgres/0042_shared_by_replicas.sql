-- The SHA-256 of the key by which runners know a replica: all replicas of a database have the same key. Absent of a
-- replica of an earlier release.
ALTER TABLE replicas ADD COLUMN identity TEXT COLLATE "C";

-- Random bytes of a replica. The keys of its challenges are made of them and of its identity key, so another replica
-- accepts its challenges. They are gone with the row.
ALTER TABLE replicas ADD COLUMN challenge_salt TEXT COLLATE "C";

-- Work that one replica does for all. Another one takes it over once the row of that replica is gone.
CREATE TABLE duties (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    replica_id TEXT COLLATE "C" NOT NULL
);

-- The moment from which on a user may do all that a minute allows of a kind, if nothing more comes before. Replicas
-- count together here.
CREATE TABLE rates (
    tenant_id TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    user_id   TEXT COLLATE "C" NOT NULL,
    kind      TEXT COLLATE "C" NOT NULL,
    free_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, kind)
);
ALTER TABLE rates ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON rates
    USING ((SELECT current_setting('gantry.tenant', true)) IN (tenant_id, '*'));

-- Links that are to end because another replica revoked or locked their runners.
CREATE INDEX runners_barred_but_linked ON runners (replica_id)
    WHERE replica_id IS NOT NULL AND (revoked_at IS NOT NULL OR locked_at IS NOT NULL);

-- The version of the link protocol for which the runner's last link was refused. Absent once it is let in.
ALTER TABLE runners ADD COLUMN refused_version BIGINT;
