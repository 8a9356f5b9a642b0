#include "base/file.h"
#include "cli/command.h"
#include "cli/text.h"
#include "onnx/load.h"
#include "search/explore.h"
#include "verify/evaluator.h"
namespace warploom::cli {
namespace {
namespace fs = std::filesystem;

struct Flags {
  std::string plan, model, seconds = "3s";
  std::uint64_t seed = 0;
};

// An evaluator of the plan's problem, and the plan.
struct Bench {
  fs::path path;
  nlohmann::json plan;
  LaunchList list;
  double roofline_us = 0;
  std::optional<verify::Evaluator> evaluator;
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

Result<Bench> open(const Flags& flags, bool beside_reference) {
  Bench bench{flags.plan, {}, {}, 0, {}};
  WARPLOOM_TRY(bench.plan, read_plan(bench.path));
  WARPLOOM_TRY(graph::Graph graph, model_of(flags, bench.plan, bench.path));
  WARPLOOM_TRY(graph, graph::decompose(std::move(graph)));
  WARPLOOM_TRY(bench.list, launch_list_from_json(bench.plan["launch_list"]));
  const Engine engine = bench.list.engine;
  WARPLOOM_TRY(const auto capabilities, target::capabilities_of(engine == Engine::cuda ? bench.list.arch : "cpu"));
  const Track track = *track_named(bench.plan["track"].get<std::string>());
  const kernels::Work work = kernels::work_of({graph, track});
  bench.roofline_us = verify::roofline_us(capabilities, track, work.flops, work.bytes);
  verify::Setup setup{.graph = std::move(graph),
                      .track = track,
                      .engine = engine,
                      .reference = {},
                      .floor_us = verify::floor_us(capabilities, track, work.flops, work.bytes),
                      .flops = work.flops,
                      .seed = flags.seed};
  if (beside_reference) setup.reference = search::vendor_match(setup.graph, track);
  catch_interrupts();
  WARPLOOM_TRY(bench.evaluator, verify::Evaluator::start(std::move(setup), {.interrupted = &interrupted()}));
  return bench;
}

Result<verify::Verdict> judged(Bench& bench, const verify::Request& request) {
  WARPLOOM_TRY(verify::Verdict verdict, bench.evaluator->judge(request));
  if (!verdict.accepted) return fail(verdict.error_found);
  return verdict;
}

Result<Answer> judge_again(const Flags& flags) {
  WARPLOOM_TRY(Bench bench, open(flags, false));
  WARPLOOM_TRY(const verify::Verdict verdict, judged(bench, {.list = bench.list, .whole = true, .check_ms = 20'000}));
  nlohmann::json json = verify::to_json(verdict);
  json["plan"] = bench.path.string();
  Rows rows = {{"verdict", green("accepted")},
               {"device", bench.evaluator->ready().device},
               {"time", time_text(verdict.median_us)},
               {"error", fmt::format("{:.2e} relative, {:.2e} at most", verdict.error, verdict.max_error)}};
  for (const auto& evidence : verdict.evidence)
    rows.push_back(
        {std::string(verify::name_of(evidence.family)), fmt::format("{:.2e} of {:.2e} allowed, {} of {} rows", evidence.error,
                                                                    evidence.bound, evidence.rows_checked, evidence.rows)});
  return Answer{json, two_columns(rows)};
}

Result<Answer> time_again(const Flags& flags) {
  WARPLOOM_TRY(const double seconds, parse_seconds(flags.seconds, "--time"));
  WARPLOOM_TRY(Bench bench, open(flags, true));
  WARPLOOM_TRY(
      const verify::Verdict v,
      judged(bench, {.list = bench.list, .max_samples = 100'000, .timing_ms = 1e3 * seconds, .candidate_limit_ms = 60'000}));
  const verify::Ready& ready = bench.evaluator->ready();
  const auto interval = [](double median, double low, double high) {
    return fmt::format("{}  (95 % of medians {} to {})", time_text(median), time_text(low), time_text(high));
  };
  nlohmann::json json = verify::to_json(v);
  json.update({{"plan", bench.path.string()},
               {"device", ready.device},
               {"environment", ready.environment},
               {"reference", ready.reference},
               {"roofline_fraction", bench.roofline_us / v.median_us}});
  Rows rows = {{"device", ready.device},
               {"time", interval(v.median_us, v.low_us, v.high_us)},
               {"runs", std::to_string(v.repeats)},
               {"of roofline", fmt::format("{:.0f} %", 100 * bench.roofline_us / v.median_us)},
               {"error", fmt::format("{:.2e} relative", v.error)}};
  if (v.reference_us > 0) {
    json["speedup"] = v.reference_us / v.median_us;
    rows.push_back({ready.reference, interval(v.reference_us, v.reference_low_us, v.reference_high_us)});
    rows.push_back({"speedup", green(fmt::format("{:.2f}x", v.reference_us / v.median_us))});
  }
  return Answer{json, two_columns(rows)};
}

Command plan_command(std::string name, std::string help, Result<Answer> (*action)(const Flags&), bool timed) {
  const auto flags = std::make_shared<Flags>();
  Command command{std::move(name),
                  std::move(help),
                  {{"PLAN", &flags->plan, "a bundle's folder or its plan.json"},
                   {"--model", &flags->model, "the model, where the plan does not hold it"},
                   {"--seed", &flags->seed, "of the inputs"}},
                  [flags, action](const Session&) { return action(*flags); }};
  if (timed) command.flags.push_back({"--time", &flags->seconds, "how long to measure: 500ms, 3s"});
  return command;
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
  return plan_command("verify", "judge a bundle's kernels again: whole outputs, fresh inputs of every family", judge_again,
                      false);
}
Command bench_command() {
  return plan_command("bench", "time a bundle's kernels again, in turns with the vendor's where it has one", time_again, true);
}
}  // namespace warploom::cli
