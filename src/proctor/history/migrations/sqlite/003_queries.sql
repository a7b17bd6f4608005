-- Runs are found by when they began, by their evaluators and configurations; baselines have names.

ALTER TABLE runs ADD COLUMN began INTEGER NOT NULL DEFAULT 0;   -- microseconds since 1970, UTC

-- The fraction is taken from the text: SQLite would round it to milliseconds.
UPDATE runs SET began = CASE
    WHEN substr(started_at, 20, 1) = '.' THEN
        CAST(strftime('%s', substr(started_at, 1, 19) || substr(started_at, 27)) AS INTEGER) * 1000000
        + CAST(substr(started_at, 21, 6) AS INTEGER)
    ELSE CAST(strftime('%s', started_at) AS INTEGER) * 1000000
END;

DROP INDEX runs_by_time;
ALTER TABLE runs DROP COLUMN started_at;
CREATE INDEX runs_by_time ON runs (began, id);
CREATE INDEX runs_by_name ON runs (name, began, id);

-- The names of a run's scores, and the names of the evaluators that gave them.
CREATE TABLE evaluators (
    name  TEXT NOT NULL,
    run   INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (name, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX evaluators_by_run ON evaluators (run);

INSERT OR IGNORE INTO evaluators
SELECT json_extract(spec.value, '$.name'), runs.id
FROM runs, json_each(CAST(runs.metadata AS TEXT), '$.evaluators') AS spec;

INSERT OR IGNORE INTO evaluators
SELECT json_extract(spec.value, '$.uses'), runs.id
FROM runs, json_each(CAST(runs.metadata AS TEXT), '$.evaluators') AS spec;

CREATE TABLE configurations (
    name  TEXT NOT NULL,
    run   INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (name, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX configurations_by_run ON configurations (run);

-- What is left out of the JSON is the default one.
INSERT OR IGNORE INTO configurations
SELECT coalesce(json_extract(configuration.value, '$.name'), 'default'), runs.id
FROM runs, json_each(
    coalesce(json_extract(CAST(runs.metadata AS TEXT), '$.configurations'), '[{}]')
) AS configuration;

CREATE TABLE baselines (
    name  TEXT PRIMARY KEY,
    run   INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX baselines_by_run ON baselines (run);
