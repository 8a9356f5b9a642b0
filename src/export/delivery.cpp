#include "export/delivery.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "codegen/launch_list.h"
#include "runtime/compilers.h"
#include "runtime/driver.h"
#include "runtime/plan_file.h"

namespace warploom::export_ {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {
constexpr std::chrono::minutes kBuildLimit{15};  // nvcc takes its time over large networks
constexpr std::chrono::minutes kRunLimit{10};
constexpr const char* kNotBuilt =
    "the bundle was not built here within the budget: `make check` in its folder does it";
constexpr const char* kNotRun =
    "the bundle was built, and its check did not end within the budget: `make check` in its folder "
    "runs it";
constexpr const char* kNotOurs =
    "kernels that a language model wrote are in this bundle; they were judged shut in, and the "
    "bundle was neither built nor checked here, which would run them with your rights: read the "
    "kernel file, then `make check`";
constexpr int kTries = 8;            // where a compiler crashes now and then
constexpr size_t kMostWords = 4000;  // of a compiler's, in an error

tl::unexpected<Error> not_ours(const fs::path& folder, const std::string& found) {
  return fail({ErrorCode::kFolderNotOurs, "the folder holds files that would be lost",
               folder.string(), "no folder, an empty one, or an unchanged bundle", found,
               "name another folder with --out, or move the files away"});
}

// What `make` and the PyTorch module build in a bundle's folder (`make clean` removes it), and what
// Python keeps there.
bool is_by_product(const fs::path& relative) {
  return *relative.begin() == "build" || relative.extension() == ".pyc";
}

// Left by a process that was killed, or by one that is at it: ScratchFolder's, which it sweeps.
bool is_temporary(const fs::path& relative) {
  return relative.begin()->string().starts_with(".warploom-bundle-");
}

// Every file that the folder holds beyond, or otherwise than, its plan says.
std::vector<std::string> users_files(const fs::path& folder, const json& plan) {
  std::vector<std::string> found;
  const json& files = plan["files"];
  std::error_code error;
  const fs::recursive_directory_iterator end;
  for (fs::recursive_directory_iterator at(folder, error); !error && at != end;
       at.increment(error)) {
    const fs::path relative = at->path().lexically_relative(folder);
    if (is_temporary(relative)) {
      at.disable_recursion_pending();
      continue;
    }
    if (at->is_directory(error) && !at->is_symlink(error)) continue;
    const std::string name = relative.generic_string();
    if (name == "plan.json" || is_by_product(relative)) continue;
    const auto known = files.find(name);
    const bool is_file = at->is_regular_file(error) && !at->is_symlink(error);
    Result<std::string> text = "";
    if (is_file) text = read_file(at->path());
    if (known == files.end())
      found.push_back(name + " (not written by warploom)");
    else if (!text || *known != hash_hex(*text))
      found.push_back(name + " (changed)");
  }
  return found;
}

bool holds_nothing(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (!is_temporary(entry.path().filename())) return false;
  return !error;
}

// The folder itself, where the path is a link to it.
fs::path resolved(const fs::path& folder) {
  std::error_code error;
  const fs::path absolute = fs::absolute(folder, error);
  const fs::path real = fs::weakly_canonical(absolute, error);
  const fs::path chosen = error ? absolute : real;
  return chosen.filename().empty() ? chosen.parent_path() : chosen;
}

std::string last_words(const ProcessResult& result) {
  const std::string words = result.out + result.err;
  return words.size() <= kMostWords ? words : "…" + words.substr(words.size() - kMostWords);
}

// `make TARGET` as a user would say it there, but for what this process was itself told by a make.
Result<ProcessResult> make(const fs::path& folder, const std::string& target,
                           const std::vector<std::string>& variables,
                           std::chrono::milliseconds limit) {
  const std::string temporary = "TMPDIR=" + (folder / "build").string();
  std::vector<std::string> argv = {"/usr/bin/env", "-u", "MAKEFLAGS", "-u", "MAKELEVEL", temporary};
  for (const std::string& word : {std::string("make"), std::string("-C"), folder.string(), target})
    argv.push_back(word);
  argv.insert(argv.end(), variables.begin(), variables.end());
  return run_process(argv, {.time = limit});
}

bool is_up(const Until& until) {
  return until && std::chrono::steady_clock::now() >= *until;
}

// A limit, or what is left until the clock ends it all.
std::chrono::milliseconds within(std::chrono::milliseconds limit, const Until& until) {
  using std::chrono::milliseconds;
  if (!until) return limit;
  const auto left = *until - std::chrono::steady_clock::now();
  return std::clamp(std::chrono::duration_cast<milliseconds>(left), milliseconds(1), limit);
}

// The compiler died instead of saying something; make names the signal where it else has a status.
bool compiler_crashed(const ProcessResult& result) {
  static const std::regex kCrash("make: \\*\\*\\* \\[[^\\]]*\\] (?!Error \\d\\d?\\b)");
  return !result.succeeded() && std::regex_search(result.err, kCrash);
}

// What the Makefile has to be told, and what cannot be done here.
struct EvalOptions {
  std::vector<std::string> variables;
  bool build = true;
  bool run = true;
  std::string missing;
};

EvalOptions means_for(Engine engine) {
  const auto named = [](const char* variable, const char* otherwise) {
    const char* value = std::getenv(variable);
    return std::string(value && *value ? value : otherwise);
  };
  if (find_program("make").empty())
    return {{}, false, false, "neither built nor run here: there is no make"};
  if (engine == Engine::cpu) {
    if (!find_program(named("CXX", "g++")).empty()) return {};
    const auto compiler = runtime::find_cpu_compiler();
    if (!compiler) return {{}, false, false, "neither built nor run here: no C++ compiler"};
    return {{"CXX=" + compiler->path}, true, true, "built with CXX=" + compiler->path};
  }
  const bool is_named = !find_program(named("NVCC", "nvcc")).empty();
  const bool has_nvcc = is_named || !find_program("/usr/local/cuda/bin/nvcc").empty();
  if (!has_nvcc) return {{}, false, false, "neither built nor run here: there is no nvcc"};
  if (!runtime::Driver::get()) return {{}, true, false, "built, not run here: there is no GPU"};
  return {};
}

// A folder takes another's place in one step, so that a reader, or whoever looks after this process
// was killed, sees the old bundle or the new one.
bool exchange(const fs::path& a, const fs::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

// File by file, where the folder itself cannot move: a mount, a shell's current folder. plan.json
// goes first and comes last.
Status move_within(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::remove(to / "plan.json", error);
  for (const auto& entry : fs::directory_iterator(to, error))
    if (!is_temporary(entry.path().filename())) fs::remove_all(entry.path(), error);
  std::vector<fs::path> names;
  for (const auto& entry : fs::directory_iterator(from, error))
    names.push_back(entry.path().filename());
  std::ranges::partition(names, [](const fs::path& name) { return name != "plan.json"; });
  for (const fs::path& name : names) {
    fs::rename(from / name, to / name, error);
    if (error) {
      Error why{ErrorCode::kFileUnwritable, "cannot put a file into its place"};
      why.place = (to / name).string();
      why.expected = "a folder that can be written";
      why.found = error.message();
      why.remedy = "name another folder with --out";
      return fail(why);
    }
  }
  return ok();
}

Status put_into_place(const fs::path& made, const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) {
    fs::rename(made, folder, error);
    if (!error) return ok();
    WARPLOOM_CHECK(make_folders(folder));
  }
  const bool within = made.parent_path() == folder;
  const bool current = fs::equivalent(folder, fs::current_path(error), error);
  if (!within && !current && exchange(made, folder)) return ok();
  return move_within(made, folder);
}

// Where the bundle is made: beside its folder, or in it where no folder can be made beside it or
// none there could take its place.
fs::path workshop_of(const fs::path& folder) {
  std::error_code error;
  const fs::path parent = folder.parent_path();
  if (!fs::exists(folder, error)) return parent;
  struct stat own{};
  struct stat parents{};
  const bool is_known = ::stat(folder.c_str(), &own) == 0 && ::stat(parent.c_str(), &parents) == 0;
  const bool same_disk = is_known && own.st_dev == parents.st_dev;
  const bool writable = ::access(parent.c_str(), W_OK) == 0;
  const bool current = fs::equivalent(folder, fs::current_path(error), error);
  return same_disk && writable && !current ? parent : folder;
}
}  // namespace

Status may_deliver(const fs::path& named) {
  const fs::path folder = resolved(named);
  std::error_code error;
  if (!fs::exists(folder, error)) return ok();
  if (!fs::is_directory(folder, error)) return not_ours(folder, "a file");
  if (holds_nothing(folder)) return ok();
  fs::path path = folder;
  const auto plan = runtime::read_plan(path, {"launch_list"});
  if (!plan) return not_ours(folder, "files, and no bundle");
  if (!plan->contains("files") || !(*plan)["files"].is_object())
    return not_ours(folder, "a bundle of an earlier version, which does not know its files");
  auto others = users_files(folder, *plan);
  if (!runtime::check_seal(*plan, folder)) others.push_back("plan.json (changed)");
  if (others.empty()) return ok();
  std::ranges::sort(others);
  constexpr size_t kNamed = 8;
  const size_t more = others.size() - std::min(others.size(), kNamed);
  others.resize(others.size() - more);
  std::string named_ones = fmt::format("{}", fmt::join(others, ", "));
  if (more > 0) named_ones += fmt::format(" and {} more", more);
  return not_ours(folder, std::move(named_ones));
}

Result<Delivered> prove(const fs::path& folder, Engine engine, const Until& until) {
  Delivered done;
  const EvalOptions means = means_for(engine);
  if (!means.missing.empty()) done.notes.push_back("the bundle was " + means.missing);
  if (!means.build) return done;
  if (is_up(until)) {
    done.notes.emplace_back(kNotBuilt);
    return done;
  }
  const fs::path build = folder / "build";
  WARPLOOM_CHECK(make_folders(build));
  const std::shared_ptr<void> cleaned(nullptr, [build](void*) {
    std::error_code ignored;
    fs::remove_all(build, ignored);
  });
  ProcessResult built;
  for (int tries = 0; tries == 0 || (tries < kTries && compiler_crashed(built)); ++tries)
    WARPLOOM_TRY(built, make(folder, "build/check", means.variables, within(kBuildLimit, until)));
  if (built.timed_out && is_up(until)) {
    done.notes.emplace_back(kNotBuilt);
    return done;
  }
  if (!built.succeeded()) {
    Error error{ErrorCode::kBundleNotBuilt, "the bundle does not compile as it is delivered"};
    error.place = "make build/check";
    error.expected = "a program";
    error.found = built.timed_out ? "no end within 15 minutes" : last_words(built);
    error.remedy =
        "see whether its compiler is the one that `warploom doctor` shows, and CXXFLAGS "
        "or NVCCFLAGS fit it; else please report it with the model";
    return fail(error);
  }
  if (!means.run) return done;
  WARPLOOM_TRY(const ProcessResult ran,
               make(folder, "check", means.variables, within(kRunLimit, until)));
  if (ran.timed_out && is_up(until)) {
    done.notes.emplace_back(kNotRun);
    return done;
  }
  if (!ran.succeeded()) {
    Error error{ErrorCode::kBundleCheckFailed, "the bundle does not pass its own check"};
    error.place = "make check";
    error.expected = "every output within what is allowed";
    error.found = ran.timed_out ? "no end within 10 minutes" : last_words(ran);
    error.remedy =
        "take track tolerance where the error is little more than is allowed; else please "
        "report it with the model";
    return fail(error);
  }
  return done;
}

Result<Delivered> deliver(const fs::path& named, const std::vector<BundleFile>& files,
                          Engine engine, const Until& until, bool foreign) {
  const fs::path folder = resolved(named);
  WARPLOOM_CHECK(may_deliver(folder));
  const fs::path workshop = workshop_of(folder);
  WARPLOOM_CHECK(make_folders(workshop));
  const ScratchFolder made("bundle", workshop);
  for (const BundleFile& file : files) {
    const fs::path path = made.path() / file.path;
    WARPLOOM_CHECK(make_folders(path.parent_path()));
    WARPLOOM_CHECK(write_file(path, file.text));
  }
  Delivered done;
  if (foreign)
    done.notes.emplace_back(kNotOurs);
  else
    WARPLOOM_TRY(done, prove(made.path(), engine, until));
  WARPLOOM_CHECK(may_deliver(folder));  // a user may have been busy there in the meantime
  WARPLOOM_CHECK(put_into_place(made.path(), folder));
  return done;
}
}  // namespace warploom::export_
