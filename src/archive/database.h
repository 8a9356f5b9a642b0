// A thin skin over SQLite: statements that bind by position, and errors with our codes. Within the room only.
#pragma once
#include <sqlite3.h>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include "base/error.h"
namespace warploom::archive {
struct Closer {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Connection = std::unique_ptr<sqlite3, Closer>;

// What SQLite's last failure on this connection means to the user.
tl::unexpected<Error> error_of(sqlite3* connection, int code, const std::filesystem::path& path);

class Statement {
  using json = nlohmann::json;

 public:
  static Result<Statement> make(sqlite3* connection, const char* sql, const std::filesystem::path& path) {
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v2(connection, sql, -1, &raw, nullptr);
    if (code != SQLITE_OK) return error_of(connection, code, path);
    Statement made;
    made.connection_ = connection;
    made.path_ = path;
    made.statement_.reset(raw);
    return made;
  }
  // The next place. Seeds, the only unsigned ones, use all 64 bits, which SQLite's signed integers would show as negative numbers:
  // they are kept as text. Texts from compilers may hold bytes that are no UTF-8; they must not stop a record.
  void bind(const json& value) {
    sqlite3_stmt* const to = statement_.get();
    ++bound_;
    if (value.is_number_integer() && !value.is_number_unsigned()) {
      sqlite3_bind_int64(to, bound_, value.get<std::int64_t>());
    } else if (value.is_number_float()) {
      const auto real = value.get<double>();
      sqlite3_bind_double(to, bound_, std::isnan(real) ? 0.0 : real);  // NaN would become NULL
    } else {
      const std::string text =
          value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, json::error_handler_t::replace);
      sqlite3_bind_text64(to, bound_, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    }
  }
  // The cell as a value of the kind that `value` has.
  void read(int column, json& value) const {
    if (value.is_string()) value = text(column);
    else if (value.is_number_float()) value = sqlite3_column_double(statement_.get(), column);
    else if (value.is_number_integer() && !value.is_number_unsigned()) value = integer(column);
    else if (json read = json::parse(text(column), nullptr, false); read.type() == value.type() || value.is_null())
      value = read.is_discarded() ? json() : std::move(read);
  }
  // True: a row is there; false: the end.
  Result<bool> step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return error_of(connection_, sqlite3_extended_errcode(connection_), path_);
  }
  // A step whose row nobody wants.
  Status run() {
    WARPLOOM_CHECK(step());
    return ok();
  }
  std::string text(int column) const {
    const auto* raw = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    return raw ? std::string(raw, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))) : std::string();
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

 private:
  sqlite3* connection_ = nullptr;
  std::filesystem::path path_;
  std::unique_ptr<sqlite3_stmt, Closer> statement_;
  int bound_ = 0;
};

// Opens or creates the file, tells foreign, other-version and damaged ones apart, and sets the durability it promises.
Result<Connection> open_database(const std::filesystem::path& path, std::chrono::milliseconds lock_timeout);
}  // namespace warploom::archive
