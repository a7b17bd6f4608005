-- What models cost: of the target in money, of the evaluators in tokens and money.
ALTER TABLE blocks ADD COLUMN spent BLOB;   -- JSON list, NULL where no result tells of any
