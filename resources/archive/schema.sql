-- The archive's tables, version 1.
CREATE TABLE problems (
  key TEXT PRIMARY KEY, name TEXT NOT NULL, track TEXT NOT NULL, target TEXT NOT NULL, device TEXT NOT NULL,
  text TEXT NOT NULL, created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE candidates (
  id INTEGER PRIMARY KEY, problem TEXT NOT NULL REFERENCES problems(key), schedule TEXT NOT NULL, fields TEXT NOT NULL,
  family TEXT NOT NULL, parents TEXT NOT NULL, stage TEXT NOT NULL, error_code TEXT NOT NULL,
  median_us REAL NOT NULL, low_us REAL NOT NULL, high_us REAL NOT NULL, reference_us REAL NOT NULL,
  error REAL NOT NULL, max_error REAL NOT NULL, seed TEXT NOT NULL, source_hash TEXT NOT NULL, environment TEXT NOT NULL,
  verdict TEXT NOT NULL, recorded TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  UNIQUE (problem, schedule)
);
CREATE INDEX candidates_by_time ON candidates (problem, stage, median_us);
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, problem TEXT NOT NULL REFERENCES problems(key), seed TEXT NOT NULL, reference TEXT NOT NULL,
  reference_us REAL NOT NULL, environment TEXT NOT NULL, status TEXT NOT NULL, candidates INTEGER NOT NULL,
  seconds REAL NOT NULL, best TEXT NOT NULL, started TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
