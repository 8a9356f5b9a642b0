#include "archive/archive.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "archive/record.h"
#include "base/error.h"

namespace warploom::archive {
using nlohmann::json;

namespace {
// SQL of this moment, as CURRENT_TIMESTAMP has it but to the millisecond.
const std::string kNow = "strftime('%Y-%m-%d %H:%M:%f', 'now')";

// Refusals that were found in outputs: of the same kernels they hold whatever another run, on other
// inputs, did not see. Others are the machine's as well (a hang, a clock), or time's.
constexpr std::array kWrong = {ErrorCode::kCandidateWrong, ErrorCode::kCandidateNonFinite,
                               ErrorCode::kCandidateUnwritten, ErrorCode::kCandidateWroteInput,
                               ErrorCode::kCandidateUnstable};

// SQL: whether the record of a schedule stands, and the new one of it, `excluded`, is dropped
// (Archive::record says the rule).
std::string what_stands() {
  std::vector<std::string> codes;
  for (const ErrorCode code : kWrong)
    codes.push_back(fmt::format("'{}'", code_text(code)));
  const auto is_wrong = [&](const char* row) {
    return fmt::format("coalesce({} ->> 'error_code', '') IN ({})", row, fmt::join(codes, ", "));
  };
  const auto is_same = [](const char* key) {
    return fmt::format("record ->> '{0}' = excluded.record ->> '{0}'", key);
  };
  const std::string text = is_same("source_hash");
  const std::string all = text + " AND " + is_same("environment");
  const std::string stands_alike = fmt::format(
      "{} AND excluded.stage <> 'refused' AND ({} OR (stage = excluded.stage AND "
      "median_us < excluded.median_us))",
      all, is_wrong("record"));
  const std::string says_more =
      fmt::format("{} AND stage = 'promoted' AND excluded.stage = 'screened'", text);
  const std::string is_newer = fmt::format(
      "coalesce(record ->> 'built', 0) > coalesce(excluded.record ->> 'built', 0) "
      "AND ({} OR ({} AND NOT ({})))",
      is_wrong("record"), is_wrong("excluded.record"), text);
  return fmt::format("({}) OR ({}) OR ({})", stands_alike, says_more, is_newer);
}
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
  WARPLOOM_CHECK(
      run("INSERT INTO problems (record) VALUES (?) ON CONFLICT (key) DO UPDATE "
          "SET record=excluded.record WHERE record ->> 'features' IS NULL "
          "AND excluded.record ->> 'features' IS NOT NULL",
          {sealed_text(problem)}));
  return ok();
}

Status Archive::record(const Candidate& candidate) {
  static const std::string kSql = fmt::format(
      "INSERT INTO candidates (record, recorded) VALUES (?, {}) "
      "ON CONFLICT (problem, schedule) DO UPDATE SET record=excluded.record "
      "WHERE NOT coalesce({}, FALSE)",
      kNow, what_stands());
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

Result<std::vector<Candidate>> Archive::fastest(const std::string& problem, size_t most) {
  return select<Candidate>(
      "candidates WHERE problem=? AND stage<>'refused' AND median_us>0 "
      "ORDER BY median_us LIMIT " +
          std::to_string(most),
      {problem});
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
  for (const std::string& row : rows)
    out.push_back(std::strtod(row.c_str(), nullptr));
  return out;
}

Status Archive::add_exchange(const std::string& problem, json exchange) {
  exchange["problem"] = problem;
  const std::string sql = "INSERT INTO exchanges (record, asked) VALUES (?, " + kNow + ")";
  WARPLOOM_CHECK(run(sql, {sealed_text(std::move(exchange))}));
  return ok();
}

Result<std::vector<json>> Archive::exchanges(const std::string& problem) {
  return select<json>("exchanges WHERE problem=? ORDER BY id", {problem});
}

Status Archive::add_foreign(const std::vector<Foreign<json>>& records) {
  static const std::string kSql =
      "INSERT INTO foreign_records (record, imported) VALUES (?, " + kNow +
      ") ON CONFLICT (kind, problem, name) DO UPDATE SET record=excluded.record";
  return in_transaction([&]() -> Status {
    for (const Foreign<json>& one : records) {
      json record = one.record;
      record["from"] = one.from;
      WARPLOOM_CHECK(run(kSql, {sealed_text(std::move(record))}));
    }
    return ok();
  });
}

template <class Record>
Result<std::vector<Foreign<Record>>> Archive::select_foreign(const std::string& kind,
                                                             const std::string& problem) const {
  const std::string rest = "foreign_records WHERE kind=?";
  const std::string ordered = " ORDER BY id";
  WARPLOOM_TRY(const auto rows,
               problem.empty() ? select<json>(rest + ordered, {kind})
                               : select<json>(rest + " AND problem=?" + ordered, {kind, problem}));
  try {
    std::vector<Foreign<Record>> out;
    for (const json& row : rows)
      out.push_back({row.at("from").get<std::string>(), row.at("record").get<Record>()});
    return out;
  } catch (const json::exception& error) {
    return damaged(error.what());
  }
}

Result<std::vector<Foreign<Problem>>> Archive::foreign_problems() {
  return select_foreign<Problem>("problem", "");
}

Result<std::vector<Foreign<Candidate>>> Archive::foreign_candidates(const std::string& problem) {
  return select_foreign<Candidate>("candidate", problem);
}

Result<std::vector<Foreign<Run>>> Archive::foreign_runs(const std::string& problem) {
  return select_foreign<Run>("run", problem);
}

Result<Moments> Archive::moments(const std::string& problem) {
  Moments out;
  WARPLOOM_TRY(out.candidates, seconds("recorded", "candidates", problem));
  WARPLOOM_TRY(out.runs, seconds("started", "runs", problem));
  return out;
}
}  // namespace warploom::archive
