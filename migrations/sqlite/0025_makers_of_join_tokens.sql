-- The credential with which it was made: a key's tokens end with the key.
ALTER TABLE join_tokens ADD COLUMN made_by TEXT;
