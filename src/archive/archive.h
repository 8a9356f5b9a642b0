// The archive: every problem, candidate, verdict and run, in one SQLite file that several processes
// may use at once.
//
// A record is acknowledged when the call that wrote it returns ok(): it is then on the disk
// (write-ahead log, full synchronisation) and survives kill -9 and a power cut. Two writers take
// turns; who waits longer than the lock timeout gets archive-locked. A problem's key is a hash of
// what the search must not confuse: the graph's content, track, target, device.
//
//   Result<Archive> archive = Archive::open(path);
//   archive->add_problem({key, "mm", "fp32", "sm_90a", "NVIDIA H200", text});
//   archive->record({.problem = key,
//                    .schedule = "matmul_wgmma block_m=128 …",
//                    .stage = Stage::screened,
//                    .median_us = 91.5});
//   std::optional<Candidate> best = *archive->best(key);
//
// An archive of an older version becomes one of this version when it is opened (versions.h).
// Opening tells apart what is not ours (archive-foreign), ours of a version that cannot be read
// (archive-version), and ours but half written or damaged (archive-damaged: the file is moved aside
// under a new name, never deleted, and the next open starts afresh). Writing fails with disk-full,
// file-unwritable or archive-locked; what was acknowledged before stays readable.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>
#include "base/error.h"
#include "base/optional_json.h"
struct sqlite3;

namespace warploom::archive {
inline constexpr int32_t kApplicationId = 0x57504c4d;  // "WPLM"
inline constexpr int32_t kVersion = 3;

struct Problem {
  std::string key;   // 32 hexadecimal digits
  std::string name;  // the graph's
  std::string track;
  std::string target;
  std::string device;
  std::string text;  // the graph, one line a node
  // What later searches of other problems, and the training of a policy, go by: numbers that say
  // what it is like, by their names; the graph, the target. Null: an older program kept none.
  nlohmann::json features = {};
  nlohmann::json graph = {};
  nlohmann::json capabilities = {};
  nlohmann::json bound = {};  // {"us", "of"} of the roofline; null: none is known
};

// screened: right on sampled outputs and timed; promoted: judged whole in a fresh evaluator;
// refused: see error.
enum class Stage : uint8_t { refused, screened, promoted };

struct Candidate {
  std::string problem;         // its key
  std::string schedule;        // the schedule's text, unique within a problem
  nlohmann::json fields = {};  // the schedule as data
  std::string family;
  std::vector<std::string> parents = {};  // schedules it came from
  // The step from the first of them, {"kind", "settings", "sentence", …}; null: none was told, or a
  // program of before steps were kept recorded it.
  nlohmann::json action = {};
  // Of which round of which strategy, and what chance which policy gave it: {"strategy", "policy",
  // "round", "chance"}; null: nobody told.
  nlohmann::json proposed = {};
  Stage stage = Stage::refused;
  std::string error_code = {};  // "candidate-wrong"; empty when not refused
  // Of one measurement, in turns with the reference; what is not known has no value.
  std::optional<double> median_us = {};
  std::optional<double> low_us = {};
  std::optional<double> high_us = {};
  std::optional<double> reference_us = {};
  std::optional<double> reference_low_us = {};
  std::optional<double> reference_high_us = {};
  std::optional<double> speedup = {};
  std::optional<double> speedup_low = {};
  std::optional<double> speedup_high = {};
  nlohmann::json machine = {};  // whether it was busy meanwhile, and why; null: nobody looked
  std::optional<double> error = {};
  std::optional<double> max_error = {};
  uint64_t seed = 0;
  std::string source_hash = {};
  std::string environment = {};  // compiler, driver, build: what the figures hold for
  int64_t built = 0;             // when that program was, in seconds since 1970; 0: not known
  nlohmann::json verdict = {};   // the whole verdict
  // What proposals went by: the time before it was measured again as a finalist.
  std::optional<double> screened_us = {};
  std::string source = {};  // the kernel file, where a model wrote it
};

struct Run {
  std::string problem;
  uint64_t seed = 0;
  std::string reference = {};  // the baseline's name; empty: there is none
  std::optional<double> reference_us = {};
  std::string environment = {};  // driver, build
  // Then "done", "interrupted" or "failed"; a run that was killed stays "running".
  std::string status = "running";
  int candidates = 0;
  double seconds = 0;
  std::string best = {};  // schedule text
  // What the search began with, so that its resumption can begin alike: so many of the problem's
  // candidates, the best of them by its text.
  size_t known = 0;
  std::string known_best = {};
  double budget_seconds = 0;  // 0: something else ended it, or an older program
  // Where it began beside the families' guesses: the bests of other problems,
  // [{"schedule", "problem", "name", "device", "distance", "from"}].
  nlohmann::json near = {};
};

// A record of another archive, and of which: the name of the file that brought it.
template <class Record> struct Foreign {
  std::string from;
  Record record;
};

// A record is kept as JSON; what SQL asks about it are columns that resources/archive/schema.sql
// derives.
NLOHMANN_JSON_SERIALIZE_ENUM(Stage, {{Stage::refused, "refused"},
                                     {Stage::screened, "screened"},
                                     {Stage::promoted, "promoted"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Problem, key, name, track, target, device, text,
                                                features, graph, capabilities, bound)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Candidate, problem, schedule, fields, family,
                                                parents, action, proposed, stage, error_code,
                                                median_us, low_us, high_us, reference_us,
                                                reference_low_us, reference_high_us, speedup,
                                                speedup_low, speedup_high, machine, error,
                                                max_error, seed, source_hash, environment, built,
                                                verdict, screened_us, source)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Run, problem, seed, reference, reference_us,
                                                environment, status, candidates, seconds, best,
                                                known, known_best, budget_seconds, near)

// When records were made, in seconds since 1970: of a problem's candidates in the order of
// candidates(), the first time each was recorded, and of its runs in the order of runs(), when each
// began. Archives of programs before this one tell whole seconds, and of candidates the last time.
struct Moments {
  std::vector<double> candidates;
  std::vector<double> runs;
};

class Archive {
 public:
  static Result<Archive> open(const std::filesystem::path& path,
                              std::chrono::milliseconds lock_timeout = std::chrono::seconds(10));
  // The same key again changes nothing, but for what an older program did not keep of it.
  Status add_problem(const Problem& problem);
  // The same (problem, schedule) again replaces the record, whoever wrote that, in one statement:
  // several searches may be at it. But what is known stands against what says less:
  //
  //   same kernels and environment   found wrong: against any that is accepted; of two accepted in
  //                                  the same stage the faster, as an undisturbed machine had it
  //   same kernels                   promoted: against a screening
  //   kernels of a newer program     found wrong: against an older program's accepted ones; and
  //                                  accepted: against what that one found wrong of its own kernels
  Status record(const Candidate& candidate);
  Result<int64_t> begin_run(const Run& run);
  Status finish_run(int64_t id, const Run& run);

  Result<std::vector<Problem>> problems();
  // In the order they were first recorded.
  Result<std::vector<Candidate>> candidates(const std::string& problem);
  // The fastest promoted, else the fastest screened.
  Result<std::optional<Candidate>> best(const std::string& problem);
  // The fastest accepted ones, at most so many.
  Result<std::vector<Candidate>> fastest(const std::string& problem, size_t most);
  Result<std::vector<Run>> runs(const std::string& problem);
  Result<Moments> moments(const std::string& problem);

  // An exchange with a language model (llm/exchange.h) about a problem, and all of them in their
  // order.
  Status add_exchange(const std::string& problem, nlohmann::json exchange);
  Result<std::vector<nlohmann::json>> exchanges(const std::string& problem);

  // Records of other archives (travel.h), apart from one's own: nothing above tells of them, so
  // none of them is an answer or a best. All of them, or none where writing fails; the same record
  // again takes the place of the one before.
  Status add_foreign(const std::vector<Foreign<nlohmann::json>>& records);
  Result<std::vector<Foreign<Problem>>> foreign_problems();
  Result<std::vector<Foreign<Candidate>>> foreign_candidates(const std::string& problem);
  Result<std::vector<Foreign<Run>>> foreign_runs(const std::string& problem);

 private:
  // A statement to its end, which is what commits, with `values` in its places: the first column of
  // its rows.
  Result<std::vector<std::string>> run(const std::string& sql,
                                       const std::vector<std::string>& values = {}) const;
  // The records that `rest` selects: "runs WHERE problem=?".
  template <class Record>
  Result<std::vector<Foreign<Record>>> select_foreign(const std::string& kind,
                                                      const std::string& problem) const;
  template <class Record>
  Result<std::vector<Record>> select(const std::string& rest,
                                     const std::vector<std::string>& values = {}) const;
  // When a problem's rows of a table were made, in seconds since 1970.
  Result<std::vector<double>> seconds(const char* column, const char* table,
                                      const std::string& problem) const;
  Result<int64_t> number(const std::string& sql) const;
  Status execute(const std::string& script) const;

  // What open() does with the file (database.cpp).
  Status set_up() const;
  Status refuse_foreign(int64_t application_id) const;
  Status make_tables() const;
  Status check_version(int64_t version) const;
  Status check_records() const;
  Status make_later_tables() const;
  // Carries `change` out in one transaction: another process sees all of it or nothing.
  Status in_transaction(const std::function<Status()>& change) const;
  // An older version becomes this one (upgrade.cpp).
  Status upgrade(int64_t from) const;
  Status move_to_new_tables(int64_t from) const;
  Status upgrade_table(const std::string& table, int64_t from) const;
  Status upgrade_row(const std::string& table, const std::string& insert, const nlohmann::json& row,
                     int64_t from) const;

  tl::unexpected<Error> error_of(int code) const;  // what SQLite's failure means to the user
  tl::unexpected<Error> damaged(const std::string& found) const;

  std::filesystem::path path_;
  std::shared_ptr<sqlite3> connection_;  // closed with the last copy
};
}  // namespace warploom::archive
