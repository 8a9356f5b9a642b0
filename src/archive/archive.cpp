#include "archive/archive.h"
#include <fmt/format.h>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include "archive/record.h"
#include "base/error.h"

namespace warploom::archive {
using nlohmann::json;

namespace {
// SQL of this moment, as CURRENT_TIMESTAMP has it but to the millisecond.
const std::string kNow = "strftime('%Y-%m-%d %H:%M:%f', 'now')";
}  // namespace

template <class Record>
Result<std::vector<Record>> Archive::select(const std::string& rest,
                                            const std::vector<std::string>& values) const {
  WARPLOOM_TRY(const std::vector<std::string> rows, run("SELECT record FROM " + rest, values));
  try {
    std::vector<Record> out;
    for (const std::string& row : rows) {
      out.push_back(json::parse(row).get<Record>());
    }
    return out;
  } catch (const json::exception& error) {
    return damaged(error.what());
  }
}

Status Archive::add_problem(const Problem& problem) {
  WARPLOOM_CHECK(run("INSERT INTO problems (record) VALUES (?) ON CONFLICT (key) DO NOTHING",
                     {sealed_text(problem)}));
  return ok();
}

Status Archive::record(const Candidate& candidate) {
  // Screening again what was promoted says less than is known, and would take the best away from a
  // search that is killed just then.
  static const std::string kSql =
      "INSERT INTO candidates (record, recorded) VALUES (?, " + kNow +
      ") ON CONFLICT (problem, schedule) DO UPDATE SET record=excluded.record "
      "WHERE NOT (stage='promoted' AND excluded.stage='screened' AND "
      "record ->> 'source_hash' = excluded.record ->> 'source_hash')";
  WARPLOOM_CHECK(run(kSql, {sealed_text(candidate)}));
  return ok();
}

Result<int64_t> Archive::begin_run(const Run& began) {
  static const std::string kSql =
      "INSERT INTO runs (record, started) VALUES (?, " + kNow + ") RETURNING id";
  WARPLOOM_TRY(const auto ids, run(kSql, {sealed_text(began)}));
  return std::stoll(ids.at(0));
}

Status Archive::finish_run(int64_t id, const Run& ended) {
  const std::vector<std::string> values = {sealed_text(ended), std::to_string(id)};
  WARPLOOM_CHECK(run("UPDATE runs SET record=? WHERE id=?", values));
  return ok();
}

Result<std::vector<Problem>> Archive::problems() {
  return select<Problem>("problems ORDER BY id");
}

Result<std::vector<Candidate>> Archive::candidates(const std::string& problem) {
  return select<Candidate>("candidates WHERE problem=? ORDER BY id", {problem});
}

Result<std::optional<Candidate>> Archive::best(const std::string& problem) {
  WARPLOOM_TRY(const auto rows,
               select<Candidate>("candidates WHERE problem=? AND stage<>'refused' AND median_us>0 "
                                 "ORDER BY stage='promoted' DESC, median_us LIMIT 1",
                                 {problem}));
  return rows.empty() ? std::nullopt : std::optional(rows[0]);
}

Result<std::vector<Run>> Archive::runs(const std::string& problem) {
  return select<Run>("runs WHERE problem=? ORDER BY id", {problem});
}

Result<std::vector<double>> Archive::seconds(const char* column, const char* table,
                                             const std::string& problem) const {
  // Julian days begin 2440587.5 days before 1970.
  const std::string sql =
      fmt::format("SELECT (julianday({}) - 2440587.5) * 86400 FROM {} WHERE problem=? ORDER BY id",
                  column, table);
  WARPLOOM_TRY(const auto rows, run(sql, {problem}));
  std::vector<double> out;
  for (const std::string& row : rows) out.push_back(std::strtod(row.c_str(), nullptr));
  return out;
}

Result<Moments> Archive::moments(const std::string& problem) {
  Moments out;
  WARPLOOM_TRY(out.candidates, seconds("recorded", "candidates", problem));
  WARPLOOM_TRY(out.runs, seconds("started", "runs", problem));
  return out;
}
}  // namespace warploom::archive
