-- The credential with which this one was made; NULL where a sign-in code made it, or an earlier
-- release. What a key made ends with that key.
ALTER TABLE credentials ADD COLUMN made_by TEXT COLLATE "C";
