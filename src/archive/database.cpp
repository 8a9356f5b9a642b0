// The archive on SQLite: its file, its statements, its errors.
#include <fmt/format.h>
#include <sqlite3.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ios>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "archive/record.h"
#include "archive/versions.h"
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rendered.h"

namespace warploom::archive {
namespace fs = std::filesystem;

namespace {
constexpr std::string_view kMagic{"SQLite format 3\0", 16};

// The file and its log go under a new name together: SQLite would otherwise replay the old log into
// the next archive.
tl::unexpected<Error> moved_aside(const fs::path& path, const std::string& found) {
  const auto fail_with = [&](std::string remedy) {
    Error error{ErrorCode::kArchiveDamaged, "the archive is damaged", path.string()};
    error.expected = "a whole archive";
    error.found = found;
    error.remedy = std::move(remedy);
    return fail(error);
  };
  for (int i = 1; i < 10'000; ++i) {
    const std::string target = fmt::format("{}.damaged-{}", path.string(), i);
    std::error_code failure;
    std::error_code ignored;
    if (fs::exists(target, failure)) continue;
    fs::rename(path, target, failure);
    if (failure)
      return fail_with("move the file away yourself; it could not be renamed: " +
                       failure.message());
    for (const char* suffix : {"-wal", "-shm"})
      fs::rename(path.string() + suffix, target + suffix, ignored);
    return fail_with(
        fmt::format("it was moved to {}; run again to start a new one, or name "
                    "another with --archive",
                    target));
  }
  return fail_with("move the file away; too many damaged ones lie beside it");
}

tl::unexpected<Error> foreign(const fs::path& path, const std::string& found) {
  return fail({ErrorCode::kArchiveForeign, "the file is no archive of warploom", path.string(),
               "an archive, or no file yet", found, "name another file with --archive"});
}

// Places in SQLite's header. Source: sqlite.org/fileformat.html, section 1.3.
constexpr size_t kWriteVersion = 18;
constexpr size_t kReadVersion = 19;

// Looks at the first bytes before SQLite does, which would call everything that is not its own "not
// a database".
Status look_at_header(const fs::path& path) {
  std::error_code missing;
  const auto size = fs::file_size(path, missing);
  if (missing || size == 0) return ok();
  std::array<char, 20> head{};
  std::ifstream stream(path, std::ios::binary);
  stream.read(head.data(), head.size());
  const auto got = as_size(stream.gcount());
  if (got == 0) {
    const std::string found = std::strerror(errno);
    return fail({ErrorCode::kFileUnreadable, "the archive cannot be read", path.string(),
                 "a readable file", found, "check its permissions"});
  }
  const size_t of_magic = std::min(got, kMagic.size());
  if (std::string_view(head.data(), of_magic) != kMagic.substr(0, of_magic))
    return foreign(path, "a file of another kind");
  if (size < 100) return moved_aside(path, fmt::format("{} bytes, less than a header", size));
  // Who may write it and who may read it, by version: SQLite takes what it does not know for a file
  // that must not be written.
  constexpr int kNewest = 2;
  for (const char version : {head[kWriteVersion], head[kReadVersion]})
    if (version < 1 || version > kNewest) return moved_aside(path, "a header of no known version");
  return ok();
}

// What a failure of SQLite means to the user.
enum class Failure : uint8_t { no_room, locked, damaged, no_memory, unwritable, unknown };

bool is_lack_of_room(int code, int system) {
  switch (code) {
    // SQLite does not always remember why a write failed (it looks at errno again after rolling
    // back), so a write that failed on an open file counts as a lack of room: the other reasons
    // show when the file is opened.
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_SHMSIZE:
    case SQLITE_IOERR_FSYNC: return true;
    default: break;
  }
  const bool full = system == ENOSPC || system == EDQUOT || system == EFBIG;
  return (code & 0xff) == SQLITE_IOERR && full;
}

// By SQLite's extended code and the system's error.
Failure failure_of(int code, int system) {
  if (is_lack_of_room(code, system)) return Failure::no_room;
  switch (code & 0xff) {
    case SQLITE_FULL: return Failure::no_room;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Failure::locked;
    // Our statements fit our tables: where SQLite refuses one, the file holds others.
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:
    case SQLITE_SCHEMA:
    case SQLITE_FORMAT:
    case SQLITE_TOOBIG: return Failure::damaged;
    case SQLITE_NOMEM: return Failure::no_memory;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_IOERR: return Failure::unwritable;
    default: return Failure::unknown;
  }
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
  switch (failure_of(code, system)) {
    case Failure::no_room:
      return fail({ErrorCode::kDiskFull, "there is no room to write the archive", place,
                   "free space", found,
                   "free some space or name an archive elsewhere with --archive; what was recorded "
                   "before is kept"});
    case Failure::locked:
      return fail({ErrorCode::kArchiveLocked, "another run holds the archive", place,
                   "a turn to write", found,
                   "wait for the other run or name another archive with --archive"});
    case Failure::damaged: return damaged(found);
    case Failure::no_memory:
      return fail({ErrorCode::kOutOfMemory, "the archive does not fit in memory", place});
    case Failure::unwritable:
      return fail({ErrorCode::kFileUnwritable, "the archive cannot be written", place,
                   "a writable file in a writable folder", found,
                   "name an archive elsewhere with --archive"});
    case Failure::unknown: break;
  }
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

Status Archive::in_transaction(const std::function<Status()>& change) const {
  WARPLOOM_CHECK(execute("BEGIN IMMEDIATE"));
  const Status changed = change();
  const Status ended = execute(changed ? "COMMIT" : "ROLLBACK");
  return changed ? ended : changed;
}

// A file without our application id: an empty one, which may be ours soon, or another program's.
Status Archive::refuse_foreign(int64_t application_id) const {
  const auto foreign_database = [&] {
    return foreign(path_, "an SQLite database of another program");
  };
  if (application_id != 0) return foreign_database();
  const auto tables = number("SELECT count(*) FROM sqlite_master");
  if (!tables && tables.error().code == ErrorCode::kArchiveDamaged) return foreign_database();
  if (!tables) return fail(tables.error());
  if (*tables == 0) return ok();
  // Another process may have made it in between.
  const int64_t id = number("PRAGMA application_id").value_or(application_id);
  return id == kApplicationId ? ok() : foreign_database();
}

// Two processes may make the tables at once: the second finds them made.
Status Archive::make_tables() const {
  return in_transaction([&]() -> Status {
    WARPLOOM_TRY(const int64_t id, number("PRAGMA application_id"));
    if (id == kApplicationId) return ok();
    return execute(
        resource("archive/schema.sql") +
        fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplicationId, kVersion));
  });
}

Status Archive::check_version(int64_t version) const {
  const int oldest = steps().front().from;
  if (version >= oldest && version <= kVersion) return ok();
  Error error{ErrorCode::kArchiveVersion, "the archive was written by another version"};
  error.place = path_.string();
  error.expected = fmt::format("versions {} to {}", oldest, kVersion);
  error.found = fmt::format("version {}", version);
  error.remedy = "use the program that wrote it, or name another archive with --archive";
  return fail(error);
}

Status Archive::set_up() const {
  // A foreign file must not be touched, so its application id is read before all else: even its
  // tables may be none that this version of SQLite can read.
  WARPLOOM_TRY(const int64_t id, number("PRAGMA application_id"));
  if (id != kApplicationId) WARPLOOM_CHECK(refuse_foreign(id));
  WARPLOOM_CHECK(
      execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON"));
  if (id == 0) {
    WARPLOOM_CHECK(make_tables());
    return make_later_tables();
  }
  WARPLOOM_TRY(const int64_t version, number("PRAGMA user_version"));
  WARPLOOM_CHECK(check_version(version));
  WARPLOOM_TRY(const std::vector<std::string> found, run("PRAGMA integrity_check(1)"));
  if (found.size() != 1 || found[0] != "ok") return damaged(found.empty() ? "no answer" : found[0]);
  WARPLOOM_CHECK(check_records());
  if (version != kVersion) WARPLOOM_CHECK(upgrade(version));
  return make_later_tables();
}

// These tables came later than the version, which they do not change.
Status Archive::make_later_tables() const {
  for (const char* table : {"exchanges", "foreign"}) {
    WARPLOOM_CHECK(execute(resource(fmt::format("archive/{}.sql", table))));
  }
  for (const char* table : {"exchanges", "foreign_records"}) {
    WARPLOOM_TRY(const std::vector<std::string> rows,
                 run(fmt::format("SELECT record FROM {}", table)));
    if (std::ranges::any_of(rows, is_changed))
      return damaged(fmt::format("a record of {} that has changed since it was written", table));
  }
  return ok();
}

// That no record has changed since it was written.
Status Archive::check_records() const {
  for (const char* table : kTables) {
    WARPLOOM_TRY(const std::vector<std::string> rows,
                 run(fmt::format("SELECT record FROM {}", table)));
    if (std::ranges::any_of(rows, is_changed))
      return damaged(fmt::format("a record of {} that has changed since it was written", table));
  }
  return ok();
}

Result<Archive> Archive::open(const fs::path& path, std::chrono::milliseconds lock_timeout) {
  if (path.has_parent_path()) WARPLOOM_CHECK(make_folders(path.parent_path()));
  WARPLOOM_CHECK(look_at_header(path));
  Archive out;
  out.path_ = path;
  sqlite3* raw = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  out.connection_.reset(raw, sqlite3_close_v2);
  if (code != SQLITE_OK) return out.error_of(code);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, as_int(lock_timeout.count()));
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + lock_timeout;
  Status ready = out.set_up();
  // SQLite waits for no turn where two that wait could stand in each other's way, as at the change
  // to WAL: it is asked again.
  const auto is_locked = [&] { return !ready && ready.error().code == ErrorCode::kArchiveLocked; };
  while (is_locked() && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ready = out.set_up();
  }
  if (ready) return out;
  if (ready.error().code != ErrorCode::kArchiveDamaged) return fail(ready.error());
  out.connection_.reset();
  return moved_aside(path, ready.error().found);
}
}  // namespace warploom::archive
