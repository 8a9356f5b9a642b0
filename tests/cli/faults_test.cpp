// Faults as a user meets them: the program is killed, its compiler misbehaves, the disk is full,
// the archive is held, the clock jumps.
//
//   WARPLOOM_KILLS=200 WARPLOOM_LIVE_KILLS_OUT=FILE build/release/test_cli
//   --gtest_filter='CliKills.AKilled*'
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/random.h"
#include "support/paths.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

const std::string kProgram = test::built_path("warploom");

std::string tensor(const std::string& role, const std::string& name) {
  return role + " { name: \"" + name +
         "\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 64 } dim { dim_value: 64 } "
         "} } } }\n";
}

const std::string kModel =
    "ir_version: 8\nopset_import { version: 17 }\ngraph {\nname: \"mm\"\n"
    "node { input: \"A\" input: \"B\" output: \"C\" op_type: \"MatMul\" }\n" +
    tensor("input", "A") + tensor("input", "B") + tensor("output", "C") + "}\n";

struct Ran {
  int status = -1;
  json out;
  std::string text;
  std::string err;

  std::string code() const {
    return out.is_object() && out.contains("error") ? out["error"].value("code", "") : "";
  }

  std::string found() const {
    return out.is_object() && out.contains("error") ? out["error"].value("found", "") : "";
  }
};

class CliFaults : public testing::Test {
 protected:
  ScratchFolder scratch{"cli-faults"};
  const fs::path home = scratch.path();
  const fs::path archive_path = home / "kept.sqlite";

  void SetUp() override {
    ASSERT_TRUE(write_file(home / "mm.textproto", kModel));
    fs::create_directories(home / "temporary");
  }

  std::string set_up() const {
    return "cd '" + home.string() +
           "'; export XDG_CACHE_HOME=$PWD/cache TMPDIR=$PWD/temporary; W='" + kProgram + "'; ";
  }

  Ran shell(const std::string& line) const {
    const auto result =
        run_process({"bash", "-c", set_up() + line}, {.time = std::chrono::seconds(200)});
    EXPECT_TRUE(result);
    EXPECT_FALSE(result->timed_out) << line;
    return {result->exit_status, json::parse(result->out, nullptr, false), result->out,
            result->err};
  }

  static std::string search(const std::string& flags) {
    return "$W optimize mm.textproto --json --target cpu --archive kept.sqlite --out made " + flags;
  }

  // A program in the C++ compiler's place, which answers for its version as that does.
  std::string compiler(const std::string& otherwise) const {
    const fs::path file = home / "compiler";
    EXPECT_TRUE(write_file(file, "#!/bin/bash\n[[ $1 = -dump* ]] && exec g++ \"$@\"\n" + otherwise +
                                     "\nexec g++ \"$@\"\n"));
    ::chmod(file.c_str(), 0755);
    return "export CXX=$PWD/compiler; ";
  }

  // Every record of the archive by its schedule, as another process reads it; nothing where there
  // is none yet.
  std::map<std::string, archive::Candidate> records(const fs::path& path) const {
    std::map<std::string, archive::Candidate> out;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return out;
    auto archive = archive::Archive::open(path);
    const auto problems = archive ? archive->problems()
                                  : Result<std::vector<archive::Problem>>(fail(archive.error()));
    EXPECT_TRUE(problems) << describe(problems.error());
    if (!problems || problems->empty()) return out;
    const auto rows = archive->candidates(problems->front().key);
    EXPECT_TRUE(rows) << describe(rows.error());
    for (const auto& row : *rows)
      EXPECT_TRUE(out.emplace(row.schedule, row).second) << "doubled: " << row.schedule;
    return out;
  }

  // The last search of an archive came to its end; the program may have been killed after it, while
  // it wrote the bundle.
  static bool done(const fs::path& path) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return false;
    auto archive = archive::Archive::open(path);
    const auto problems = archive ? archive->problems()
                                  : Result<std::vector<archive::Problem>>(fail(archive.error()));
    if (!problems || problems->empty()) return false;
    const auto runs = archive->runs(problems->front().key);
    return runs && !runs->empty() && runs->back().status == "done";
  }

  int running_there() const {  // processes whose command line names this test's folder
    int count = 0;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator("/proc", ignored))
      if (const auto line = read_file(entry.path() / "cmdline");
          line && line->find(home.string()) != std::string::npos)
        ++count;
    return count;
  }

  std::vector<std::string> temporary_files() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(home / "temporary"))
      out.push_back(entry.path().filename());
    return out;
  }
};

using Records = std::map<std::string, archive::Candidate>;

double fastest_us(const Records& records) {
  double best = HUGE_VAL;
  for (const auto& [schedule, row] : records)
    if (row.median_us > 0) best = std::min(best, *row.median_us);
  return best;
}

// What searches lost that were killed, all of them together.
struct Losses {
  int kills = 0;
  int searches = 0;
  int verdicts = 0;
  int lost = 0;
  int changed = 0;
  int worse = 0;
  double longest_orphan = 0;

  // `before`: what was acknowledged; `screening`: the last rounds, which measure the fastest few
  // again, have not begun.
  void compare(const Records& before, const Records& after, bool screening) {
    for (const auto& [schedule, row] : before) {
      const auto found = after.find(schedule);
      lost += found == after.end();
      if (found == after.end()) continue;
      const bool fixed = screening || row.stage == archive::Stage::refused;
      changed += fixed && json(found->second) != json(row);
    }
    worse += screening && fastest_us(after) > fastest_us(before);
  }

  json figures(size_t files_left) const {
    return {{"kills", kills},
            {"searches", searches},
            {"verdicts", verdicts},
            {"acknowledged_and_lost", lost},
            {"acknowledged_and_judged_again", changed},
            {"best_became_worse", worse},
            {"longest_orphan_seconds", std::round(longest_orphan * 100) / 100},
            {"temporary_files_left", files_left}};
  }
};

class CliKills : public CliFaults {
 protected:
  static constexpr size_t kCandidates = 24;

  Random random_{5, "kills"};
  Losses losses_;

  // Starts a shell's command in a session of its own.
  pid_t start(const std::string& line) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::setsid();
    const int nowhere = ::open("/dev/null", O_WRONLY);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
      ::dup2(nowhere, fd);
    ::execl("/bin/bash", "bash", "-c", (set_up() + "exec " + line).c_str(), nullptr);
    ::_exit(127);
  }

  // Waits for the command's end, or kills it after a while, if it may be killed: whether it came to
  // its end. `acknowledged`: what another process read before it was killed.
  bool ran_to_its_end(pid_t child, bool may_be_killed, const fs::path& kept,
                      Records& acknowledged) {
    const auto until = steady_clock::now() + milliseconds(100 + random_.below(3'000));
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(milliseconds(3));
      if (steady_clock::now() < until || !may_be_killed) continue;
      acknowledged = records(kept);
      std::this_thread::sleep_for(std::chrono::microseconds(random_.below(20'000)));
      ::kill(-child, SIGKILL);
    }
    if (!WIFEXITED(status)) return false;
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return true;
  }

  // Seconds until the last process of a search is gone.
  double seconds_of_orphans() const {
    const auto begin = steady_clock::now();
    while (running_there() > 0 && steady_clock::now() - begin < std::chrono::seconds(30))
      std::this_thread::sleep_for(milliseconds(5));
    return std::chrono::duration<double>(steady_clock::now() - begin).count();
  }

  // One search, killed and resumed until it is done: what its archive holds then.
  Records search_under_kills(int most) {
    const fs::path kept = home / fmt::format("kept-{}.sqlite", losses_.searches);
    const std::string line = fmt::format(
        "$W optimize mm.textproto --json --target cpu --strategy beam --budget 10m --out made "
        "--candidates {} --seed {} --archive {}",
        kCandidates, ++losses_.searches, kept.string());
    Records held;
    bool ended = false;
    while (!ended) {
      ended = ran_to_its_end(start(line), losses_.kills < most, kept, held);
      const double orphans = seconds_of_orphans();
      if (!ended) {
        ++losses_.kills;
        losses_.longest_orphan = std::max(losses_.longest_orphan, orphans);
      }
      Records after = records(kept);
      losses_.compare(held, after, after.size() < kCandidates);
      held = std::move(after);
      ended = ended || done(kept);
    }
    return held;
  }
};

TEST_F(CliKills, AKilledSearchLosesNoVerdictHoweverOften) {
  const char* const wanted = std::getenv("WARPLOOM_KILLS");
  const int most = wanted ? std::atoi(wanted) : 6;
  const auto is_promoted = [](const auto& row) {
    return row.second.stage == archive::Stage::promoted;
  };
  while (losses_.kills < most) {
    const Records held = search_under_kills(most);
    EXPECT_EQ(held.size(), kCandidates);
    EXPECT_EQ(std::ranges::count_if(held, is_promoted), 1);
    losses_.verdicts += static_cast<int>(held.size());
  }
  const auto left = temporary_files();
  const json figures = losses_.figures(left.size());
  EXPECT_EQ(losses_.lost + losses_.changed + losses_.worse, 0) << figures.dump(1);
  EXPECT_TRUE(left.empty()) << fmt::format("{}", fmt::join(left, " "));
  EXPECT_LT(losses_.longest_orphan, 20);
  RecordProperty("figures", figures.dump());
  if (const char* const out = std::getenv("WARPLOOM_LIVE_KILLS_OUT")) {
    ASSERT_TRUE(write_file(out, figures.dump(1) + "\n"));
  }
}

TEST_F(CliFaults, ACompilerThatCrashesNowAndThenCostsThoseCandidatesAlone) {
  const Ran run = shell(compiler("(( RANDOM % 2 )) && kill -SEGV $$") +
                        search("--candidates 12 --budget 100s"));
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  EXPECT_GT(run.out["best_us"].get<double>(), 0);
  std::set<std::string> codes;
  for (const auto& [schedule, row] : records(archive_path)) {
    codes.insert(row.error_code);
    if (!row.error_code.empty()) {
      EXPECT_NE(row.verdict["refused"].value("found", "").find("signal 11"), std::string::npos)
          << row.verdict;
    }
  }
  EXPECT_EQ(codes, (std::set<std::string>{"", "compile-failed"}));
}

TEST_F(CliFaults, ACompilerThatAlwaysCrashesIsSaid) {
  const Ran run = shell(compiler("kill -SEGV $$") + search("--candidates 3 --budget 20s"));
  EXPECT_EQ(run.code(), "no-correct-candidate") << run.text;
  EXPECT_NE(run.found().find("3 compile-failed"), std::string::npos) << run.text;
}

TEST_F(CliFaults, ACompilerThatHangsIsKilledWithAllThatItStarted) {
  const std::string hangs = compiler("(exec -a $PWD/hangs sleep 1000) & wait");
  const Ran run = shell(hangs + search("--candidates 2 --budget 30s"));
  EXPECT_EQ(run.code(), "no-correct-candidate") << run.text;
  EXPECT_NE(run.found().find("2 compile-timeout"), std::string::npos) << run.text;
  EXPECT_EQ(running_there(), 0);
  EXPECT_TRUE(temporary_files().empty());
}

TEST_F(CliFaults, ACompilerThatStillHangsWhenTheSearchEndsEndsWithIt) {
  const Ran run = shell(compiler("(exec -a $PWD/hangs sleep 1000) & wait") +
                        search("--candidates 2 --budget 1s"));
  EXPECT_EQ(run.code(), "no-correct-candidate") << run.text;
  EXPECT_EQ(running_there(), 0);
  EXPECT_TRUE(temporary_files().empty());
}

// Each of the fifty is a kernel, and has no compiler of its own.
TEST_F(CliFaults, ASearchOfManyInputsStartsAFewCompilers) {
  constexpr int kInputs = 50;
  const auto tensor_of = [](const std::string& role, const std::string& name, int rows) {
    return fmt::format(
        "{} {{ name: \"{}\" type {{ tensor_type {{ elem_type: 1 shape {{ dim {{ dim_value: {} }} "
        "dim {{ dim_value: 8 }} }} }} }} }}\n",
        role, name, rows);
  };
  std::string node = "node { op_type: \"Concat\" output: \"y\"\n";
  std::string inputs;
  for (int i = 0; i < kInputs; ++i) {
    node += fmt::format("input: \"a{}\"\n", i);
    inputs += tensor_of("input", fmt::format("a{}", i), 1);
  }
  ASSERT_TRUE(write_file(home / "mm.textproto",
                         "ir_version: 8\nopset_import { version: 17 }\ngraph {\nname: \"many\"\n" +
                             node + "attribute { name: \"axis\" type: INT i: 0 } }\n" + inputs +
                             tensor_of("output", "y", kInputs) + "}\n"));
  // A compiler writes to its own folder alone, so what it made is counted.
  const Ran run = shell(search("--candidates 1 --budget 60s"));
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  EXPECT_EQ(run.out["candidates"], 1);
  const Ran made = shell("find $XDG_CACHE_HOME -name '*.image' | wc -l");
  EXPECT_GT(std::stoi(made.text), 0);
  EXPECT_LE(std::stoi(made.text), 6);
}

TEST_F(CliFaults, AFullDiskEndsTheSearchWithItsBestAndRoomLetsItGoOn) {
  // After a few records the search may write to no file any more.
  std::jthread later([&] {
    for (int i = 0; i < 2000 && records(archive_path).size() < 4; ++i)
      std::this_thread::sleep_for(milliseconds(50));
    const rlimit none{0, 0};
    const int process = std::stoi(read_file(home / "process").value_or("-1"));
    EXPECT_EQ(::prlimit(process, RLIMIT_FSIZE, &none, nullptr), 0);
  });
  const std::string line = search("--candidates 300 --budget 100s --strategy random");
  const Ran full = shell("trap '' XFSZ; " + line +
                         " > >(cat) & echo $! > process; wait $!; S=$?; wait; exit $S");
  EXPECT_EQ(full.code(), "disk-full") << full.text << full.err;
  EXPECT_NE(full.found().find("the best so far: "), std::string::npos) << full.text;
  const auto before = records(archive_path);
  EXPECT_GT(before.size(), 3u);
  const Ran again = shell(
      search(fmt::format("--candidates {} --budget 100s --strategy random", before.size() + 2)));
  EXPECT_EQ(again.status, 0) << again.text << again.err;
  const auto after = records(archive_path);
  EXPECT_EQ(after.size(), before.size() + 2);
  for (const auto& [schedule, row] : before)
    EXPECT_TRUE(after.contains(schedule)) << schedule;
}

// Another process in the middle of writing.
class Holder {
 public:
  explicit Holder(const fs::path& path) {
    { EXPECT_TRUE(archive::Archive::open(path)); }
    sqlite3_open(path.c_str(), &connection_);
    EXPECT_EQ(sqlite3_exec(connection_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  }

  ~Holder() { sqlite3_close(connection_); }

 private:
  sqlite3* connection_ = nullptr;
};

TEST_F(CliFaults, AnArchiveThatAnotherHoldsForGoodIsSaid) {
  const Holder holder(archive_path);
  const Ran run = shell(search("--candidates 1 --budget 30s"));
  EXPECT_EQ(run.code(), "archive-locked") << run.text;
}

TEST_F(CliFaults, AnArchiveThatAnotherHoldsForAWhileIsWaitedFor) {
  auto holder = std::make_optional<Holder>(archive_path);
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    holder.reset();
  });
  const Ran run = shell(search("--candidates 1 --budget 30s"));
  EXPECT_EQ(run.status, 0) << run.text << run.err;
}

TEST_F(CliFaults, AClockThatJumpsChangesNothing) {
  // Every look at the time of day finds another day; the clocks that only count go on.
  ASSERT_TRUE(write_file(
      home / "jumps.c",
      "#include <sys/syscall.h>\n#include <sys/time.h>\n#include <time.h>\n#include <unistd.h>\n"
      "static long jump(void) { static long n; return (++n % 2 ? 86400 : -86400) * (n % 7); }\n"
      "int clock_gettime(clockid_t id, struct timespec* t) {\n"
      "  long code = syscall(SYS_clock_gettime, id, t);\n"
      "  if (id == CLOCK_REALTIME) t->tv_sec += jump();\n  return code;\n}\n"
      "int gettimeofday(struct timeval* t, void* z) {\n  (void)z;\n  struct timespec now;\n"
      "  clock_gettime(CLOCK_REALTIME, &now);\n  t->tv_sec = now.tv_sec; t->tv_usec = now.tv_nsec "
      "/ 1000;\n"
      "  return 0;\n}\n"
      "time_t time(time_t* t) {\n  struct timespec now;\n  clock_gettime(CLOCK_REALTIME, &now);\n"
      "  if (t) *t = now.tv_sec;\n  return now.tv_sec;\n}\n"));
  const auto start = steady_clock::now();
  const Ran run = shell("gcc -shared -fPIC -O1 -o jumps.so jumps.c && LD_PRELOAD=$PWD/jumps.so " +
                        search("--budget 20s"));
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  EXPECT_LT(run.out["seconds"].get<double>(), 30);
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_GT(run.out["candidates"].get<int>(), 1);
}
}  // namespace
}  // namespace warploom
