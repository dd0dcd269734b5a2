-- The join token with which it was enrolled: the same request again gets the same answer.
ALTER TABLE runners ADD COLUMN join_token_id TEXT;
