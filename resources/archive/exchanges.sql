-- What was asked of language models and what they answered, a record each. A table of its own, made where it is missing:
-- programs that know nothing of it go on as before.
CREATE TABLE IF NOT EXISTS exchanges (
  id INTEGER PRIMARY KEY, record TEXT NOT NULL, asked TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  problem TEXT NOT NULL AS (record ->> 'problem')
);
CREATE INDEX IF NOT EXISTS exchanges_by_problem ON exchanges (problem);
