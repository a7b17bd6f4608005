-- Checksums of a block's columns, so that damage on the disk is noticed instead of read as numbers.
ALTER TABLE blocks ADD COLUMN checksums BLOB;   -- NULL for blocks written before version 4
