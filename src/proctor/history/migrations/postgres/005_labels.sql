-- What people say about outputs, as in the step for SQLite.
CREATE TABLE labels (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    label_id   TEXT COLLATE "C" NOT NULL UNIQUE,
    run        BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    evaluator  TEXT COLLATE "C" NOT NULL,
    label      BYTEA NOT NULL
);

CREATE INDEX labels_by_run ON labels (run, id);
CREATE INDEX labels_by_evaluator ON labels (evaluator, id);
