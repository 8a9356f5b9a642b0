#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rows.h"
#include "cli/command.h"
#include "codegen/launch_list.h"
#include "graph/parallel.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"
#include "kernels/family.h"
#include "search/action/actions_of.h"
#include "search/closed_space.h"
#include "search/near.h"
#include "search/policy/outcomes.h"
#include "search/policy/policy.h"
#include "search/problem_record.h"
#include "search/search_space.h"
#include "search/strategy/curves.h"
#include "search/strategy/strategy.h"

namespace warploom::cli {
namespace {
using nlohmann::json;
using search::Curve;
using search::PolicyKind;
using search::Recording;
using search::Strategy;

const std::vector<std::string> kStrategies(std::begin(search::kStrategyNames),
                                           std::end(search::kStrategyNames));
const std::vector<std::string> kPolicies(std::begin(search::kPolicyNames),
                                         std::end(search::kPolicyNames));
const std::vector<std::string> kStarts(std::begin(search::kStartNames),
                                       std::end(search::kStartNames));
constexpr int kCounts[] = {16, 64, 256};

struct Flags {
  std::string from;
  std::string out;
  std::vector<std::string> strategies;
  std::vector<std::string> policies;
  std::string start = "guessed";
  int seeds = 20;
  int most = 256;
  int unlikely = 0;  // per cent
  bool is_near = false;
};

// A strategy with a policy, which those that take no actions do not have. A policy remembers what
// it made of a config, never what was told: all seeds on a problem share it.
struct Contender {
  Strategy strategy;
  std::optional<PolicyKind> kind;
  search::PolicyPtr policy = {};
};

bool takes_actions(Strategy strategy) {
  constexpr Strategy kWithActions[] = {Strategy::linear, Strategy::branch, Strategy::tree,
                                       Strategy::evolution};
  return contains(kWithActions, strategy);
}

Result<std::vector<Contender>> contenders_of(const Flags& flags) {
  std::map<std::string, search::PolicyPtr> policies;
  for (const std::string& name : kPolicies) {
    const bool is_wanted = flags.policies.empty() || contains(flags.policies, name);
    if (!is_wanted) continue;
    WARPLOOM_TRY(policies[name], search::make_policy(*row_where<PolicyKind>(kPolicies, name)));
  }
  std::vector<Contender> out;
  for (const std::string& name : kStrategies) {
    const bool is_wanted = flags.strategies.empty() || contains(flags.strategies, name);
    const auto strategy = *row_where<Strategy>(kStrategies, name);
    if (!is_wanted || strategy == Strategy::automatic) continue;
    if (!takes_actions(strategy)) out.push_back({strategy, std::nullopt});
    for (const auto& [policy, made] : policies)
      if (takes_actions(strategy))
        out.push_back({strategy, *row_where<PolicyKind>(kPolicies, policy), made});
  }
  return out;
}

// The values of each field that its plans have. A field that its family got since they were
// recorded has one, its default: the space stays the one that was measured.
search::ValueRanges ranges_of(const search::RecordedProblem& problem) {
  search::ValueRanges out;
  for (const search::RecordedPlan& plan : problem.plans) {
    const auto config = kernels::config_from_text(plan.config);
    if (!config) continue;
    auto& fields = out[config->family()];
    for (size_t i = 0; i < config->size(); ++i) {
      auto& values = fields[std::string(config->field(i).name)];
      if (!contains(values, config->get(i))) values.push_back(config->get(i));
    }
  }
  return out;
}

// The closed space of a problem with its verdicts. What was not measured yet is left out: its
// verdict would be that it was refused.
Recording recording_of(const search::Outcomes& outcomes, const search::RecordedProblem& problem) {
  const kernels::Region region(problem.graph, problem.track);
  Recording out;
  out.space = search::closed_space(search::search_space_of(region, outcomes.capabilities),
                                   ranges_of(problem));
  // Nothing is built: what it would be built to was judged already.
  out.space.build = [](const kernels::KernelConfig&) { return Result<LaunchList>(LaunchList()); };
  for (const search::RecordedPlan& plan : problem.plans) {
    const auto config = kernels::config_from_text(plan.config);
    if (!config || !plan.is_known()) continue;
    out.verdicts[config->text()] = {
        .config = *config, .accepted = plan.is_right(), .us = plan.is_right() ? plan.us : 0};
  }
  out.actions = std::make_shared<search::ActionSpace>(out.space);
  return out;
}

// What is replayed, and where it begins beside guesses.
struct Recorded {
  Recording recording;
  std::vector<kernels::KernelConfig> near;
};

// The problems as an archive of their searches would tell of them.
std::vector<search::NearProblem> problems_of(const search::Outcomes& outcomes) {
  std::vector<search::NearProblem> out;
  for (const search::RecordedProblem& one : outcomes.problems) {
    search::NearProblem near;
    near.problem.key = one.name;
    near.problem.name = one.name;
    near.problem.track = name_of(one.track);
    search::note_problem(near.problem,
                         search::search_space_of({one.graph, one.track}, outcomes.capabilities));
    std::vector<search::RecordedPlan> plans = one.plans;
    std::erase_if(plans, [](const search::RecordedPlan& plan) { return !plan.is_right(); });
    std::ranges::stable_sort(plans, {}, &search::RecordedPlan::us);
    constexpr size_t kMost = 4;
    for (size_t i = 0; i < std::min(kMost, plans.size()); ++i)
      near.best.push_back({plans[i].config, plans[i].us});
    out.push_back(std::move(near));
  }
  return out;
}

// Where the bests of the others would have one begin; in its closed space, whose other plans have
// no verdict.
std::vector<kernels::KernelConfig> near_of(const std::vector<search::NearProblem>& problems,
                                           size_t number, const Recording& recording) {
  std::vector<search::NearProblem> others = problems;
  others.erase(others.begin() + as_int64(number));
  std::vector<kernels::KernelConfig> out;
  for (const auto& start : search::starts_from(others, problems[number].problem, recording.space))
    if (recording.verdicts.contains(start.config.text())) out.push_back(start.config);
  return out;
}

json number_of(double number) {
  return std::isfinite(number) ? json(number) : json();
}

// Candidates to a share of the best's speed; null: more than half of the seeds never came so far.
json candidates_to(std::span<const Curve> curves, double share) {
  std::vector<double> counts;
  for (const Curve& curve : curves) {
    const std::optional<int> count = curve.candidates_to(share);
    counts.push_back(count ? as_double(*count) : HUGE_VAL);
  }
  const search::MedianInterval found = search::median_interval(counts);
  return {{"median", number_of(found.median)},
          {"low", number_of(found.low)},
          {"high", number_of(found.high)}};
}

double share_at(std::span<const Curve> curves, int candidates) {
  std::vector<double> shares;
  for (const Curve& curve : curves)
    shares.push_back(curve.share_at(candidates));
  return search::median_interval(shares).median;
}

json row_of(const search::RecordedProblem& problem, const Recorded& recording,
            const Contender& contender, const Flags& flags) {
  std::vector<Curve> curves;
  for (int seed = 1; seed <= flags.seeds; ++seed) {
    search::ReplaySetup setup;
    setup.strategy = contender.strategy;
    setup.policy = contender.policy;
    setup.seed = as_uint64(seed);
    setup.most = flags.most;
    setup.start = *row_where<search::Start>(kStarts, flags.start);
    setup.unlikely = flags.unlikely / 100.0;
    setup.near = recording.near;
    curves.push_back(search::curve_of(recording.recording, setup));
  }
  json row;
  row["problem"] = problem.name;
  row["plans"] = recording.recording.verdicts.size();
  row["strategy"] = search::kStrategyNames[as_size(contender.strategy)];
  row["policy"] = nullptr;
  if (contender.kind) row["policy"] = search::kPolicyNames[as_size(*contender.kind)];
  row["start"] = nullptr;
  if (contender.kind) row["start"] = flags.start;
  row["unlikely_percent"] = flags.unlikely;
  row["near"] = recording.near.size();
  row["seeds"] = flags.seeds;
  row["to_095"] = candidates_to(curves, 0.95);
  row["to_098"] = candidates_to(curves, 0.98);
  for (const int count : kCounts)
    row["best_at_" + std::to_string(count)] = share_at(curves, count);
  return row;
}

// A problem is replayed where all of its plans are known and one is right.
bool is_whole(const search::RecordedProblem& problem) {
  return problem.is_closed() && problem.best_us() &&
         std::ranges::all_of(problem.plans, &search::RecordedPlan::is_known);
}

Result<Answer> replay(const Flags& flags) {
  WARPLOOM_TRY(const search::Outcomes outcomes, search::read_outcomes(flags.from));
  WARPLOOM_CHECK(contenders_of(flags));
  const std::vector<search::NearProblem> earlier = problems_of(outcomes);
  std::vector<json> rows(outcomes.problems.size(), json::array());
  const auto work = [&](int64_t i) {
    const search::RecordedProblem& problem = outcomes.problems[as_size(i)];
    if (!is_whole(problem)) return;
    Recorded recording = {recording_of(outcomes, problem), {}};
    if (flags.is_near) recording.near = near_of(earlier, as_size(i), recording.recording);
    const auto contenders = contenders_of(flags);
    for (const Contender& contender : *contenders)
      if (!interrupted()) rows[as_size(i)].push_back(row_of(problem, recording, contender, flags));
  };
  graph::parallel_for(std::ssize(rows), 0, work);
  json record = {{"from", flags.from}, {"machine", outcomes.machine}, {"rows", json::array()}};
  for (const json& of_problem : rows)
    for (const json& row : of_problem)
      record["rows"].push_back(row);
  if (!flags.out.empty()) WARPLOOM_CHECK(write_file(flags.out, record.dump(1) + "\n"));
  return Answer{record, text_of("replayed", record)};
}
}  // namespace

Command replay_command() {
  const auto flags = std::make_shared<Flags>();
  Command command;
  command.name = "replay";
  command.help =
      "how many candidates each strategy needs on problems whose plans were all recorded; nothing "
      "runs";
  command.example = "warploom replay bench/closed/cpu.gz --seeds 20";
  command.flags = {
      {"FILE", &flags->from, "outcomes of closed problems, as warploom record writes them"},
      {"--out", &flags->out, "where the rows go, as JSON; default: nowhere"},
      {"--strategy", &flags->strategies, "of these alone; default: all"},
      {"--policy", &flags->policies, "by these alone; default: all"},
      {"--start", &flags->start, "where those begin that take actions", kStarts},
      {"--unlikely",
       &flags->unlikely,
       "what a policy gives less than so many per cent of odds is taken last; default 0",
       {},
       0,
       100},
      {"--near", &flags->is_near, "searches begin at the bests of the other problems, too"},
      {"--seeds", &flags->seeds, "of each; default 20", {}, 1, 10'000},
      {"--candidates", &flags->most, "at most so many; default 256", {}, 1, 100'000}};
  command.action = [flags](const Session&) { return replay(*flags); };
  return command;
}
}  // namespace warploom::cli
