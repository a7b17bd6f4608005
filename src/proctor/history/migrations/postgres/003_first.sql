-- The whole schema, as it stands in version 3: before it there were no histories on PostgreSQL.
-- What the tables hold is told in the steps for SQLite. Names compare byte by byte, as there.

CREATE TABLE runs (
    id        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id    TEXT COLLATE "C" NOT NULL UNIQUE,
    name      TEXT COLLATE "C" NOT NULL,
    status    TEXT NOT NULL,
    metadata  BYTEA NOT NULL,
    metrics   BYTEA,
    began     BIGINT NOT NULL
);

CREATE INDEX runs_by_time ON runs (began, id);
CREATE INDEX runs_by_name ON runs (name, began, id);

CREATE TABLE tags (
    run    BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    key    TEXT COLLATE "C" NOT NULL,
    value  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run, key)
);

-- Values may be longer than an index takes, so it holds their beginnings (`finding.py`).
CREATE INDEX tags_by_value ON tags (key, substr(value, 1, 200), run);

CREATE TABLE evaluators (
    name  TEXT COLLATE "C" NOT NULL,
    run   BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (name, run)
);

CREATE INDEX evaluators_by_run ON evaluators (run);

CREATE TABLE configurations (
    name  TEXT COLLATE "C" NOT NULL,
    run   BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (name, run)
);

CREATE INDEX configurations_by_run ON configurations (run);

CREATE TABLE baselines (
    name  TEXT COLLATE "C" PRIMARY KEY,
    run   BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE
);

CREATE INDEX baselines_by_run ON baselines (run);

CREATE TABLE blocks (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run          BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    passed       INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    error        INTEGER NOT NULL,
    unscored     INTEGER NOT NULL,
    skipped      INTEGER NOT NULL,
    figures      BYTEA NOT NULL,
    sample_ids   BYTEA NOT NULL,
    clusters     BYTEA,
    error_kinds  BYTEA,
    spent        BYTEA,
    results      BYTEA NOT NULL
);

-- Compressed already: the server need not try.
ALTER TABLE blocks ALTER COLUMN results SET STORAGE EXTERNAL;

CREATE INDEX blocks_by_run ON blocks (run, id);

CREATE TABLE outputs (
    key         TEXT COLLATE "C" PRIMARY KEY,
    created_at  TEXT NOT NULL,
    reply       BYTEA NOT NULL
);
