// A thin skin over SQLite: statements whose values are texts, and errors with our codes. Within the room only.
#pragma once
#include <sqlite3.h>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>
#include "base/error.h"
namespace warploom::archive {
class Database {
 public:
  // Opens or creates the file, tells foreign, other-version and damaged ones apart, and sets the durability it promises.
  static Result<Database> open(const std::filesystem::path& path, std::chrono::milliseconds lock_timeout);
  // A statement to its end, which is what commits, with `values` in its places: the first column of its rows.
  Result<std::vector<std::string>> run(const std::string& sql, const std::vector<std::string>& values = {}) const;
  tl::unexpected<Error> damaged(const std::string& found) const;

 private:
  Status set_up();
  Status create();
  Result<std::int64_t> number(const std::string& sql) const;
  Status execute(const std::string& script) const;
  tl::unexpected<Error> error_of(int code) const;  // what SQLite's failure means to the user

  std::filesystem::path path_;
  std::shared_ptr<sqlite3> connection_;
};
}  // namespace warploom::archive
