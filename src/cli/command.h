// Commands of the executable. Each subcommand is a file: a table of its flags and an action, which
// gives an Answer or an Error; run() alone parses, prints and exits.
//
// With --json exactly one object goes to standard output, for a failure {"error": {...}};
// everything else, progress included, goes to standard error or nowhere.
#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>
#include "archive/archive.h"
#include "base/rendered.h"
#include "kernels/lower.h"
#include "search/optimize.h"

namespace warploom::cli {
struct Session {
  bool json = false;
  bool quiet = false;    // no progress
  bool shut_in = false;  // started by another one of this program, to run a bundle's kernels
  std::function<void(const search::Progress&)> on_progress = {};  // what the command is busy with
};

struct Answer {
  nlohmann::json json;  // what --json prints
  std::string text;     // what people read
  int status = 0;
};

using Action = std::function<Result<Answer>(const Session&)>;

// Where a flag's value goes: each type is read in its own way.
using FlagTarget = std::variant<bool*, int*, std::optional<int>*, uint64_t*, double*, std::string*,
                                std::optional<std::string>*, std::vector<std::string>*>;

// One flag, or an argument where the name has no dashes: required, unless it sets an optional or a
// list. What it sets must outlive the action, which may own it. A double is a duration, "60s",
// "2m", "500ms", "1.5h"; a bare number is seconds. Values are checked before anything is set
// (command_line.h).
struct Flag {
  std::string name;
  FlagTarget into;
  std::string help;
  std::vector<std::string> among = {};          // the only values it takes, where there are any
  std::optional<int64_t> least = std::nullopt;  // of a whole number
  std::optional<int64_t> most = std::nullopt;
};

struct Command {
  std::string name;
  std::string help;
  std::string example;  // a command line, the last lines of its --help
  std::vector<Flag> flags;
  Action action;
};

// optimize_command() and so on, in the order of --help.
// clang-format off
#define WARPLOOM_COMMANDS(X) \
  X(optimize) X(run) X(report) X(new) X(compile) X(show) X(verify) X(bench) X(archive) X(why) \
  X(doctor) X(record) X(train) X(replay) X(walk) X(errors) X(version)
// clang-format on
#define WARPLOOM_COMMAND(name) Command name##_command();
WARPLOOM_COMMANDS(WARPLOOM_COMMAND)
Command completion_command(
    const std::vector<Command>& commands);  // the last, which knows the others

// Before a command's name: `warploom __shut_in run BUNDLE` (run_bundle.cpp).
inline constexpr const char* kShutIn = "__shut_in";
inline constexpr std::string_view kVersion = "0.1.0";  // as in CMakeLists.txt
inline constexpr const char* kTargetHelp =
    "auto, cpu, sm_80, sm_86, sm_89, sm_90a, a card, as \"H100 SXM\", or an instruction set of "
    "CPUs, as x86-64-v3";
inline constexpr const char* kAssumeHelp =
    "NAME=lower or NAME=upper: of that input's matrices a triangle alone counts";
inline constexpr const char* kConstantHelp =
    "NAME: that input holds the same in every call, so that what is made of it alone is made once";
inline constexpr const char* kDimHelp =
    "NAME=SIZE or INPUT.AXIS=SIZE: the size of a dimension that the model leaves open";
inline constexpr const char* kTrackHelp =
    "precision: fp32, tf32, bf16, fp16, fp8 or tolerance; default: the model's own";

// The whole program but for the hidden subcommands: parses, acts, prints; the exit status.
int run(int argc, char** argv);

// Set by SIGINT and SIGTERM once catch_interrupts() was called; a second signal ends the process at
// once.
const std::atomic<bool>& interrupted();
void catch_interrupts();

// The track that was named, or the model's own for "". unknown-track when it is none or cannot hold
// for the model's types.
Result<Track> track_for(const graph::Graph& graph, const std::string& name);

// What people read of a record: resources/text/NAME.txt filled in (base/rendered.h), then aligned.
// Its forms:
//   {{#time}} microseconds   {{#percent}} a share   {{#ratio}} a number of times   {{#e1}},
//   {{#e2}}, {{#f1}} digits of a number
//   {{#digits}} a key's first   {{#below}} lines, the others beneath the first   {{#bold}},
//   {{#green}} on a terminal that may be coloured
std::string text_of(const std::string& name, const nlohmann::json& record);
// The text as a terminal may show it: of what controls one, ends of lines, tabs and the colours of
// text_of() are left.
std::string without_controls(const std::string& text);
// Lines with tabs in columns: where lines follow one another, what stands before each's n-th tab is
// made as wide as the widest.
std::string aligned(const std::string& text);

// Every layout that synthesis chose: one line, why, and its pictures. (compile.cpp)
struct Drawn : layout::Picture {
  std::string tensor;
  std::string layout;
  std::string why;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Drawn, tensor, layout, why, text, svg)
std::vector<Drawn> drawn(const tile::Program& program, const synth::Solution& solution,
                         int64_t most = 64);
// Which instruction each copy and matrix statement became: an object a statement. (compile.cpp)
nlohmann::json instructions(const tile::Program& program, const synth::Solution& solution);
// What each solution would cost, and what tells it from the first: an object a solution.
// (compile.cpp)
nlohmann::json alternatives(const tile::Program& program,
                            const std::vector<synth::Solution>& solutions);
// All of these for people to read. (compile.cpp)
std::string layouts_text(const tile::Program& program, const kernels::Lowered& lowered);

// A bundle's plan, by its folder or its plan.json, which `path` then names; plan-invalid where it
// has no track or launch list. (verify.cpp)
Result<nlohmann::json> read_plan(std::filesystem::path& path);

// The archive at `file`, "": the one in the cache folder; file-missing rather than an empty one
// where there is none. (archive.cpp)
Result<archive::Archive> archive_at(const std::string& file);

// The bytes of `tensor` from a file NAME.npy, NumPy's format (versions 1 to 3, in C order), or of
// any other name: the packed bytes alone. plan-invalid where its type, shape or size is another, or
// the .npy cannot be read. (run_bundle.cpp)
Result<std::string> read_tensor(const std::filesystem::path& path, const BufferSpec& tensor);
// Writes a tensor as NumPy's format, or as packed bytes alone where NumPy has no such type (bf16,
// 8-bit floats). (run_bundle.cpp)
Status write_tensor(const std::filesystem::path& path, const BufferSpec& tensor,
                    std::string_view bytes);
}  // namespace warploom::cli
