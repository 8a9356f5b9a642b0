#include "base/file.h"
#include "cli/command.h"
#include "cli/text.h"
#include "onnx/load.h"
#include "verify/evaluator.h"
namespace warploom::cli {
namespace {
namespace fs = std::filesystem;

struct Flags {
  std::string plan, model;
  std::uint64_t seed = 0;
};

tl::unexpected<Error> unfit(const fs::path& path, std::string found) {
  return fail({ErrorCode::kPlanInvalid, "the plan cannot be read", path.string(), "a plan.json of a bundle", std::move(found),
               "make it again with `warploom optimize`"});
}

Result<graph::Graph> model_of(const Flags& flags, const nlohmann::json& plan, const fs::path& path) {
  if (!flags.model.empty()) return load_onnx(flags.model);
  if (plan.contains("model") && plan["model"].is_string()) return parse_onnx(plan["model"].get<std::string>(), path.string());
  return fail({ErrorCode::kPlanInvalid, "the plan does not hold its model", path.string(), "--model FILE", "nothing",
               "name the model that was optimized with --model"});
}

Result<Answer> judge_again(const Flags& flags) {
  fs::path path = flags.plan;
  WARPLOOM_TRY(const nlohmann::json plan, read_plan(path));
  WARPLOOM_TRY(graph::Graph graph, model_of(flags, plan, path));
  WARPLOOM_TRY(graph, graph::decompose(std::move(graph)));
  WARPLOOM_TRY(const LaunchList list, launch_list_from_json(plan["launch_list"]));
  WARPLOOM_TRY(const auto capabilities, target::capabilities_of(list.engine == Engine::cuda ? list.arch : "cpu"));
  const Track track = *track_named(plan["track"].get<std::string>());
  const kernels::Work work = kernels::work_of({graph, track});
  verify::Setup setup{.graph = std::move(graph),
                      .track = track,
                      .engine = list.engine,
                      .reference = {},
                      .floor_us = verify::floor_us(capabilities, track, work.flops, work.bytes),
                      .flops = work.flops,
                      .seed = flags.seed};
  catch_interrupts();
  WARPLOOM_TRY(auto evaluator, verify::Evaluator::start(std::move(setup), {.interrupted = &interrupted()}));
  WARPLOOM_TRY(const verify::Verdict verdict, evaluator.judge({.list = list, .whole = true, .check_ms = 20'000}));
  if (!verdict.accepted) return fail(verdict.error_found);
  nlohmann::json json = verify::to_json(verdict);
  json["plan"] = path.string();
  Rows rows = {{"verdict", green("accepted")},
               {"device", evaluator.ready().device},
               {"time", time_text(verdict.median_us)},
               {"error", fmt::format("{:.2e} relative, {:.2e} at most", verdict.error, verdict.max_error)}};
  for (const auto& evidence : verdict.evidence)
    rows.push_back(
        {std::string(verify::name_of(evidence.family)), fmt::format("{:.2e} of {:.2e} allowed, {} of {} rows", evidence.error,
                                                                    evidence.bound, evidence.rows_checked, evidence.rows)});
  return Answer{json, two_columns(rows)};
}
}  // namespace
Result<nlohmann::json> read_plan(fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) path /= "plan.json";
  WARPLOOM_TRY(const std::string text, read_file(path));
  nlohmann::json plan = nlohmann::json::parse(text, nullptr, false);
  if (!plan.is_object()) return unfit(path, "no JSON object");
  for (const char* key : {"launch_list", "track"})
    if (!plan.contains(key)) return unfit(path, std::string("no key '") + key + "'");
  if (!plan["track"].is_string() || !track_named(plan["track"].get<std::string>())) return unfit(path, "an unknown track");
  return plan;
}

Command verify_command() {
  const auto flags = std::make_shared<Flags>();
  return {"verify",
          "judge a bundle's kernels again: whole outputs, fresh inputs of every family",
          {{"PLAN", &flags->plan, "a bundle's folder or its plan.json"},
           {"--model", &flags->model, "the model, where the plan does not hold it"},
           {"--seed", &flags->seed, "of the inputs"}},
          [flags](const Session&) { return judge_again(*flags); }};
}
}  // namespace warploom::cli
