-- Checksums of a block's columns, as in the step for SQLite.
ALTER TABLE blocks ADD COLUMN checksums BYTEA;
