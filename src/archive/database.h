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

class Statement {
 public:
  static Result<Statement> make(sqlite3* connection, const char* sql, const std::filesystem::path& path);
  void bind(const nlohmann::json& value);  // the next place
  void read(int column, nlohmann::json& value) const;  // the cell as a value of the kind that `value` has
  // True: a row is there; false: the end.
  Result<bool> step();
  Status run();  // a step whose row nobody wants
  std::string text(int column) const;
  std::int64_t integer(int column) const;

 private:
  sqlite3* connection_ = nullptr;
  std::filesystem::path path_;
  std::unique_ptr<sqlite3_stmt, Closer> statement_;
  int bound_ = 0;
};

// Opens or creates the file, tells foreign, other-version and damaged ones apart, and sets the durability it promises.
Result<Connection> open_database(const std::filesystem::path& path, std::chrono::milliseconds lock_timeout);
}  // namespace warploom::archive
