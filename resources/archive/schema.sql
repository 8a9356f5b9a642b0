-- The archive's tables, version 3: records as JSON, and columns derived of what is asked for. NULL: not known.
CREATE TABLE problems (
  id INTEGER PRIMARY KEY, record TEXT NOT NULL, created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  key TEXT NOT NULL UNIQUE AS (record ->> 'key')
);
-- Times are of one measurement, in which candidate and reference took turns, each with the 95 % interval of its median;
-- speedup is the median of the laps' ratios. busy: whether others used the machine meanwhile.
CREATE TABLE candidates (
  id INTEGER PRIMARY KEY, record TEXT NOT NULL, recorded TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  problem TEXT NOT NULL REFERENCES problems(key) AS (record ->> 'problem'), schedule TEXT NOT NULL AS (record ->> 'schedule'),
  stage TEXT NOT NULL AS (record ->> 'stage'), median_us REAL AS (record ->> 'median_us'),
  low_us REAL AS (record ->> 'low_us'), high_us REAL AS (record ->> 'high_us'),
  reference_us REAL AS (record ->> 'reference_us'), reference_low_us REAL AS (record ->> 'reference_low_us'),
  reference_high_us REAL AS (record ->> 'reference_high_us'), speedup REAL AS (record ->> 'speedup'),
  speedup_low REAL AS (record ->> 'speedup_low'), speedup_high REAL AS (record ->> 'speedup_high'),
  busy INTEGER AS (record ->> '$.machine.busy'),
  UNIQUE (problem, schedule)
);
CREATE INDEX candidates_by_time ON candidates (problem, stage, median_us);
CREATE TABLE runs (
  id INTEGER PRIMARY KEY, record TEXT NOT NULL, started TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  problem TEXT NOT NULL REFERENCES problems(key) AS (record ->> 'problem')
);
