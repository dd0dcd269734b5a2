-- A call waits for a kind of event (awaits) of a subject: the end of an operation, a link of its runner, the end of
-- another turn, or nothing but a time. The subject has no foreign key, because its table depends on the kind.
--
-- The previous release writes operation_id and no subject, and reads operation_id. While it may still run, an
-- operation stands in both columns, and a row without a subject means its operation. A later migration copies
-- operation_id to the rows without a subject; the one after that removes the column.
ALTER TABLE turn_waits ALTER COLUMN operation_id DROP NOT NULL;
ALTER TABLE turn_waits ADD COLUMN subject TEXT COLLATE "C";
