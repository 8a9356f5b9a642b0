#include "base/file.h"
#include "cli/command.h"
#include "tile/print.h"
#include "verify/program_check.h"

namespace warploom::cli {
std::vector<Drawn> drawn(const tile::Program& program, const synth::Solution& solution,
                         int64_t most) {
  std::vector<Drawn> out;
  const auto why = [&](tile::TensorId id) {
    const auto found = solution.reasons.find(id);
    if (found == solution.reasons.end()) return std::string();
    const synth::Reason& reason = found->second;
    const tile::Statement* by = tile::statement_with(program, reason.by);
    return by ? fmt::format("{}, line {}: {}", reason.why, by->location.line,
                            tile::print(program, *by))
              : reason.why;
  };
  for (const auto& [id, tv] : solution.registers)
    out.push_back({draw(tv, most), program.tensor(id).name, to_string(coalesce(tv)), why(id)});
  for (const auto& [id, memory] : solution.shared)
    out.push_back({draw(memory, most), program.tensor(id).name, to_string(memory), why(id)});
  for (const auto& [id, memory] : solution.prepacked)  // in no banks
    out.push_back({{}, program.tensor(id).name, "packed " + to_string(memory), why(id)});
  return out;
}

nlohmann::json instructions(const tile::Program& program, const synth::Solution& solution) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [id, choice] : solution.choices) {
    const tile::Statement* statement = tile::statement_with(program, id);
    const bool exchanged = statement->is<tile::ConvertLayout>() && choice.scratch.dims.empty();
    const std::string otherwise = exchanged ? "shfl" : "ld and st";
    rows.push_back(
        {{"statement", tile::print(program, *statement)},
         {"line", statement->location.line},
         {"instruction", choice.instruction ? std::string(choice.instruction->name) : otherwise},
         {"elements", choice.vector},
         {"why", choice.why}});
  }
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a["line"] < b["line"]; });
  return rows;
}

nlohmann::json alternatives(const tile::Program& program,
                            const std::vector<synth::Solution>& solutions) {
  nlohmann::json json = nlohmann::json::array();
  for (const synth::Solution& solution : solutions) {
    nlohmann::json differs = nlohmann::json::object();
    for (const auto& [id, tv] : solution.registers)
      if (!(tv == solutions[0].registers.at(id)))
        differs[program.tensor(id).name] = to_string(coalesce(tv));
    for (const auto memories : {&synth::Solution::shared, &synth::Solution::prepacked})
      for (const auto& [id, memory] : solution.*memories)
        if (!(memory == (solutions[0].*memories).at(id)))
          differs[program.tensor(id).name] = to_string(memory);
    json.push_back({{"predicted_us", solution.cost.us},
                    {"bound", solution.cost.bound()},
                    {"blocks_per_multiprocessor", solution.cost.resident},
                    {"differs", differs}});
  }
  return json;
}

std::string layouts_text(const tile::Program& program, const kernels::Lowered& lowered) {
  const synth::Solution none;
  const synth::Solution& solution =
      lowered.solutions.empty() ? none : lowered.solutions[lowered.which];
  nlohmann::json record = {{"layouts", drawn(program, solution)},
                           {"instructions", instructions(program, solution)},
                           {"solutions", alternatives(program, lowered.solutions)}};
  const auto same = [](nlohmann::json a, nlohmann::json b) {
    a.erase("statement");
    b.erase("statement");
    return a == b;
  };
  nlohmann::json& rows = record["instructions"];  // steps that are written out several times stand
                                                  // on one line of their source
  rows.erase(std::unique(rows.begin(), rows.end(), same), rows.end());
  for (nlohmann::json& row : record["solutions"])
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
  WARPLOOM_TRY(const tile::Program program, tile::parse(text, flags.file));
  WARPLOOM_TRY(const target::Capabilities capabilities, search::resolve_target(flags.target));
  if (flags.check && !capabilities.gpu)
    return fail({ErrorCode::kFlagsContradict, "the emulator runs kernels for a GPU",
                 "--check, --target", "a GPU target", capabilities.arch,
                 "name sm_80, sm_89 or sm_90a"});
  WARPLOOM_TRY(const kernels::Lowered lowered,
               kernels::lower(program, capabilities, flags.solution));
  if (lowered.which != flags.solution)
    return fail({ErrorCode::kUsage, "synthesis found fewer solutions", "--solution",
                 "a number it found",
                 fmt::format("{} of {}", flags.solution, lowered.solutions.size()),
                 "take a lower number; 0 is the best"});
  const synth::Solution none;
  const synth::Solution& solution =
      lowered.solutions.empty() ? none : lowered.solutions[lowered.which];
  const Kernel& kernel = lowered.list.kernels[0];
  nlohmann::json json = {{"program", program.name},
                         {"target", capabilities.arch},
                         {"launch_list", to_json(lowered.list)},
                         {"instructions", instructions(program, solution)},
                         {"solutions", alternatives(program, lowered.solutions)}};
  std::string shown = flags.out.empty() ? kernel.source : "";
  if (!flags.out.empty()) WARPLOOM_CHECK(write_file(flags.out, kernel.source));
  for (const Drawn& one : drawn(program, solution)) {
    json["layouts"][one.tensor] = one.layout;
    json["reasons"][one.tensor] = one.why;
    if (flags.layouts != "svg" || one.svg.empty()) continue;
    const fs::path picture = fs::path(flags.out.empty() ? "." : flags.out)
                                 .replace_filename(program.name + "_" + one.tensor + ".svg");
    WARPLOOM_CHECK(write_file(picture, one.svg));
  }
  if (flags.layouts == "text") shown += layouts_text(program, lowered);
  if (!flags.check) return Answer{json, shown};
  WARPLOOM_TRY(const verify::ProgramVerdict verdict,
               verify::check_program(program, lowered.list, flags.seed));
  if (!verdict.agrees)
    return fail({ErrorCode::kCandidateWrong, "the kernel and the program's meaning differ",
                 flags.file, fmt::format("relative error of at most {:.1e}", verdict.bound),
                 fmt::format("{:.1e}", verdict.error),
                 "please report it: synthesis or code generation is wrong"});
  json["verdict"] = verdict;
  return Answer{json, shown + text_of("check", json["verdict"])};
}
}  // namespace

Command compile_command() {
  const auto flags = std::make_shared<Flags>();
  return {
      "compile",
      "a tile program of one's own: readable source, its layouts, a verdict on the emulator",
      "warploom compile examples/tile/softmax.tile --check",
      {{"FILE", &flags->file, "a tile program as text (docs/tile.md)"},
       {"--target", &flags->target, kTargetHelp},
       {"--out", &flags->out, "where the source goes; default: standard output"},
       {"--layouts", &flags->layouts, "draw the layouts", {"none", "text", "svg"}},
       {"--check", &flags->check,
        "run it on the emulator and compare it with the program's meaning"},
       {"--solution", &flags->solution, "which of synthesis's solutions, cheapest predicted first"},
       {"--seed", &flags->seed, "of the inputs"}},
      [flags](const Session&) { return compile(*flags); }};
}
}  // namespace warploom::cli
