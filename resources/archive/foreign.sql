-- What came from other archives (src/archive/travel.h), apart from what was judged here: a record each, with where it came
-- from. A table of its own, made where it is missing: programs that know nothing of it go on as before.
CREATE TABLE IF NOT EXISTS foreign_records (
  id INTEGER PRIMARY KEY, record TEXT NOT NULL, imported TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  kind TEXT NOT NULL AS (record ->> 'kind'), problem TEXT NOT NULL AS (record ->> 'problem'),
  name TEXT NOT NULL AS (record ->> 'name'),
  UNIQUE (kind, problem, name)
);
