-- The traces that turns and operations belong to: the span that each is part of, as a traceparent. Absent where
-- no traces are collected, and in what an earlier release wrote.
ALTER TABLE turns ADD COLUMN traceparent TEXT;
ALTER TABLE operations ADD COLUMN traceparent TEXT;
