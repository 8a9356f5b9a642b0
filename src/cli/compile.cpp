#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "codegen/launch_list.h"
#include "kernels/lower.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "search/optimize.h"
#include "synth/synthesize.h"
#include "target/capabilities.h"
#include "tile/print.h"
#include "tile/program.h"
#include "verify/program_check.h"

namespace warploom::cli {
namespace {
using kernels::Lowered;
using nlohmann::json;
using synth::Solution;
using tile::Program;
using tile::Statement;
using tile::TensorId;

// Why synthesis chose a tensor's layout; "" where it says nothing.
std::string reason_text(const Program& program, const Solution& solution, TensorId id) {
  const auto found = solution.reasons.find(id);
  if (found == solution.reasons.end()) return "";
  const auto& reason = found->second;
  const Statement* by = tile::statement_with(program, reason.by);
  if (!by) return reason.why;
  const std::string statement = tile::print(program, *by);
  return fmt::format("{}, line {}: {}", reason.why, by->location.line, statement);
}

// The solution that a program was lowered by; an empty one where there was nothing to choose.
const Solution& chosen_of(const Lowered& lowered) {
  static const Solution kNone;
  return lowered.solutions.empty() ? kNone : lowered.solutions[lowered.which];
}

// The layouts of a solution that are not the first one's, by their tensors.
json differences(const Program& program, const Solution& solution, const Solution& first) {
  json differs = json::object();
  for (const auto& [id, tv] : solution.registers) {
    const bool same = tv == first.registers.at(id);
    if (!same) differs[program.tensor(id).name] = to_string(coalesce(tv));
  }
  for (const auto memories : {&Solution::shared, &Solution::prepacked})
    for (const auto& [id, memory] : solution.*memories) {
      const bool same = memory == (first.*memories).at(id);
      if (!same) differs[program.tensor(id).name] = to_string(memory);
    }
  return differs;
}
}  // namespace

std::vector<Drawn> drawn(const Program& program, const Solution& solution, int64_t most) {
  std::vector<Drawn> out;
  const auto add = [&](TensorId id, layout::Picture picture, std::string layout) {
    const std::string why = reason_text(program, solution, id);
    const std::string& name = program.tensor(id).name;
    out.push_back({std::move(picture), name, std::move(layout), why});
  };
  for (const auto& [id, tv] : solution.registers)
    add(id, draw(tv, most), to_string(coalesce(tv)));
  for (const auto& [id, memory] : solution.shared)
    add(id, draw(memory, most), to_string(memory));
  for (const auto& [id, memory] : solution.prepacked)  // in no banks
    add(id, {}, "packed " + to_string(memory));
  return out;
}

json instructions(const Program& program, const Solution& solution) {
  json rows = json::array();
  for (const auto& [id, choice] : solution.choices) {
    const Statement* statement = tile::statement_with(program, id);
    const bool exchanged = statement->is<tile::ConvertLayout>() && choice.scratch.dims.empty();
    std::string name = exchanged ? "shfl" : "ld and st";
    if (choice.instruction) name = choice.instruction->name;
    json row;
    row["statement"] = tile::print(program, *statement);
    row["line"] = statement->location.line;
    row["instruction"] = name;
    row["elements"] = choice.vector;
    row["why"] = choice.why;
    rows.push_back(std::move(row));
  }
  const auto by_line = [](const auto& a, const auto& b) { return a["line"] < b["line"]; };
  std::sort(rows.begin(), rows.end(), by_line);
  return rows;
}

json alternatives(const Program& program, const std::vector<Solution>& solutions) {
  json record = json::array();
  for (const Solution& solution : solutions) {
    json row;
    row["predicted_us"] = solution.cost.us;
    row["bound"] = solution.cost.bound();
    row["blocks_per_multiprocessor"] = solution.cost.resident;
    row["differs"] = differences(program, solution, solutions[0]);
    record.push_back(std::move(row));
  }
  return record;
}

std::string layouts_text(const Program& program, const Lowered& lowered) {
  const Solution& solution = chosen_of(lowered);
  json record;
  record["layouts"] = drawn(program, solution);
  record["instructions"] = instructions(program, solution);
  record["solutions"] = alternatives(program, lowered.solutions);
  const auto same = [](json a, json b) {
    a.erase("statement");
    b.erase("statement");
    return a == b;
  };
  // Steps that are written out several times stand on one line of their source.
  json& rows = record["instructions"];
  const auto end = std::unique(rows.begin(), rows.end(), same);
  rows.erase(end, rows.end());
  for (json& row : record["solutions"])
    row["instead"] = row["differs"].empty() ? "" : row["differs"].dump();
  return text_of("layouts", record);
}

namespace {
namespace fs = std::filesystem;

struct Flags {
  std::string file;
  std::string target = "sm_90a";
  std::string out;
  std::string layouts = "none";
  bool check = false;
  uint64_t seed = 1;
  uint64_t solution = 0;
};

Result<Answer> compile(const Flags& flags) {
  WARPLOOM_TRY(const std::string text, read_file(flags.file));
  WARPLOOM_TRY(const Program program, tile::parse(text, flags.file));
  WARPLOOM_TRY(const target::Capabilities capabilities, search::resolve_target(flags.target));
  if (flags.check && !capabilities.gpu)
    return fail({ErrorCode::kFlagsContradict, "the emulator runs kernels for a GPU",
                 "--check, --target", "a GPU target", capabilities.arch,
                 "name sm_80, sm_86, sm_89, sm_90a or a card"});
  WARPLOOM_TRY(const kernels::Lowered lowered,
               kernels::lower(program, capabilities, flags.solution));
  if (lowered.which != flags.solution) {
    const std::string found = fmt::format("{} of {}", flags.solution, lowered.solutions.size());
    return fail({ErrorCode::kUsage, "synthesis found fewer solutions", "--solution",
                 "the number of a solution", found, "take a lower number; 0 is the best"});
  }
  const Solution& solution = chosen_of(lowered);
  const Kernel& kernel = lowered.list.kernels[0];
  json record;
  record["program"] = program.name;
  record["target"] = capabilities.arch;
  record["launch_list"] = to_json(lowered.list);
  record["instructions"] = instructions(program, solution);
  record["solutions"] = alternatives(program, lowered.solutions);
  std::string shown = flags.out.empty() ? kernel.source : "";
  if (!flags.out.empty()) WARPLOOM_CHECK(write_file(flags.out, kernel.source));
  for (const Drawn& one : drawn(program, solution)) {
    record["layouts"][one.tensor] = one.layout;
    record["reasons"][one.tensor] = one.why;
    if (flags.layouts != "svg" || one.svg.empty()) continue;
    fs::path picture = flags.out.empty() ? "." : flags.out;
    picture.replace_filename(program.name + "_" + one.tensor + ".svg");
    WARPLOOM_CHECK(write_file(picture, one.svg));
  }
  if (flags.layouts == "text") shown += layouts_text(program, lowered);
  if (!flags.check) return Answer{record, shown};
  WARPLOOM_TRY(const verify::ProgramVerdict verdict,
               verify::check_program(program, lowered.list, flags.seed));
  if (!verdict.agrees) {
    Error error{ErrorCode::kCandidateWrong, "the kernel and the program's meaning differ"};
    error.place = flags.file;
    error.expected = fmt::format("relative error of at most {:.1e}", verdict.bound);
    error.found = fmt::format("{:.1e}", verdict.error);
    error.remedy = "please report it: synthesis or code generation is wrong";
    return fail(error);
  }
  record["verdict"] = verdict;
  return Answer{record, shown + text_of("check", record["verdict"])};
}
}  // namespace

Command compile_command() {
  const auto flags = std::make_shared<Flags>();
  Command command;
  command.name = "compile";
  command.help =
      "a tile program of one's own: readable source, its layouts, a verdict on the emulator";
  command.example = "warploom compile examples/tile/softmax.tile --check";
  command.flags = {
      {"FILE", &flags->file, "a tile program as text (docs/tile.md)"},
      {"--target", &flags->target, kTargetHelp},
      {"--out", &flags->out, "where the source goes; default: standard output"},
      {"--layouts", &flags->layouts, "draw the layouts", {"none", "text", "svg"}},
      {"--check", &flags->check,
       "run it on the emulator and compare it with the program's meaning"},
      {"--solution", &flags->solution, "which of synthesis's solutions, cheapest predicted first"},
      {"--seed", &flags->seed, "of the inputs"}};
  command.action = [flags](const Session&) { return compile(*flags); };
  return command;
}
}  // namespace warploom::cli
