#include "archive/archive.h"
#include "base/hash.h"
namespace warploom::archive {
using nlohmann::json;
namespace {
// The end of a record: a hash of all before it, since SQLite notices no bit of a text that a disk has changed.
std::string ending(std::string_view body) { return fmt::format(R"(,"~":"{:016x}"}})", hash64(body)); }

// A record as its table keeps it. JSON has no infinity, and texts from compilers may hold bytes that are no UTF-8; neither must
// stop a record.
std::string text_of(json record) {
  for (json& field : record)
    if (field.is_number_float() && !std::isfinite(field.get<double>())) field = std::numeric_limits<double>::max();
  std::string text = record.dump(-1, ' ', false, json::error_handler_t::replace);
  text.pop_back();
  return text + ending(text);
}
}  // namespace
Status Archive::check_records() const {
  static const std::size_t size = ending("").size();
  for (const char* table : {"problems", "candidates", "runs"}) {
    WARPLOOM_TRY(const std::vector<std::string> rows, run(fmt::format("SELECT record FROM {}", table)));
    for (const std::string& row : rows) {
      const std::size_t body = row.size() - std::min(size, row.size());
      if (row.compare(body, 4, R"(,"~")") == 0 && row.substr(body) != ending(row.substr(0, body)))
        return damaged(fmt::format("a record of {} that has changed since it was written", table));
    }
  }
  return ok();
}

template <class Record>
Result<std::vector<Record>> Archive::select(const std::string& rest, const std::vector<std::string>& values) const {
  WARPLOOM_TRY(const std::vector<std::string> rows, run("SELECT record FROM " + rest, values));
  try {
    std::vector<Record> out;
    for (const std::string& row : rows) {
      json record = {{"screened_us", 0}, {"known", 0}, {"known_best", ""}};  // which older records lack
      record.update(json::parse(row));
      out.push_back(record.get<Record>());
    }
    return out;
  } catch (const json::exception& error) { return damaged(error.what()); }
}

Status Archive::add_problem(const Problem& problem) {
  WARPLOOM_CHECK(run("INSERT INTO problems (record) VALUES (?) ON CONFLICT (key) DO NOTHING", {text_of(problem)}));
  return ok();
}

Status Archive::record(const Candidate& candidate) {
  // Screening again what was promoted says less than is known, and would take the best away from a search that is killed just then.
  WARPLOOM_CHECK(
      run("INSERT INTO candidates (record) VALUES (?) ON CONFLICT (problem, schedule) DO UPDATE "
          "SET record=excluded.record, recorded=CURRENT_TIMESTAMP WHERE NOT (stage='promoted' AND excluded.stage='screened' AND "
          "record ->> 'source_hash' = excluded.record ->> 'source_hash')",
          {text_of(candidate)}));
  return ok();
}

Result<std::int64_t> Archive::begin_run(const Run& began) {
  WARPLOOM_TRY(const auto ids, run("INSERT INTO runs (record) VALUES (?) RETURNING id", {text_of(began)}));
  return std::stoll(ids.at(0));
}

Status Archive::finish_run(std::int64_t id, const Run& ended) {
  WARPLOOM_CHECK(run("UPDATE runs SET record=? WHERE id=?", {text_of(ended), std::to_string(id)}));
  return ok();
}

Result<std::vector<Problem>> Archive::problems() { return select<Problem>("problems ORDER BY id"); }

Result<std::vector<Candidate>> Archive::candidates(const std::string& problem) {
  return select<Candidate>("candidates WHERE problem=? ORDER BY id", {problem});
}

Result<std::optional<Candidate>> Archive::best(const std::string& problem) {
  WARPLOOM_TRY(const auto rows, select<Candidate>("candidates WHERE problem=? AND stage<>'refused' AND median_us>0 "
                                                  "ORDER BY stage='promoted' DESC, median_us LIMIT 1",
                                                  {problem}));
  return rows.empty() ? std::nullopt : std::optional(rows[0]);
}

Result<std::vector<Run>> Archive::runs(const std::string& problem) {
  return select<Run>("runs WHERE problem=? ORDER BY id", {problem});
}
}  // namespace warploom::archive
