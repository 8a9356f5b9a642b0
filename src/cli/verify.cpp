#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "codegen/launch_list.h"
#include "export/as_built.h"
#include "export/as_written.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "onnx/load.h"
#include "plan/prepare.h"
#include "runtime/plan_file.h"
#include "search/choice_search.h"
#include "search/headline.h"
#include "search/optimize.h"
#include "search/outcome.h"
#include "search/task.h"
#include "target/capabilities.h"
#include "target/instruction_set.h"
#include "vendor/match.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::cli {
namespace {
using graph::Graph;
using nlohmann::json;
using verify::Evaluator;
using verify::Verdict;

namespace fs = std::filesystem;

struct Flags {
  std::string plan;
  std::string model;
  std::string problem;
  std::string track;
  std::string target = "auto";
  ModelOptions options;  // of the model or the problem
  std::vector<std::string> constants;
  double limit_seconds = 10;
  double seconds = 3;
  uint64_t seed = 0;
  bool whole_bundle = false;  // also what is built with its kernels must be what was written
  bool exact = false;
};

// What is judged, the kernels of a bundle's plan or of a file that anyone wrote, and an evaluator
// of its problem.
struct Bench {
  fs::path path;
  Graph operators;                     // as the model has them
  Graph graph;                         // of primitives; the problem takes it
  std::vector<std::string> constants;  // of its inputs, beside what the model holds
  Track track = Track::fp32;
  target::Capabilities capabilities;
  LaunchList list;
  std::string file;           // whose text was judged; empty: the plan's own
  bool whole_bundle = false;  // what was judged is all that people build of it
  uint64_t seed = 0;
  verify::Bound bound = {};
  std::optional<Evaluator> evaluator;
};

// What was said of the model when the plan was made, behind what is said now.
std::vector<std::string> said_of_model(const json& plan, const char* key,
                                       std::vector<std::string> now) {
  for (const auto& said : plan.value(key, json::array()))
    now.push_back(said.is_string() ? said.get<std::string>() : said.dump());
  return now;
}

Status open_plan(const Flags& flags, Bench& bench) {
  if (bench.path.extension() == ".cu" || bench.path.extension() == ".cpp")
    return fail({ErrorCode::kUsage, "a kernel file does not say what it computes", "--problem",
                 "an ONNX model", "nothing", "name the model with --problem"});
  std::error_code ignored;
  bench.whole_bundle = flags.whole_bundle && fs::is_directory(bench.path, ignored);
  WARPLOOM_TRY(const json plan, read_plan(bench.path));
  const auto held = plan.find("model");
  if (flags.model.empty() && (held == plan.end() || !held->is_string()))
    return fail({ErrorCode::kPlanInvalid, "the plan does not hold its model", bench.path.string(),
                 "--model FILE", "nothing", "name the model that was optimized with --model"});
  const ModelOptions options{said_of_model(plan, "assume", flags.options.assume),
                             said_of_model(plan, "dim", flags.options.dims)};
  bench.constants = said_of_model(plan, "constant", flags.constants);
  if (flags.model.empty())
    WARPLOOM_TRY(bench.graph, parse_onnx(held->get<std::string>(), bench.path.string()));
  else
    WARPLOOM_TRY(bench.graph, load_onnx(flags.model, options));
  WARPLOOM_TRY(LaunchList list, launch_list_from_json(plan["launch_list"]));
  if (bench.whole_bundle)
    WARPLOOM_CHECK(export_::check_written(bench.path.parent_path(), plan, list));
  WARPLOOM_TRY(auto built, export_::as_built(bench.path.parent_path(), plan, std::move(list)));
  bench.list = std::move(built.list);
  bench.file = built.kernel_file;
  const std::string& arch = bench.list.arch;
  const bool is_named = bench.list.engine == Engine::cuda || target::instruction_set(arch);
  const std::string target = is_named ? arch : "cpu";
  WARPLOOM_TRY(bench.capabilities, search::resolve_target(target));
  bench.track = *track_named(plan["track"].get<std::string>());
  bench.operators = bench.graph;
  WARPLOOM_TRY(bench.graph, graph::decompose(std::move(bench.graph)));
  if (!bench.whole_bundle) return ok();
  return export_::check_constants(bench.path.parent_path(), plan, bench.list, bench.graph);
}

// A kernel file is for a GPU or for this machine's cores by its ending.
Status open_kernels(const Flags& flags, Bench& bench) {
  const bool gpu = bench.path.extension() == ".cu";
  WARPLOOM_TRY(const std::string text, read_file(bench.path));
  WARPLOOM_TRY(bench.graph, load_onnx(flags.problem, flags.options));
  WARPLOOM_TRY(bench.track, track_for(bench.graph, flags.track));
  bench.operators = bench.graph;
  WARPLOOM_TRY(bench.graph, graph::decompose(std::move(bench.graph)));
  const bool named = gpu || flags.target != "auto";
  WARPLOOM_TRY(bench.capabilities, search::resolve_target(named ? flags.target : "cpu"));
  if (bench.capabilities.gpu != gpu)
    return fail({ErrorCode::kFlagsContradict, "the kernel file is for another kind of target",
                 "--target", gpu ? "a GPU, for a .cu file" : "cpu, for a .cpp file",
                 bench.capabilities.arch, "see `warploom doctor`"});
  LaunchList list{gpu ? Engine::cuda : Engine::cpu, bench.capabilities.arch};
  for (const auto id : bench.graph.inputs)
    list.inputs.push_back(kernels::spec_of(bench.graph.tensor(id)));
  for (const auto id : bench.graph.outputs)
    list.outputs.push_back(kernels::spec_of(bench.graph.tensor(id)));
  for (const auto& tensor : bench.graph.tensors)
    if (tensor.constant) list.inputs.push_back(kernels::spec_of(tensor));
  WARPLOOM_TRY(bench.list, declared_list(text, bench.path.string(), list));
  bench.file = bench.path.string();
  return ok();
}

// Whoever wrote the kernels must not know their inputs before: the seed is drawn, unless it is
// given to see a verdict again.
uint64_t drawn_seed() {
  std::random_device entropy;
  const uint64_t drawn = uint64_t{entropy()} << 32 | entropy();
  return std::max<uint64_t>(drawn, 1);
}

Result<Bench> open(const Flags& flags) {
  Bench bench{.path = flags.plan, .seed = flags.seed == 0 ? drawn_seed() : flags.seed};
  const auto from_plan = [&] {
    return runtime::reading_plan(flags.plan, [&] { return open_plan(flags, bench); });
  };
  WARPLOOM_CHECK(flags.problem.empty() ? from_plan() : open_kernels(flags, bench));
  const std::set<std::string> constants(bench.constants.begin(), bench.constants.end());
  WARPLOOM_CHECK(plan::check_constants(bench.graph, constants));
  // Kernels may compute it by another graph, which does less.
  const double least = search::least_flops(bench.graph, bench.track, bench.capabilities, constants);
  auto task = search::make_task({std::move(bench.graph), bench.track}, bench.capabilities,
                                bench.seed, constants, least);
  bench.bound = task.bound;
  task.setup.reference = vendor::match_region(task.setup.graph, bench.operators, bench.track);
  catch_interrupts();
  WARPLOOM_TRY(bench.evaluator,
               Evaluator::start(std::move(task.setup), {.interrupted = &interrupted()}));
  return bench;
}

Result<Verdict> judged(Bench& bench, const verify::Request& request) {
  WARPLOOM_TRY(Verdict verdict, bench.evaluator->judge(request));
  if (!verdict.accepted) return fail(verdict.error_found);
  return verdict;
}

// A verdict with what people read of it: its times, in turns with the reference where there is one.
json told(const Bench& bench, const Flags& flags, const Verdict& verdict) {
  const auto& ready = bench.evaluator->ready();
  json record = verify::to_json(verdict);
  json reference;
  if (!ready.reference.empty()) reference = ready.reference;
  record[flags.problem.empty() ? "plan" : "kernel"] = bench.path.string();
  record["device"] = ready.device;
  record["seed"] = bench.seed;
  record["environment"] = ready.environment;
  record["reference"] = reference;
  record["best_us"] = record["median_us"];
  record["best_interval_us"] = {record["low_us"], record["high_us"]};
  record["reference_interval_us"] = {record["reference_low_us"], record["reference_high_us"]};
  record.update(search::against_bound(bench.bound, verdict.median_us));
  return record;
}

Result<Answer> judge_again(const Flags& given) {
  Flags flags = given;
  flags.whole_bundle = true;
  WARPLOOM_TRY(Bench bench, open(flags));
  verify::Request request;
  request.list = bench.list;
  request.whole = true;
  request.check_ms = 20'000;
  request.foreign = true;
  request.exact = flags.exact;
  request.warm_up = true;
  request.min_samples = 10;
  request.candidate_limit_ms = 1e3 * flags.limit_seconds;
  WARPLOOM_TRY(const Verdict verdict, judged(bench, request));
  json record = told(bench, flags, verdict);
  record["judged"] = nullptr;
  if (!bench.file.empty()) record["judged"] = bench.file;
  record["whole_bundle"] = bench.whole_bundle;
  record["built_not_judged"] = json::array();
  if (bench.whole_bundle) record["built_not_judged"] = export_::built_in(bench.path.parent_path());
  return Answer{record, text_of("verdict", search::with_words(record))};
}

Result<Answer> time_again(const Flags& flags) {
  WARPLOOM_TRY(Bench bench, open(flags));
  verify::Request request;
  request.list = bench.list;
  request.foreign = true;
  request.series = true;
  request.warm_up = true;
  request.min_samples = 10;
  request.max_samples = 100'000;
  request.timing_ms = 1e3 * flags.seconds;
  request.candidate_limit_ms = 60'000;
  WARPLOOM_TRY(const Verdict verdict, judged(bench, request));
  const json record = told(bench, flags, verdict);
  return Answer{record, text_of("times", search::with_words(record))};
}

// A command on a bundle, or on a file of kernels and its problem, without its name and help.
Command judging_command(const std::shared_ptr<Flags>& flags,
                        Result<Answer> (*action)(const Flags&)) {
  Command command;
  command.flags = {
      {"PLAN", &flags->plan,
       "a bundle's folder, or its plan.json for the kernels alone; with --problem a kernel file, "
       ".cu or .cpp"},
      {"--model", &flags->model, "the model, where the plan does not hold it"},
      {"--problem", &flags->problem,
       "the model that a kernel file computes (docs/verification.md)"},
      {"--dim", &flags->options.dims, std::string("of --model or --problem; ") + kDimHelp},
      {"--constant", &flags->constants, std::string("of --model or --problem; ") + kConstantHelp},
      {"--assume", &flags->options.assume, std::string("of --model or --problem; ") + kAssumeHelp},
      {"--track", &flags->track, std::string("of a kernel file; ") + kTrackHelp},
      {"--target", &flags->target, std::string("of a kernel file: ") + kTargetHelp},
      {"--seed", &flags->seed, "of the inputs, to see a verdict again; 0: drawn anew"}};
  command.action = [flags, action](const Session&) { return action(*flags); };
  return command;
}
}  // namespace

Result<nlohmann::json> read_plan(fs::path& path) {
  WARPLOOM_TRY(json plan, runtime::read_plan(path, {"launch_list", "track"}));
  if (plan["track"].is_string() && track_named(plan["track"].get<std::string>())) return plan;
  return runtime::unfit_plan(path, "an unknown track");
}

Command verify_command() {
  const auto flags = std::make_shared<Flags>();
  Command command = judging_command(flags, judge_again);
  command.name = "verify";
  command.help =
      "judge a bundle's kernels, or anybody's: whole outputs, fresh inputs of every family";
  command.example = "warploom verify out/matmul_small";
  command.flags.push_back(
      {"--exact", &flags->exact, "held to infinities and NaN, whatever the kernels declare"});
  command.flags.push_back(
      {"--limit", &flags->limit_seconds, "how long one launch may take: 500ms, 10s"});
  return command;
}

Command bench_command() {
  const auto flags = std::make_shared<Flags>();
  Command command = judging_command(flags, time_again);
  command.name = "bench";
  command.help = "time such kernels, in turns with the vendor's where it has one";
  command.example = "warploom bench out/matmul_small --time 3s";
  command.flags.push_back({"--time", &flags->seconds, "how long to measure: 500ms, 3s"});
  return command;
}
}  // namespace warploom::cli
