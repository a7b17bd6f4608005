-- What people say about outputs. A label is never changed: a later one of the same annotator replaces it.
CREATE TABLE labels (
    id         INTEGER PRIMARY KEY,
    label_id   TEXT NOT NULL UNIQUE,
    run        INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    evaluator  TEXT NOT NULL,
    label      BLOB NOT NULL
) STRICT;

CREATE INDEX labels_by_run ON labels (run, id);
CREATE INDEX labels_by_evaluator ON labels (evaluator, id);
