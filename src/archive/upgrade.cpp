// From an older version of the archive to this one.
#include <fmt/format.h>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "archive/record.h"
#include "archive/versions.h"
#include "base/error.h"
#include "base/rendered.h"

namespace warploom::archive {
using nlohmann::json;

Status Archive::upgrade(int64_t from) const {
  return in_transaction([&]() -> Status {
    WARPLOOM_TRY(const int64_t now, number("PRAGMA user_version"));
    const bool done_by_another = now != from;
    return done_by_another ? ok() : move_to_new_tables(from);
  });
}

Status Archive::move_to_new_tables(int64_t from) const {
  WARPLOOM_CHECK(execute("DROP INDEX candidates_by_time"));
  for (const char* table : kTables)
    WARPLOOM_CHECK(execute(fmt::format("ALTER TABLE {0} RENAME TO old_{0}", table)));
  WARPLOOM_CHECK(execute(resource("archive/schema.sql")));
  for (const char* table : kTables)
    WARPLOOM_CHECK(upgrade_table(table, from));
  for (const char* table : {"candidates", "runs", "problems"})  // who refers to others first
    WARPLOOM_CHECK(execute(fmt::format("DROP TABLE old_{}", table)));
  return execute(fmt::format("PRAGMA user_version={}", kVersion));
}

// The records of a table, some hundreds at a time: a record may have kilobytes, a table 100,000.
Status Archive::upgrade_table(const std::string& table, int64_t from) const {
  static const std::map<std::string, std::string> kWhen = {
      {"problems", "created"}, {"candidates", "recorded"}, {"runs", "started"}};
  const std::string& when = kWhen.at(table);
  const std::string next = fmt::format(
      "SELECT json_array(id, {}, record) FROM old_{} WHERE id > ? ORDER BY id LIMIT 500", when,
      table);
  const std::string insert =
      fmt::format("INSERT INTO {} (id, {}, record) VALUES (?, ?, ?)", table, when);
  int64_t last = -1;
  while (true) {
    WARPLOOM_TRY(const std::vector<std::string> rows, run(next, {std::to_string(last)}));
    if (rows.empty()) return ok();
    for (const std::string& text : rows) {
      const json row = json::parse(text, nullptr, false);
      WARPLOOM_CHECK(upgrade_row(table, insert, row, from));
      last = row[0].get<int64_t>();
    }
  }
}

// One row of an old table: its id, when it was made, its record.
Status Archive::upgrade_row(const std::string& table, const std::string& insert, const json& row,
                            int64_t from) const {
  json record;
  if (row.is_array()) record = json::parse(row[2].get<std::string>(), nullptr, false);
  if (!record.is_object()) return damaged(fmt::format("a record of {} that is none", table));
  record.erase(kSeal);
  for (const Step& step : steps())
    if (step.from >= from) record = step.upgraded(table, std::move(record));
  const std::string id = std::to_string(row[0].get<int64_t>());
  const std::string text = sealed_text(std::move(record));
  const auto put = run(insert, {id, row[1], text});
  if (put) return ok();
  // The tables take every whole record: this one lacks a field, or names a problem that is not
  // there.
  const bool untaken = put.error().code == ErrorCode::kInternal;
  return untaken ? damaged(put.error().found) : fail(put.error());
}
}  // namespace warploom::archive
