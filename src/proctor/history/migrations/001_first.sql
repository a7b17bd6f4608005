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

-- id is run * 2^32 + position, so that one run's results lie together, in the order of its plan.
-- marks holds one letter per evaluator (p passed, f failed, e evaluator error, s skipped,
-- x the target failed); numbers one little-endian double per evaluator, NaN where there is none.
CREATE TABLE results (
    id             INTEGER PRIMARY KEY,
    run            INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    sample_id      TEXT NOT NULL,
    configuration  INTEGER NOT NULL,    -- index into the run's configurations
    epoch          INTEGER NOT NULL,
    cluster        TEXT,
    outcome        INTEGER NOT NULL,    -- index into OUTCOMES
    value          REAL,                -- the combined score
    marks          TEXT NOT NULL,
    numbers        BLOB NOT NULL,
    error_kind     TEXT,
    latency_ms     REAL NOT NULL,
    tokens         INTEGER,
    payload        BLOB NOT NULL,       -- EvalResult as JSON
    UNIQUE (run, sample_id, configuration, epoch)
) STRICT;

CREATE INDEX results_not_passed ON results (run, outcome, value) WHERE outcome <> 0;

CREATE TABLE outputs (
    key         TEXT PRIMARY KEY,
    created_at  TEXT NOT NULL,
    reply       BLOB NOT NULL           -- Reply as JSON
) STRICT;
