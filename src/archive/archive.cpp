#include "archive/archive.h"

#include <fmt/format.h>

#include <array>

#include "archive/database.h"

namespace warploom::archive {
namespace {

constexpr std::array<std::string_view, 3> kStageNames = {"refused", "screened", "promoted"};

Stage stage_named(std::string_view name) {
  for (std::size_t i = 0; i < kStageNames.size(); ++i)
    if (kStageNames[i] == name) return static_cast<Stage>(i);
  return Stage::refused;
}

// Seeds use all 64 bits, which SQLite's signed integers would show as negative numbers: they are kept as text.
std::uint64_t seed_from(const std::string& text) { return text.empty() ? 0 : std::strtoull(text.c_str(), nullptr, 10); }
nlohmann::json json_from(const std::string& text) {
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  return parsed.is_discarded() ? nlohmann::json() : parsed;
}
// Texts from compilers may hold bytes that are no UTF-8; they must not stop a record.
std::string dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

constexpr const char* kCandidateColumns =
    "problem, schedule, fields, family, parents, stage, error_code, median_us, low_us, high_us, "
    "reference_us, error, max_error, "
    "seed, source_hash, environment, verdict";

Candidate candidate_of(const Statement& row) {
  Candidate out;
  out.problem = row.text(0);
  out.schedule = row.text(1);
  out.fields = json_from(row.text(2));
  out.family = row.text(3);
  if (const auto parents = json_from(row.text(4)); parents.is_array())
    for (const auto& parent : parents)
      if (parent.is_string()) out.parents.push_back(parent);
  out.stage = stage_named(row.text(5));
  out.error_code = row.text(6);
  out.median_us = row.real(7);
  out.low_us = row.real(8);
  out.high_us = row.real(9);
  out.reference_us = row.real(10);
  out.error = row.real(11);
  out.max_error = row.real(12);
  out.seed = seed_from(row.text(13));
  out.source_hash = row.text(14);
  out.environment = row.text(15);
  out.verdict = json_from(row.text(16));
  return out;
}

}  // namespace

std::string_view name_of(Stage stage) { return kStageNames[static_cast<std::size_t>(stage)]; }

struct Archive::Database {
  Connection connection;
  std::filesystem::path path;

  Result<Statement> statement(const std::string& sql) const {
    return Statement::make(connection.get(), sql.c_str(), path);
  }
};

Archive::Archive(std::unique_ptr<Database> database) : database_(std::move(database)) {}
Archive::Archive(Archive&&) noexcept = default;
Archive& Archive::operator=(Archive&&) noexcept = default;
Archive::~Archive() = default;

Result<Archive> Archive::open(const std::filesystem::path& path, const OpenOptions& options) {
  WARPLOOM_TRY(Connection connection, open_database(path, options.lock_timeout));
  return Archive(std::make_unique<Database>(Database{std::move(connection), path}));
}

Status Archive::add_problem(const Problem& problem) {
  WARPLOOM_TRY(Statement row, database_->statement("INSERT INTO problems (key, name, track, target, device, text) "
                                                   "VALUES (?,?,?,?,?,?) ON CONFLICT (key) DO NOTHING"));
  row.bind(problem.key)
      .bind(problem.name)
      .bind(problem.track)
      .bind(problem.target)
      .bind(problem.device)
      .bind(problem.text);
  WARPLOOM_CHECK(row.step().map([](bool) { return std::monostate{}; }));
  return ok();
}

Status Archive::record(const Candidate& c) {
  WARPLOOM_TRY(Statement row,
               database_->statement(
                   fmt::format("INSERT INTO candidates ({}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT "
                               "(problem, schedule) DO "
                               "UPDATE SET fields=excluded.fields, family=excluded.family, parents=excluded.parents, "
                               "stage=excluded.stage, "
                               "error_code=excluded.error_code, median_us=excluded.median_us, low_us=excluded.low_us, "
                               "high_us=excluded.high_us, reference_us=excluded.reference_us, error=excluded.error, "
                               "max_error=excluded.max_error, seed=excluded.seed, source_hash=excluded.source_hash, "
                               "environment=excluded.environment, verdict=excluded.verdict, recorded=CURRENT_TIMESTAMP",
                               kCandidateColumns)));
  row.bind(c.problem).bind(c.schedule).bind(dump(c.fields)).bind(c.family).bind(dump(c.parents));
  row.bind(std::string(name_of(c.stage))).bind(c.error_code);
  row.bind(c.median_us).bind(c.low_us).bind(c.high_us).bind(c.reference_us).bind(c.error).bind(c.max_error);
  row.bind(std::to_string(c.seed)).bind(c.source_hash).bind(c.environment).bind(dump(c.verdict));
  WARPLOOM_CHECK(row.step().map([](bool) { return std::monostate{}; }));
  return ok();
}

Result<std::int64_t> Archive::begin_run(const Run& run) {
  WARPLOOM_TRY(
      Statement row,
      database_->statement("INSERT INTO runs (problem, seed, reference, reference_us, environment, status, candidates, "
                           "seconds, best) VALUES (?,?,?,?,?,?,?,?,?) RETURNING id"));
  row.bind(run.problem).bind(std::to_string(run.seed)).bind(run.reference).bind(run.reference_us).bind(run.environment);
  row.bind(run.status).bind(std::int64_t{run.candidates}).bind(run.seconds).bind(run.best);
  WARPLOOM_CHECK(row.step().map([](bool) { return std::monostate{}; }));
  const std::int64_t id = row.integer(0);
  WARPLOOM_CHECK(row.step().map([](bool) { return std::monostate{}; }));  // to its end: this is what commits
  return id;
}

Status Archive::finish_run(std::int64_t id, const Run& run) {
  WARPLOOM_TRY(Statement row,
               database_->statement("UPDATE runs SET reference=?, reference_us=?, environment=?, status=?, "
                                    "candidates=?, seconds=?, best=? WHERE id=?"));
  row.bind(run.reference)
      .bind(run.reference_us)
      .bind(run.environment)
      .bind(run.status)
      .bind(std::int64_t{run.candidates});
  row.bind(run.seconds).bind(run.best).bind(id);
  WARPLOOM_CHECK(row.step().map([](bool) { return std::monostate{}; }));
  return ok();
}

Result<std::vector<Problem>> Archive::problems() {
  WARPLOOM_TRY(Statement row,
               database_->statement("SELECT key, name, track, target, device, text FROM problems ORDER BY rowid"));
  std::vector<Problem> out;
  while (true) {
    WARPLOOM_TRY(const bool more, row.step());
    if (!more) return out;
    out.push_back({row.text(0), row.text(1), row.text(2), row.text(3), row.text(4), row.text(5)});
  }
}

Result<std::vector<Candidate>> Archive::candidates(const std::string& problem) {
  WARPLOOM_TRY(Statement row, database_->statement(fmt::format("SELECT {} FROM candidates WHERE problem=? ORDER BY id",
                                                               kCandidateColumns)));
  row.bind(problem);
  std::vector<Candidate> out;
  while (true) {
    WARPLOOM_TRY(const bool more, row.step());
    if (!more) return out;
    out.push_back(candidate_of(row));
  }
}

Result<std::optional<Candidate>> Archive::best(const std::string& problem) {
  WARPLOOM_TRY(Statement row, database_->statement(fmt::format(
                                  "SELECT {} FROM candidates WHERE problem=? AND stage<>'refused' AND median_us>0 "
                                  "ORDER BY stage='promoted' DESC, median_us LIMIT 1",
                                  kCandidateColumns)));
  row.bind(problem);
  WARPLOOM_TRY(const bool found, row.step());
  if (!found) return std::optional<Candidate>();
  return std::optional<Candidate>(candidate_of(row));
}

Result<std::vector<Run>> Archive::runs(const std::string& problem) {
  WARPLOOM_TRY(Statement row,
               database_->statement("SELECT problem, seed, reference, reference_us, environment, status, "
                                    "candidates, seconds, best FROM runs WHERE problem=? ORDER BY id"));
  row.bind(problem);
  std::vector<Run> out;
  while (true) {
    WARPLOOM_TRY(const bool more, row.step());
    if (!more) return out;
    out.push_back({row.text(0), seed_from(row.text(1)), row.text(2), row.real(3), row.text(4), row.text(5),
                   static_cast<int>(row.integer(6)), row.real(7), row.text(8)});
  }
}

}  // namespace warploom::archive
