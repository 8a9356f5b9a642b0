// Commands of the executable. Each subcommand is a file: a table of its flags and an action, which gives an Answer or an Error;
// run() alone parses, prints and exits.
//
// With --json exactly one object goes to standard output, for a failure {"error": {...}}; everything else, progress included,
// goes to standard error or nowhere.
#pragma once
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>
#include "base/error.h"
namespace warploom::cli {
struct Session {
  bool json = false;
  bool quiet = false;  // no progress
};

struct Answer {
  nlohmann::json json;  // what --json prints
  std::string text;     // what people read
  int status = 0;
};

using Action = std::function<Result<Answer>(const Session&)>;

// One flag, or an argument where the name has no dashes: required, unless it sets an optional or a list. What it sets must outlive the
// action, which may own it. A double is a duration, "60s", "2m", "500ms", "1.5h"; a bare number is seconds.
struct Flag {
  std::string name;
  std::variant<bool*, int*, std::optional<int>*, std::uint64_t*, double*, std::string*, std::optional<std::string>*,
               std::vector<std::string>*>
      into;
  std::string help;
  std::vector<std::string> among = {};  // the only values it takes, where there are any
};

struct Command {
  std::string name, help;
  std::vector<Flag> flags;
  Action action;
};

// optimize_command() and so on, in the order of --help.
#define WARPLOOM_COMMANDS(X) \
  X(optimize) X(run) X(report) X(new) X(compile) X(show) X(verify) X(bench) X(archive) X(doctor) X(errors) X(version)
#define WARPLOOM_COMMAND(name) Command name##_command();
WARPLOOM_COMMANDS(WARPLOOM_COMMAND)
Command completion_command(const std::vector<Command>& commands);  // the last, which knows the others

inline constexpr std::string_view kVersion = "0.1.0";  // as in CMakeLists.txt
inline constexpr const char* kTargetHelp = "auto, cpu, sm_80, sm_89 or sm_90a";
inline constexpr const char* kTrackHelp = "precision: fp32, tf32, bf16, fp16, fp8 or tolerance; default: the model's own";

// The whole program but for the hidden subcommands: parses, acts, prints; the exit status.
int run(int argc, char** argv);

// Set by SIGINT and SIGTERM once catch_interrupts() was called; a second signal ends the process at once.
const std::atomic<bool>& interrupted();
void catch_interrupts();
}  // namespace warploom::cli
