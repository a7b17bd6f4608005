-- Runs, their tags and results, and outputs kept for reuse.

-- An id is never given twice: what a deleted run's process still writes must not reach another run.
CREATE TABLE runs (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id      TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    status      TEXT NOT NULL,
    started_at  TEXT NOT NULL,          -- ISO 8601, UTC
    metadata    BLOB NOT NULL,          -- RunMetadata as JSON
    metrics     BLOB                    -- {"metrics": …, "by_configuration": …} as JSON, once finished
) STRICT;

CREATE INDEX runs_by_time ON runs (started_at);

CREATE TABLE tags (
    run    INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    key    TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX tags_by_value ON tags (key, value);

-- Results in blocks of up to some hundred, in the order in which they were finished. The figures
-- of a result (where it stands in the plan, how it came out, its numbers) lie apart from the rest,
-- so that columns are read without it; `history/block.py` packs and unpacks them.
-- A reader keeps blocks at hand by their ids, so these too are never given twice.
CREATE TABLE blocks (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    run          INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    passed       INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    error        INTEGER NOT NULL,
    unscored     INTEGER NOT NULL,
    skipped      INTEGER NOT NULL,
    figures      BLOB NOT NULL,         -- one packed record for each result
    sample_ids   BLOB NOT NULL,         -- JSON list
    clusters     BLOB,                  -- JSON list, NULL where no sample names a cluster
    error_kinds  BLOB,                  -- JSON list, NULL where no trial failed
    results      BLOB NOT NULL          -- EvalResults as JSON, one a line
) STRICT;

CREATE INDEX blocks_by_run ON blocks (run, id);

CREATE TABLE outputs (
    key         TEXT PRIMARY KEY,
    created_at  TEXT NOT NULL,
    reply       BLOB NOT NULL           -- Reply as JSON
) STRICT;
