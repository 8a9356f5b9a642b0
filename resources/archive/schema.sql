-- The archive's tables, version 2: records as JSON, and columns derived of what is asked for.
CREATE TABLE problems (
  id INTEGER PRIMARY KEY, record TEXT NOT NULL, created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  key TEXT NOT NULL UNIQUE AS (record ->> 'key')
);
CREATE TABLE candidates (
  id INTEGER PRIMARY KEY, record TEXT NOT NULL, recorded TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  problem TEXT NOT NULL REFERENCES problems(key) AS (record ->> 'problem'), schedule TEXT NOT NULL AS (record ->> 'schedule'),
  stage TEXT NOT NULL AS (record ->> 'stage'), median_us REAL NOT NULL AS (record ->> 'median_us'),
  UNIQUE (problem, schedule)
);
CREATE INDEX candidates_by_time ON candidates (problem, stage, median_us);
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, record TEXT NOT NULL, started TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  problem TEXT NOT NULL REFERENCES problems(key) AS (record ->> 'problem')
);
