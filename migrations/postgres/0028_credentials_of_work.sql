-- The credential under which a turn was queued, or a caller's operation was asked for: it ends with that credential.
ALTER TABLE turns ADD COLUMN credential_id TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN credential_id TEXT COLLATE "C";
-- Who ended a credential; and whether that was the person who signed out with it, which ends nothing else.
ALTER TABLE credentials ADD COLUMN revoked_by TEXT COLLATE "C";
ALTER TABLE credentials ADD COLUMN signed_out_at BIGINT;
-- Why an operation was stopped that its own user did not stop, and by whom.
ALTER TABLE operations ADD COLUMN stop_reason TEXT COLLATE "C";
ALTER TABLE operations ADD COLUMN stopped_by TEXT COLLATE "C";
