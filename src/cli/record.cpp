#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "cli/command.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "kernels/family.h"
#include "onnx/load.h"
#include "plan/fusion.h"
#include "plan/region.h"
#include "runtime/executor.h"
#include "search/budget.h"
#include "search/optimize.h"
#include "search/policy/outcomes.h"
#include "search/policy/recorder.h"
#include "target/capabilities.h"

namespace warploom::cli {
namespace {
using nlohmann::json;
using search::Outcomes;

struct Flags {
  std::vector<std::string> models;
  std::string into;
  std::string phase = "all";
  std::string target = "auto";
  double seconds = 60;
  int plans = 40;
  int jobs = 0;
  uint64_t seed = 1;
  bool closed = false;
  bool hold_out = false;
};

// The file's outcomes, or a new file's for the target.
Result<Outcomes> opened(const Flags& flags) {
  if (std::filesystem::exists(flags.into)) return search::read_outcomes(flags.into);
  Outcomes fresh;
  WARPLOOM_TRY(fresh.capabilities, search::resolve_target(flags.target));
  const Engine engine = fresh.capabilities.gpu ? Engine::cuda : Engine::cpu;
  WARPLOOM_TRY(const auto device, runtime::Executor::describe(engine));
  fresh.machine = device.name;
  return fresh;
}

// Every region of the models becomes a problem, named after its file.
Status add_models(const Flags& flags, Outcomes& outcomes) {
  for (const std::string& model : flags.models) {
    WARPLOOM_TRY(const graph::Graph given, load_onnx(model));
    const auto track = search::default_track(given);
    WARPLOOM_TRY(const auto graph, plan::lower_for_target(given, outcomes.capabilities));
    WARPLOOM_TRY(const auto partition, plan::regions_of(graph, track, outcomes.capabilities));
    const std::string stem = std::filesystem::path(model).stem().string();
    int number = 0;
    for (const plan::Region& region : partition.regions) {
      if (region.alias) continue;
      const std::string name = number++ == 0 ? stem : stem + "_" + std::to_string(number);
      const auto use = flags.hold_out ? search::Use::hold_out : search::Use::train;
      WARPLOOM_CHECK(search::add_problem(outcomes, name, {region.graph, track}, use));
    }
  }
  return ok();
}

// Propose, compile and measure in turn until the time is over; or one of them.
Status work(const Flags& flags, Outcomes& outcomes) {
  search::Recorder recorder(outcomes);
  const search::Budget budget(flags.seconds);
  const search::Growth growth{static_cast<size_t>(flags.plans), flags.seed};
  const bool is_all = flags.phase == "all";
  do {
    if (is_all || flags.phase == "propose") {
      if (flags.closed) recorder.enclose(growth);
      if (!flags.closed) recorder.grow(growth);
    }
    if (is_all || flags.phase == "compile") WARPLOOM_CHECK(recorder.compile(budget, flags.jobs));
    if (is_all || flags.phase == "measure") WARPLOOM_CHECK(recorder.measure(budget));
  } while (is_all && !flags.closed && !budget.is_over());
  return ok();
}

Answer answer_of(const Flags& flags, const Outcomes& outcomes) {
  json problems = json::array();
  std::string text;
  for (const search::RecordedProblem& problem : outcomes.problems) {
    const auto known = std::ranges::count_if(problem.plans, &search::RecordedPlan::is_known);
    const auto right = std::ranges::count_if(problem.plans, &search::RecordedPlan::is_right);
    json row = {{"name", problem.name},
                {"plans", problem.plans.size()},
                {"known", known},
                {"right", right}};
    row["best_us"] = nullptr;
    if (const auto best = problem.best_us()) row["best_us"] = *best;
    problems.push_back(std::move(row));
  }
  const json record = {{"file", flags.into}, {"problems", problems}};
  return {record, text_of("recorded", record)};
}
}  // namespace

Command record_command() {
  const auto flags = std::make_shared<Flags>();
  Command command{"record", "records what became of plans of some models, for warploom train",
                  "warploom record softmax.onnx --into outcomes.gz --budget 60s"};
  command.flags = {
      {"FILE", &flags->models, "ONNX files whose regions become problems; none: go on"},
      {"--into", &flags->into, "file of outcomes, made where there is none"},
      {"--budget", &flags->seconds, "time to record for; default 60s"},
      {"--phase",
       &flags->phase,
       "one step of it; compiling disturbs times, so it can go apart",
       {"all", "propose", "compile", "measure"}},
      {"--plans",
       &flags->plans,
       "plans more of a problem in each round; default 40",
       {},
       1,
       10'000},
      {"--closed", &flags->closed, "all plans of a sub-space of at most --plans, drawn once"},
      {"--hold-out", &flags->hold_out, "the models are kept from training, to compare policies on"},
      {"--jobs", &flags->jobs, "compilations at once; default: one a core", {}, 0, 1024},
      {"--seed", &flags->seed, "of what is drawn; default 1"},
      {"--target", &flags->target, kTargetHelp}};
  command.action = [flags](const Session&) -> Result<Answer> {
    WARPLOOM_TRY(Outcomes outcomes, opened(*flags));
    WARPLOOM_CHECK(add_models(*flags, outcomes));
    const Status done = work(*flags, outcomes);
    WARPLOOM_CHECK(search::write_outcomes(flags->into, outcomes));
    WARPLOOM_CHECK(done);
    return answer_of(*flags, outcomes);
  };
  return command;
}
}  // namespace warploom::cli
