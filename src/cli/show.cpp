#include "base/file.h"
#include "cli/command.h"
#include "cli/text.h"
#include "onnx/load.h"
#include "tile/print.h"
namespace warploom::cli {
namespace {
struct Flags {
  std::string file, target = "auto", track, schedule, what = "graph";
};

std::string describe_space(const kernels::Space& space) {
  std::string text = fmt::format("{}: {} combinations\n", space.family, space.size());
  for (const auto& field : space.fields)
    text += fmt::format("  {:<14} {}\n  {:<14} {}\n", field.name, fmt::join(field.values, " "), "", field.meaning);
  return text;
}

nlohmann::json json_of(const kernels::Space& space) {
  nlohmann::json fields = nlohmann::json::array();
  for (const auto& field : space.fields)
    fields.push_back({{"name", field.name}, {"values", field.values}, {"meaning", field.meaning}});
  return {{"family", space.family}, {"size", space.size()}, {"fields", fields}};
}

Answer answer_of(const Flags& flags, const nlohmann::json& json, std::string text) {
  nlohmann::json object = {{"file", flags.file}, {"what", flags.what}};
  object.update(json);
  return {object, std::move(text)};
}

Result<Answer> show(const Flags& flags) {
  WARPLOOM_TRY(graph::Graph graph, load_onnx(flags.file));
  if (flags.what == "graph") return answer_of(flags, {{"graph", graph::to_text(graph)}}, graph::to_text(graph));
  WARPLOOM_TRY(const Track track, track_for(graph, flags.track));
  WARPLOOM_TRY(const target::Capabilities capabilities, search::resolve_target(flags.target));
  const std::string target = flags.target != "auto" ? flags.target : capabilities.gpu ? capabilities.arch : "cpu";
  const kernels::Region region{std::move(graph), track};
  if (flags.what == "space") {
    nlohmann::json spaces = nlohmann::json::array();
    std::string text;
    for (const auto* family : kernels::families_for(region, capabilities)) {
      const kernels::Space space = family->space(region, capabilities);
      spaces.push_back(json_of(space));
      text += describe_space(space);
    }
    if (text.empty()) text = "no family of schedules covers the model on " + target + "\n";
    return answer_of(flags, {{"target", target}, {"families", spaces}}, text);
  }
  WARPLOOM_TRY(const kernels::Schedule schedule,
               flags.schedule.empty() ? default_schedule(region, capabilities) : parse_schedule(flags.schedule));
  const kernels::Family* chosen = nullptr;
  for (const auto* family : kernels::families_for(region, capabilities))
    if (family->name() == schedule.family) chosen = family;
  if (!chosen)
    return fail({ErrorCode::kNoSchedule, "the schedule's family does not cover the model on this target", "--schedule",
                 "a family that `--what space` lists", schedule.family, "take another family or target"});
  WARPLOOM_CHECK(chosen->legal(region, schedule, capabilities));
  nlohmann::json json = {{"target", target}, {"track", name_of(track)}, {"schedule", schedule.text()}};
  std::string text = "// " + schedule.text() + "\n";
  if (flags.what == "program") {
    WARPLOOM_TRY(const kernels::Family::Programs built, chosen->programs(region, schedule, capabilities));
    nlohmann::json programs = nlohmann::json::array();
    for (const auto& program : built.programs) {
      programs.push_back(tile::print(program));
      text += tile::print(program) + "\n";
    }
    json["programs"] = programs;
    return answer_of(flags, json, text);
  }
  WARPLOOM_TRY(const LaunchList list, kernels::build(region, schedule, capabilities));
  json["predicted_us"] = list.predicted_us;
  if (flags.what == "cost") return answer_of(flags, json, fmt::format("{}predicted {:.1f} us\n", text, list.predicted_us));
  for (const auto& kernel : list.kernels)
    text += fmt::format("// {}: grid {}x{}x{}, {} threads, {} bytes of shared memory\n{}\n", kernel.name, kernel.grid[0],
                        kernel.grid[1], kernel.grid[2], kernel.threads, kernel.shared_bytes, kernel.source);
  json["launch_list"] = to_json(list);
  return answer_of(flags, json, text);
}
}  // namespace
Command show_command() {
  const auto flags = std::make_shared<Flags>();
  return {"show",
          "a model's graph, its schedule space, a tile program, the emitted source or its predicted cost",
          {{"FILE", &flags->file, "an ONNX model, binary or .textproto"},
           {"--what", &flags->what, "what to show", {"graph", "space", "program", "source", "cost"}},
           {"--target", &flags->target, kTargetHelp},
           {"--track", &flags->track, kTrackHelp},
           {"--schedule", &flags->schedule, "\"FAMILY FIELD=VALUE …\"; default: the most promising"}},
          [flags](const Session&) { return show(*flags); }};
}
}  // namespace warploom::cli
