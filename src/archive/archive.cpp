#include "archive/archive.h"
#include <sqlite3.h>
#include <cerrno>
#include <fstream>
#include <thread>
#include "archive/versions.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/rendered.h"

namespace warploom::archive {
using nlohmann::json;

namespace {
// SQL of this moment, as CURRENT_TIMESTAMP has it but to the millisecond.
const std::string kNow = "strftime('%Y-%m-%d %H:%M:%f', 'now')";

// The end of a record: a hash of all before it, since SQLite notices no bit of a text that a disk
// has changed.
std::string ending(std::string_view body) {
  return fmt::format(R"(,"~":"{:016x}"}})", hash64(body));
}

// A record as its table keeps it. JSON has no infinity, and texts from compilers may hold bytes
// that are no UTF-8; neither must stop a record.
std::string text_of(json record) {
  for (json& field : record)
    if (field.is_number_float() && !std::isfinite(field.get<double>()))
      field = std::numeric_limits<double>::max();
  std::string text = record.dump(-1, ' ', false, json::error_handler_t::replace);
  text.pop_back();
  return text + ending(text);
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
  WARPLOOM_CHECK(run("INSERT INTO problems (record) VALUES (?) ON CONFLICT (key) DO NOTHING",
                     {text_of(problem)}));
  return ok();
}

Status Archive::record(const Candidate& candidate) {
  // Screening again what was promoted says less than is known, and would take the best away from a
  // search that is killed just then.
  WARPLOOM_CHECK(run("INSERT INTO candidates (record, recorded) VALUES (?, " + kNow +
                         ") ON CONFLICT (problem, schedule) DO UPDATE "
                         "SET record=excluded.record WHERE NOT (stage='promoted' AND "
                         "excluded.stage='screened' AND "
                         "record ->> 'source_hash' = excluded.record ->> 'source_hash')",
                     {text_of(candidate)}));
  return ok();
}

Result<int64_t> Archive::begin_run(const Run& began) {
  WARPLOOM_TRY(const auto ids,
               run("INSERT INTO runs (record, started) VALUES (?, " + kNow + ") RETURNING id",
                   {text_of(began)}));
  return std::stoll(ids.at(0));
}

Status Archive::finish_run(int64_t id, const Run& ended) {
  WARPLOOM_CHECK(run("UPDATE runs SET record=? WHERE id=?", {text_of(ended), std::to_string(id)}));
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

Result<Moments> Archive::moments(const std::string& problem) {
  const auto seconds = [&](const char* column, const char* table) -> Result<std::vector<double>> {
    WARPLOOM_TRY(const auto rows,
                 run(fmt::format("SELECT (julianday({}) - 2440587.5) * 86400 FROM {} "
                                 "WHERE problem=? ORDER BY id",
                                 column, table),
                     {problem}));
    std::vector<double> out;
    for (const std::string& row : rows) out.push_back(std::strtod(row.c_str(), nullptr));
    return out;
  };
  Moments out;
  WARPLOOM_TRY(out.candidates, seconds("recorded", "candidates"));
  WARPLOOM_TRY(out.runs, seconds("started", "runs"));
  return out;
}

// The archive on SQLite: its file, its statements, its errors.
namespace fs = std::filesystem;

namespace {
constexpr std::string_view kMagic{"SQLite format 3\0", 16};
constexpr const char* kTables[] = {"problems", "candidates", "runs"};

// The file and its log go under a new name together: SQLite would otherwise replay the old log into
// the next archive.
tl::unexpected<Error> moved_aside(const fs::path& path, const std::string& found) {
  Error error{ErrorCode::kArchiveDamaged,
              "the archive is damaged",
              path.string(),
              "a whole archive",
              found,
              ""};
  error.remedy = "move the file away; too many damaged ones lie beside it";
  for (int i = 1; i < 10'000; ++i) {
    const std::string target = fmt::format("{}.damaged-{}", path.string(), i);
    std::error_code failure;
    std::error_code ignored;
    if (fs::exists(target, failure)) continue;
    fs::rename(path, target, failure);
    for (const char* suffix : {"-wal", "-shm"})
      if (!failure) fs::rename(path.string() + suffix, target + suffix, ignored);
    error.remedy =
        failure ? "move the file away yourself; it could not be renamed: " + failure.message()
                : fmt::format(
                      "it was moved to {}; run again to start a new one, or name another with "
                      "--archive",
                      target);
    break;
  }
  return fail(std::move(error));
}

tl::unexpected<Error> foreign(const fs::path& path, const std::string& found) {
  return fail({ErrorCode::kArchiveForeign, "the file is no archive of warploom", path.string(),
               "an archive, or no file yet", found, "name another file with --archive"});
}

// Looks at the first bytes before SQLite does, which would call everything that is not its own "not
// a database".
Status look_at_header(const fs::path& path) {
  std::error_code missing;
  const auto size = fs::file_size(path, missing);
  if (missing || size == 0) return ok();
  std::array<char, 16> head{};
  std::ifstream stream(path, std::ios::binary);
  stream.read(head.data(), head.size());
  const auto got = static_cast<size_t>(stream.gcount());
  if (got == 0)
    return fail({ErrorCode::kFileUnreadable, "the archive cannot be read", path.string(),
                 "a readable file", std::strerror(errno), "check its permissions"});
  if (std::string_view(head.data(), got) != kMagic.substr(0, got))
    return foreign(path, "a file of another kind");
  if (size < 100) return moved_aside(path, fmt::format("{} bytes, less than a header", size));
  return ok();
}
}  // namespace

tl::unexpected<Error> Archive::damaged(const std::string& found) const {
  return fail({ErrorCode::kArchiveDamaged, "the archive is damaged", path_.string(),
               "a whole archive", found});
}

tl::unexpected<Error> Archive::error_of(int code) const {
  sqlite3* const connection = connection_.get();
  const std::string found = connection ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
  const std::string place = path_.string();
  const int system = connection ? sqlite3_system_errno(connection) : 0;
  const int primary = code & 0xff;
  const auto among = [](int value, std::initializer_list<int> list) {
    return std::ranges::find(list, value) != list.end();
  };
  // SQLite does not always remember why a write failed (it looks at errno again after rolling
  // back), so a write that failed on an open file counts as a lack of room: the other reasons show
  // when the file is opened.
  if (primary == SQLITE_FULL ||
      among(code, {SQLITE_IOERR_WRITE, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_FSYNC}) ||
      (primary == SQLITE_IOERR && among(system, {ENOSPC, EDQUOT, EFBIG})))
    return fail({ErrorCode::kDiskFull, "there is no room to write the archive", place, "free space",
                 found,
                 "free some space or name an archive elsewhere with --archive; what was recorded "
                 "before is kept"});
  if (among(primary, {SQLITE_BUSY, SQLITE_LOCKED}))
    return fail({ErrorCode::kArchiveLocked, "another run holds the archive", place,
                 "a turn to write", found,
                 "wait for the other run or name another archive with --archive"});
  // Our statements fit our tables: where SQLite refuses one, the file holds others.
  if (among(primary, {SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR, SQLITE_SCHEMA, SQLITE_FORMAT,
                      SQLITE_TOOBIG}))
    return damaged(found);
  if (primary == SQLITE_NOMEM)
    return fail({ErrorCode::kOutOfMemory, "the archive does not fit in memory", place});
  if (among(primary, {SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_IOERR}))
    return fail({ErrorCode::kFileUnwritable, "the archive cannot be written", place,
                 "a writable file in a writable folder", found,
                 "name an archive elsewhere with --archive"});
  return fail({ErrorCode::kInternal, "the archive's database refused a statement", place,
               "no error", found});
}

Status Archive::execute(const std::string& script) const {
  const int code = sqlite3_exec(connection_.get(), script.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? ok() : error_of(code);
}

Result<std::vector<std::string>> Archive::run(const std::string& sql,
                                              const std::vector<std::string>& values) const {
  sqlite3_stmt* made = nullptr;
  const int refused = sqlite3_prepare_v2(connection_.get(), sql.c_str(), -1, &made, nullptr);
  if (refused != SQLITE_OK) return error_of(refused);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(made, sqlite3_finalize);
  int place = 0;
  for (const std::string& value : values)
    sqlite3_bind_text64(made, ++place, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8);
  std::vector<std::string> out;
  while (true) {
    const int code = sqlite3_step(made);
    if (code == SQLITE_DONE) return out;
    if (code != SQLITE_ROW) return error_of(sqlite3_extended_errcode(connection_.get()));
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(made, 0));
    out.emplace_back(text ? text : "");
  }
}

Result<int64_t> Archive::number(const std::string& sql) const {
  WARPLOOM_TRY(const std::vector<std::string> rows, run(sql));
  return rows.empty() ? 0 : std::atoll(rows[0].c_str());
}

Status Archive::set_up() const {
  // A foreign file must not be touched, so its application id is read before all else: even its
  // tables may be none that this version of SQLite can read.
  WARPLOOM_TRY(const int64_t id, number("PRAGMA application_id"));
  const bool fresh = id == 0;
  if (id != kApplicationId) {
    const auto tables = fresh ? number("SELECT count(*) FROM sqlite_master") : Result<int64_t>(1);
    const bool unread = !tables && tables.error().code == ErrorCode::kArchiveDamaged;
    const auto other = [&] {
      return number("PRAGMA application_id").value_or(id) != kApplicationId;
    };  // not made in between
    if (unread || (tables && *tables > 0 && other()))
      return foreign(path_, "an SQLite database of another program");
    if (!tables) return fail(tables.error());
  }
  WARPLOOM_CHECK(
      execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON"));
  if (fresh) {  // two processes may make the tables at once: the second finds them made
    WARPLOOM_CHECK(execute("BEGIN IMMEDIATE"));
    const auto already = number("PRAGMA application_id");
    Status made = already ? ok() : fail(already.error());
    if (made && *already != kApplicationId)
      made = execute(resource("archive/schema.sql") +
                     fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplicationId,
                                 kVersion));
    const Status ended = execute(made ? "COMMIT" : "ROLLBACK");
    return made ? ended : made;
  }
  WARPLOOM_TRY(const int64_t version, number("PRAGMA user_version"));
  if (version < steps().front().from || version > kVersion)
    return fail({ErrorCode::kArchiveVersion, "the archive was written by another version",
                 path_.string(), fmt::format("versions {} to {}", steps().front().from, kVersion),
                 fmt::format("version {}", version),
                 "use the program that wrote it, or name another archive with --archive"});
  WARPLOOM_TRY(const std::vector<std::string> found, run("PRAGMA integrity_check(1)"));
  if (found.size() != 1 || found[0] != "ok") return damaged(found.empty() ? "no answer" : found[0]);
  WARPLOOM_CHECK(check_records());
  return version == kVersion ? ok() : upgrade(version);
}

// That no record has changed since it was written, by the hash at its end.
Status Archive::check_records() const {
  for (const char* table : kTables) {
    WARPLOOM_TRY(const std::vector<std::string> rows,
                 run(fmt::format("SELECT record FROM {}", table)));
    for (const std::string& row : rows) {
      const size_t body = row.size() - std::min(ending("").size(), row.size());
      if (row.compare(body, 4, R"(,"~")") == 0 && row.substr(body) != ending(row.substr(0, body)))
        return damaged(fmt::format("a record of {} that has changed since it was written", table));
    }
  }
  return ok();
}

// From an older version to this one, in one transaction: another process sees the one or the other.
Status Archive::upgrade(int64_t from) const {
  WARPLOOM_CHECK(execute("BEGIN IMMEDIATE"));
  const auto upgraded = [&]() -> Status {
    WARPLOOM_TRY(const int64_t now, number("PRAGMA user_version"));
    if (now != from) return ok();  // another process has just done it
    WARPLOOM_CHECK(execute("DROP INDEX candidates_by_time"));
    for (const char* table : kTables)
      WARPLOOM_CHECK(execute(fmt::format("ALTER TABLE {0} RENAME TO old_{0}", table)));
    WARPLOOM_CHECK(execute(resource("archive/schema.sql")));
    for (const char* table : kTables) WARPLOOM_CHECK(upgrade_table(table, from));
    for (const char* table : {"candidates", "runs", "problems"})  // who refers to others first
      WARPLOOM_CHECK(execute(fmt::format("DROP TABLE old_{}", table)));
    return execute(fmt::format("PRAGMA user_version={}", kVersion));
  };
  const Status made = upgraded();
  const Status ended = execute(made ? "COMMIT" : "ROLLBACK");
  return made ? ended : made;
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
    for (const std::string& row : rows) {
      const json parts = json::parse(row, nullptr, false);
      json record =
          parts.is_array() ? json::parse(parts[2].get<std::string>(), nullptr, false) : json();
      if (!record.is_object()) return damaged(fmt::format("a record of {} that is none", table));
      record.erase("~");
      for (const Step& step : steps())
        if (step.from >= from) record = step.upgraded(table, std::move(record));
      last = parts[0].get<int64_t>();
      const auto put = run(insert, {std::to_string(last), parts[1], text_of(std::move(record))});
      if (put) continue;
      // The tables take every whole record: this one lacks a field, or names a problem that is not
      // there. Records of old versions have no hash that would say so.
      const bool untaken = put.error().code == ErrorCode::kInternal;
      return untaken ? damaged(put.error().found) : fail(put.error());
    }
  }
}

Result<Archive> Archive::open(const fs::path& path, std::chrono::milliseconds lock_timeout) {
  if (path.has_parent_path()) WARPLOOM_CHECK(make_folders(path.parent_path()));
  WARPLOOM_CHECK(look_at_header(path));
  Archive out;
  out.path_ = path;
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  out.connection_.reset(raw, sqlite3_close_v2);
  if (code != SQLITE_OK) return out.error_of(code);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, static_cast<int>(lock_timeout.count()));
  using Clock = std::chrono::steady_clock;
  Status ready = out.set_up();
  // SQLite waits for no turn where two that wait could stand in each other's way, as at the change
  // to WAL: it is asked again.
  for (const auto until = Clock::now() + lock_timeout;
       !ready && ready.error().code == ErrorCode::kArchiveLocked && Clock::now() < until;
       ready = out.set_up())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  if (ready) return out;
  if (ready.error().code != ErrorCode::kArchiveDamaged) return fail(ready.error());
  out.connection_.reset();
  return moved_aside(path, ready.error().found);
}
}  // namespace warploom::archive
