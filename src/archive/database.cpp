#include "archive/database.h"
#include <cerrno>
#include <fstream>
#include "archive/archive.h"
#include "base/embedded.h"
#include "base/file.h"
namespace warploom::archive {
namespace fs = std::filesystem;
namespace {
constexpr std::string_view kMagic{"SQLite format 3\0", 16};

Error damaged(const fs::path& path, const std::string& found) {
  return {ErrorCode::kArchiveDamaged, "the archive is damaged", path.string(), "a whole archive", found, ""};
}

// The file and its log go under a new name together: SQLite would otherwise replay the old log into the next archive.
Error moved_aside(const fs::path& path, const std::string& found) {
  Error error = damaged(path, found);
  error.remedy = "move the file away; too many damaged ones lie beside it";
  for (int i = 1; i < 10'000; ++i) {
    const std::string target = fmt::format("{}.damaged-{}", path.string(), i);
    std::error_code failure, ignored;
    if (fs::exists(target, failure)) continue;
    fs::rename(path, target, failure);
    for (const char* suffix : {"-wal", "-shm"})
      if (!failure) fs::rename(path.string() + suffix, target + suffix, ignored);
    error.remedy = failure
                       ? "move the file away yourself; it could not be renamed: " + failure.message()
                       : fmt::format("it was moved to {}; run again to start a new one, or name another with --archive", target);
    break;
  }
  return error;
}

tl::unexpected<Error> foreign(const fs::path& path, const std::string& found) {
  return fail({ErrorCode::kArchiveForeign, "the file is no archive of warploom", path.string(), "an archive, or no file yet",
               found, "name another file with --archive"});
}
}  // namespace
tl::unexpected<Error> error_of(sqlite3* connection, int code, const fs::path& path) {
  const std::string found = connection ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
  const int system = connection ? sqlite3_system_errno(connection) : 0;
  const int primary = code & 0xff;
  const auto among = [](int value, std::initializer_list<int> list) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  // SQLite does not always remember why a write failed (it looks at errno again after rolling back), so a write that failed
  // on an open file counts as a lack of room: the other reasons show when the file is opened.
  if (primary == SQLITE_FULL || among(code, {SQLITE_IOERR_WRITE, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_FSYNC}) ||
      (primary == SQLITE_IOERR && among(system, {ENOSPC, EDQUOT, EFBIG})))
    return fail({ErrorCode::kDiskFull, "there is no room to write the archive", path.string(), "free space", found,
                 "free some space or name an archive elsewhere with --archive; what was recorded before is kept"});
  if (among(primary, {SQLITE_BUSY, SQLITE_LOCKED}))
    return fail({ErrorCode::kArchiveLocked, "another run holds the archive", path.string(), "a turn to write", found,
                 "wait for the other run or name another archive with --archive"});
  if (among(primary, {SQLITE_CORRUPT, SQLITE_NOTADB})) return fail(damaged(path, found));
  if (among(primary, {SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_IOERR}))
    return fail({ErrorCode::kFileUnwritable, "the archive cannot be written", path.string(),
                 "a writable file in a writable folder", found, "name an archive elsewhere with --archive"});
  return fail({ErrorCode::kInternal, "the archive's database refused a statement", path.string(), "no error", found, ""});
}
namespace {
Status execute(sqlite3* connection, const std::string& sql, const fs::path& path) {
  const int code = sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? ok() : error_of(connection, code, path);
}

// Looks at the first bytes before SQLite does, which would call everything that is not its own "not a database".
Status look_at_header(const fs::path& path) {
  std::error_code missing;
  const auto size = fs::file_size(path, missing);
  if (missing || size == 0) return ok();
  std::array<char, 16> head{};
  std::ifstream stream(path, std::ios::binary);
  stream.read(head.data(), head.size());
  const auto got = static_cast<std::size_t>(stream.gcount());
  if (got == 0)
    return fail({ErrorCode::kFileUnreadable, "the archive cannot be read", path.string(), "a readable file", std::strerror(errno),
                 "check its permissions"});
  if (std::string_view(head.data(), got) != kMagic.substr(0, got)) return foreign(path, "a file of another kind");
  if (size < 100) return fail(moved_aside(path, fmt::format("{} bytes, less than a header", size)));
  return ok();
}

Result<std::int64_t> pragma(sqlite3* connection, const char* sql, const fs::path& path) {
  WARPLOOM_TRY(Statement statement, Statement::make(connection, sql, path));
  WARPLOOM_TRY(const bool row, statement.step());
  return row ? statement.integer(0) : 0;
}

// Creates the tables in a file that has none. Two processes may try at once: the second finds them made.
Status create(sqlite3* connection, const fs::path& path) {
  WARPLOOM_CHECK(execute(connection, "BEGIN IMMEDIATE", path));
  auto build = [&]() -> Status {
    WARPLOOM_TRY(const std::int64_t already, pragma(connection, "PRAGMA application_id", path));
    if (already == kApplicationId) return ok();
    WARPLOOM_CHECK(execute(connection, resource("archive/schema.sql"), path));
    return execute(connection, fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplicationId, kVersion), path);
  };
  Status built = build();
  Status ended = execute(connection, built ? "COMMIT" : "ROLLBACK", path);
  return built ? ended : built;
}
}  // namespace
Result<Connection> open_database(const fs::path& path, std::chrono::milliseconds lock_timeout) {
  if (path.has_parent_path()) WARPLOOM_CHECK(make_folders(path.parent_path()));
  WARPLOOM_CHECK(look_at_header(path));
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  Connection connection(raw);
  if (code != SQLITE_OK) return error_of(raw, code, path);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, static_cast<int>(lock_timeout.count()));
  const auto prepare = [&]() -> Status {
    // A foreign file must not be touched, so its application id is read before the log is set up.
    WARPLOOM_TRY(const std::int64_t tables, pragma(raw, "SELECT count(*) FROM sqlite_master", path));
    WARPLOOM_TRY(const std::int64_t id, pragma(raw, "PRAGMA application_id", path));
    const bool fresh = id == 0 && tables == 0;
    if (id != kApplicationId && !fresh) return foreign(path, "an SQLite database of another program");
    WARPLOOM_CHECK(execute(raw, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON", path));
    if (fresh) return create(raw, path);
    WARPLOOM_TRY(const std::int64_t version, pragma(raw, "PRAGMA user_version", path));
    if (version != kVersion)
      return fail({ErrorCode::kArchiveVersion, "the archive was written by another version", path.string(),
                   fmt::format("version {}", kVersion), fmt::format("version {}", version),
                   "use the program that wrote it, or name another archive with --archive"});
    WARPLOOM_TRY(Statement statement, Statement::make(raw, "PRAGMA quick_check(1)", path));
    WARPLOOM_TRY(const bool row, statement.step());
    if (!row || statement.text(0) != "ok") return fail(damaged(path, row ? statement.text(0) : "no answer"));
    return ok();
  };
  const Status ready = prepare();
  if (ready) return connection;
  if (ready.error().code != ErrorCode::kArchiveDamaged) return fail(ready.error());
  connection.reset();
  return fail(moved_aside(path, ready.error().found));
}
}  // namespace warploom::archive
