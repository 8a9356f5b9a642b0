#include <fmt/ranges.h>
#include <filesystem>
#include "base/file.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/print.h"
#include "kernels/lower.h"
#include "layout/draw.h"
#include "tile/print.h"
#include "verify/program_check.h"

namespace warploom::cli {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string file, target = "sm_90a", out, layouts = "none";
  bool check = false;
  std::uint64_t seed = 1;
};

// Every layout that synthesis chose: one line, and its picture where wanted.
struct Drawn {
  std::string tensor, layout, text, svg;
};
std::vector<Drawn> drawn(const tile::Program& program, const synth::Solution& solution) {
  std::vector<Drawn> out;
  for (const auto& [id, tv] : solution.registers)
    out.push_back({program.tensor(id).name, to_string(coalesce(tv)), draw_text(tv), draw_svg(tv)});
  for (const auto& [id, memory] : solution.shared)
    out.push_back({program.tensor(id).name, to_string(memory), draw_text(memory), draw_svg(memory)});
  return out;
}

// Which instruction each copy and matrix statement became.
nlohmann::json instructions(const tile::Program& program, const synth::Solution& solution) {
  std::vector<std::pair<int, nlohmann::json>> rows;
  for (const auto& [statement, choice] : solution.choices)
    rows.push_back({statement->location.line,
                    {{"statement", tile::print(program, *statement)},
                     {"line", statement->location.line},
                     {"instruction", choice.instruction ? std::string(choice.instruction->name) : "ld and st"},
                     {"elements", choice.vector}}});
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  nlohmann::json json = nlohmann::json::array();
  for (auto& [line, row] : rows) json.push_back(std::move(row));
  return json;
}

Result<Answer> compile(const Flags& flags) {
  WARPLOOM_TRY(const std::string text, read_file(flags.file));
  WARPLOOM_TRY(const tile::Program program, tile::parse(text, flags.file));
  WARPLOOM_TRY(const target::Capabilities capabilities, search::resolve_target(flags.target));
  if (flags.check && !capabilities.gpu)
    return fail({ErrorCode::kFlagsContradict, "the emulator runs kernels for a GPU", "--check, --target",
                 "a GPU target", capabilities.arch, "name sm_80, sm_89 or sm_90a"});
  WARPLOOM_TRY(const kernels::Lowered lowered, kernels::lower(program, capabilities));
  const Kernel& kernel = lowered.list.kernels[0];
  nlohmann::json json = {{"program", program.name},
                         {"target", capabilities.arch},
                         {"launch_list", to_json(lowered.list)},
                         {"instructions", instructions(program, lowered.solution)}};
  std::string shown = flags.out.empty() ? kernel.source : "";
  if (!flags.out.empty()) WARPLOOM_CHECK(write_file(flags.out, kernel.source));
  for (const Drawn& one : drawn(program, lowered.solution)) {
    json["layouts"][one.tensor] = one.layout;
    if (flags.layouts == "text") shown += fmt::format("\n{}: {}\n{}", one.tensor, one.layout, one.text);
    if (flags.layouts != "svg") continue;
    const fs::path picture =
        fs::path(flags.out.empty() ? "." : flags.out).replace_filename(program.name + "_" + one.tensor + ".svg");
    WARPLOOM_CHECK(write_file(picture, one.svg));
  }
  if (!flags.check) return Answer{json, shown};
  WARPLOOM_TRY(const verify::ProgramVerdict verdict, verify::check_program(program, lowered.list, flags.seed));
  if (!verdict.agrees)
    return fail({ErrorCode::kCandidateWrong, "the kernel and the program's meaning differ", flags.file,
                 fmt::format("relative error of at most {:.1e}", verdict.bound), fmt::format("{:.1e}", verdict.error),
                 "please report it: synthesis or code generation is wrong"});
  json["verdict"] = {{"agrees", true},
                     {"error", verdict.error},
                     {"bound", verdict.bound},
                     {"wavefronts", verdict.wavefronts},
                     {"wavefronts_least", verdict.wavefronts_least}};
  shown += two_columns({{"verdict", green("agrees with the interpreter, no hazard on the emulator")},
                        {"error", fmt::format("{:.1e} relative, {:.1e} allowed", verdict.error, verdict.bound)},
                        {"shared memory", fmt::format("{} wavefronts, {} without bank conflicts", verdict.wavefronts,
                                                      verdict.wavefronts_least)}});
  return Answer{json, shown};
}

}  // namespace

Command compile_command() {
  const auto flags = std::make_shared<Flags>();
  return {"compile",
          "a tile program of one's own: readable source, its layouts, a verdict on the emulator",
          {{"FILE", &flags->file, "a tile program as text (docs/tile.md)"},
           {"--target", &flags->target, kTargetHelp},
           {"--out", &flags->out, "where the source goes; default: standard output"},
           {"--layouts", &flags->layouts, "draw the layouts", {"none", "text", "svg"}},
           {"--check", &flags->check, "run it on the emulator and compare it with the program's meaning"},
           {"--seed", &flags->seed, "of the inputs"}},
          [flags](const Session&) { return compile(*flags); }};
}

}  // namespace warploom::cli
