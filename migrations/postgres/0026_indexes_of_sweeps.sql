-- What is unread, and what is too old to be kept, is looked for every hour, and what a key has made whenever one ends.
CREATE INDEX operations_unread ON operations (outcome_at) WHERE kept = 0 AND closed_at IS NULL;
CREATE INDEX operations_of_callers_by_end ON operations (outcome_at) WHERE request IS NOT NULL;
CREATE INDEX credentials_made_by ON credentials (tenant_id, made_by) WHERE made_by IS NOT NULL;
CREATE INDEX join_tokens_made_by ON join_tokens (tenant_id, made_by) WHERE made_by IS NOT NULL;
