// A search that tests only read: its bundle, its archive and the kernels that it compiled.
//
// ctest runs each test in a process of its own, and a search takes seconds. So the first test that
// asks for one makes it, under a lock, in the build folder; the others wait and copy it. It lies
// under a hash of the executable, the model, the flags and the compiler's variables: another
// executable makes another. It is there whole or not at all.
//
//   const auto made = shared_search("exp", scratch.path() / "m.textproto", "--candidates 2");
//   copy_of_search(*made, "b", scratch.path() / "b");       // its bundle
//   copy_of_search(*made, "cache", scratch.path() / "cache");  // its compiled kernels
//
// Holds `b`, `a.sqlite`, `cache` (as XDG_CACHE_HOME) and `outcome.json`. Fails with what the
// program or the file system said.
#pragma once
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/quoted.h"
#include "support/paths.h"

namespace warploom {
// Holds an exclusive lock on a file from its construction to its end.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& file)
      : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    ::flock(file_, LOCK_EX);
  }

  ~FileLock() { ::close(file_); }

  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

// What a search depends on, but for the machine.
inline Result<std::string> key_of_search(const std::filesystem::path& model,
                                         const std::string& flags) {
  WARPLOOM_TRY(std::string all, read_file(test::built_path("warploom")));
  WARPLOOM_TRY(const std::string text, read_file(model));
  all += text + flags;
  for (const char* name : {"CXX", "CXXFLAGS"})
    if (const char* value = std::getenv(name)) all += std::string(name) + value;
  return hash_hex(all);
}

inline Status make_search(const std::filesystem::path& folder, const std::filesystem::path& model,
                          const std::string& flags) {
  const std::string line =
      "cd " + shell_word(folder.string()) + " && XDG_CACHE_HOME=$PWD/cache " +
      shell_word(test::built_path("warploom")) + " optimize " + shell_word(model.string()) +
      " --json --target cpu --out b --archive a.sqlite " + flags + " > outcome.json";
  WARPLOOM_TRY(const ProcessResult made,
               run_process({"bash", "-c", line}, {.time = std::chrono::seconds(250)}));
  if (made.succeeded()) return ok();
  return fail({ErrorCode::kInternal, "the shared search failed", folder.string(), "a bundle",
               read_file(folder / "outcome.json").value_or("") + made.err});
}

inline Result<std::filesystem::path> shared_search(const std::string& name,
                                                   const std::filesystem::path& model,
                                                   const std::string& flags) {
  namespace fs = std::filesystem;
  const fs::path all = fs::path(test::built_path("shared_searches")) / name;
  WARPLOOM_CHECK(make_folders(all));
  WARPLOOM_TRY(const std::string key, key_of_search(model, flags));
  const FileLock lock(all / "lock");
  const fs::path wanted = all / key;
  if (fs::exists(wanted)) return wanted;
  for (const fs::directory_entry& old : fs::directory_iterator(all))
    if (old.is_directory()) fs::remove_all(old.path());
  const ScratchFolder scratch("search", all);
  WARPLOOM_CHECK(make_search(scratch.path(), model, flags));
  // The scratch folder itself, which its own end removes, keeps its name.
  fs::create_directory(all / "whole");
  for (const char* part : {"b", "a.sqlite", "cache", "outcome.json"})
    fs::rename(scratch.path() / part, all / "whole" / part);
  fs::rename(all / "whole", wanted);
  return wanted;
}

// Times of files are kept, so that make finds nothing to do.
inline Status copy_of_search(const std::filesystem::path& search, const std::string& part,
                             const std::filesystem::path& to) {
  WARPLOOM_TRY(const ProcessResult copied,
               run_process({"cp", "-a", (search / part).string(), to.string()}));
  if (copied.succeeded()) return ok();
  return fail({ErrorCode::kInternal, "a search could not be copied", to.string(), "", copied.err});
}
}  // namespace warploom
