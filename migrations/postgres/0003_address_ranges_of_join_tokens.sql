-- From which addresses a runner may enrol with a token, such as 10.0.0.0/8; NULL from any.
ALTER TABLE join_tokens ADD COLUMN address_range TEXT COLLATE "C";
