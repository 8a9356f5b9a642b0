#include "archive/archive.h"
#include <concepts>
#include <tuple>
#include "archive/database.h"
namespace warploom::archive {
namespace {
constexpr std::array<std::string_view, 3> kStageNames = {"refused", "screened", "promoted"};

Stage stage_named(std::string_view name) {
  for (std::size_t i = 0; i < kStageNames.size(); ++i)
    if (kStageNames[i] == name) return static_cast<Stage>(i);
  return Stage::refused;
}

// What goes into a cell. Seeds use all 64 bits, which SQLite's signed integers would show as negative numbers: they are kept as
// text. Texts from compilers may hold bytes that are no UTF-8; they must not stop a record.
void put(Statement& row, const std::string& value) { row.bind(value); }
void put(Statement& row, double value) { row.bind(value); }
void put(Statement& row, int value) { row.bind(std::int64_t{value}); }
void put(Statement& row, std::uint64_t value) { row.bind(std::to_string(value)); }
void put(Statement& row, Stage value) { row.bind(std::string(name_of(value))); }
void put(Statement& row, const nlohmann::json& value) {
  row.bind(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void get(const Statement& row, int column, std::string& value) { value = row.text(column); }
void get(const Statement& row, int column, double& value) { value = row.real(column); }
void get(const Statement& row, int column, int& value) { value = static_cast<int>(row.integer(column)); }
void get(const Statement& row, int column, std::uint64_t& value) { value = std::strtoull(row.text(column).c_str(), nullptr, 10); }
void get(const Statement& row, int column, Stage& value) { value = stage_named(row.text(column)); }
void get(const Statement& row, int column, nlohmann::json& value) {
  value = nlohmann::json::parse(row.text(column), nullptr, false);
  if (value.is_discarded()) value = nullptr;
}
void get(const Statement& row, int column, std::vector<std::string>& value) {
  nlohmann::json list;
  get(row, column, list);
  for (const auto& item : list)
    if (item.is_string()) value.push_back(item);
}

// The columns of a record's table, each with the member it holds: the one list that statements are made from.
template <class Record>
constexpr auto kColumns = nullptr;
#define COLUMN(name) std::pair(#name, &R::name)
template <class R>
requires std::same_as<R, Problem>
constexpr auto kColumns<R> = std::tuple(COLUMN(key), COLUMN(name), COLUMN(track), COLUMN(target), COLUMN(device), COLUMN(text));
template <class R>
requires std::same_as<R, Candidate>
constexpr auto kColumns<R> =
    std::tuple(COLUMN(problem), COLUMN(schedule), COLUMN(fields), COLUMN(family), COLUMN(parents), COLUMN(stage),
               COLUMN(error_code), COLUMN(median_us), COLUMN(low_us), COLUMN(high_us), COLUMN(reference_us), COLUMN(error),
               COLUMN(max_error), COLUMN(seed), COLUMN(source_hash), COLUMN(environment), COLUMN(verdict));
template <class R>
requires std::same_as<R, Run>
constexpr auto kColumns<R> = std::tuple(COLUMN(problem), COLUMN(seed), COLUMN(reference), COLUMN(reference_us),
                                        COLUMN(environment), COLUMN(status), COLUMN(candidates), COLUMN(seconds), COLUMN(best));
#undef COLUMN

// `form` for each column, {} its name, with commas between.
template <class Record>
std::string columns(const char* form = "{}") {
  std::string text;
  const auto add = [&](const char* name) { text += (text.empty() ? "" : ", ") + fmt::format(fmt::runtime(form), name); };
  std::apply([&](const auto&... column) { (add(column.first), ...); }, kColumns<Record>);
  return text;
}
template <class Record>
std::string insert(const char* table) {
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table, columns<Record>(), columns<Record>("?"));
}
}  // namespace
std::string_view name_of(Stage stage) { return kStageNames[static_cast<std::size_t>(stage)]; }

struct Archive::Database {
  Connection connection;
  std::filesystem::path path;

  Result<Statement> statement(const std::string& sql) const { return Statement::make(connection.get(), sql.c_str(), path); }
  // The statement with the record's fields in its first places.
  template <class Record>
  Result<Statement> statement(const std::string& sql, const Record& record) const {
    WARPLOOM_TRY(Statement row, statement(sql));
    std::apply([&](const auto&... column) { (put(row, record.*column.second), ...); }, kColumns<Record>);
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
      Record& record = out.emplace_back();
      int at = 0;
      std::apply([&](const auto&... column) { (get(row, at++, record.*column.second), ...); }, kColumns<Record>);
    }
  }
};

Archive::Archive(std::unique_ptr<Database> database) : database_(std::move(database)) {}
Archive::Archive(Archive&&) noexcept = default;
Archive& Archive::operator=(Archive&&) noexcept = default;
Archive::~Archive() = default;

Result<Archive> Archive::open(const std::filesystem::path& path, std::chrono::milliseconds lock_timeout) {
  WARPLOOM_TRY(Connection connection, open_database(path, lock_timeout));
  return Archive(std::make_unique<Database>(Database{std::move(connection), path}));
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
