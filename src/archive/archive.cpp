#include "archive/archive.h"
#include "archive/database.h"
namespace warploom::archive {
using nlohmann::json;

namespace {
// `form` for each column, {} its name, with commas between.
template <class Record>
std::string columns(const char* form = "{}") {
  std::string text;
  const json record = Record();
  for (const auto& column : record.items()) text += (text.empty() ? "" : ", ") + fmt::format(fmt::runtime(form), column.key());
  return text;
}
template <class Record>
std::string insert(const char* table) {
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table, columns<Record>(), columns<Record>("?"));
}
}  // namespace
struct Archive::Database {
  Connection connection;
  std::filesystem::path path;

  Result<Statement> statement(const std::string& sql) const { return Statement::make(connection.get(), sql.c_str(), path); }
  // The statement with the record's fields in its first places.
  template <class Record>
  Result<Statement> statement(const std::string& sql, const Record& record) const {
    WARPLOOM_TRY(Statement row, statement(sql));
    for (const json& value : json(record)) row.bind(value);
    return row;
  }
  // The records that `rest` selects: "FROM runs WHERE problem=?".
  template <class Record>
  Result<std::vector<Record>> select(const std::string& rest, const std::string* problem = nullptr) const {
    WARPLOOM_TRY(Statement row, statement("SELECT " + columns<Record>() + " " + rest));
    if (problem) row.bind(*problem);
    std::vector<Record> out;
    while (true) {
      WARPLOOM_TRY(const bool more, row.step());
      if (!more) return out;
      json record = Record();
      int at = 0;
      for (json& value : record) row.read(at++, value);
      try {
        out.push_back(record.get<Record>());
      } catch (const json::exception& error) {
        return fail({ErrorCode::kArchiveDamaged, "the archive is damaged", path.string(), "a whole record", error.what(), ""});
      }
    }
  }
};

Result<Archive> Archive::open(const std::filesystem::path& path, std::chrono::milliseconds lock_timeout) {
  WARPLOOM_TRY(Connection connection, open_database(path, lock_timeout));
  return Archive(std::make_shared<Database>(Database{std::move(connection), path}));
}

Status Archive::add_problem(const Problem& problem) {
  WARPLOOM_TRY(Statement row, database_->statement(insert<Problem>("problems") + " ON CONFLICT (key) DO NOTHING", problem));
  return row.run();
}

Status Archive::record(const Candidate& candidate) {
  const std::string sql = insert<Candidate>("candidates") + " ON CONFLICT (problem, schedule) DO UPDATE SET " +
                          columns<Candidate>("{0}=excluded.{0}") + ", recorded=CURRENT_TIMESTAMP";
  WARPLOOM_TRY(Statement row, database_->statement(sql, candidate));
  return row.run();
}

Result<std::int64_t> Archive::begin_run(const Run& run) {
  WARPLOOM_TRY(Statement row, database_->statement(insert<Run>("runs") + " RETURNING id", run));
  WARPLOOM_CHECK(row.run());
  const std::int64_t id = row.integer(0);
  WARPLOOM_CHECK(row.run());  // to its end: this is what commits
  return id;
}

Status Archive::finish_run(std::int64_t id, const Run& run) {
  WARPLOOM_TRY(Statement row, database_->statement("UPDATE runs SET " + columns<Run>("{}=?") + " WHERE id=?", run));
  row.bind(id);
  return row.run();
}

Result<std::vector<Problem>> Archive::problems() { return database_->select<Problem>("FROM problems ORDER BY rowid"); }

Result<std::vector<Candidate>> Archive::candidates(const std::string& problem) {
  return database_->select<Candidate>("FROM candidates WHERE problem=? ORDER BY id", &problem);
}

Result<std::optional<Candidate>> Archive::best(const std::string& problem) {
  WARPLOOM_TRY(const auto rows,
               database_->select<Candidate>("FROM candidates WHERE problem=? AND stage<>'refused' AND median_us>0 "
                                            "ORDER BY stage='promoted' DESC, median_us LIMIT 1",
                                            &problem));
  return rows.empty() ? std::nullopt : std::optional(rows[0]);
}

Result<std::vector<Run>> Archive::runs(const std::string& problem) {
  return database_->select<Run>("FROM runs WHERE problem=? ORDER BY id", &problem);
}
}  // namespace warploom::archive
