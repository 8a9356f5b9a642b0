#include "search/policy/recorder.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/random.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/parallel.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "runtime/compile.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/budget.h"
#include "search/measurer.h"
#include "search/policy/outcomes.h"
#include "search/requests.h"
#include "search/search_space.h"
#include "search/strategy/ranked.h"
#include "search/task.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

constexpr size_t kGuesses = 2;          // of each family, at the start
constexpr size_t kRandomSeeds = 2;      // and so many at random
constexpr size_t kExpansion = 8;        // changes of a plan that are taken together
constexpr size_t kBest = 5;             // plans from which half of the expansions start
constexpr double kRequestSeconds = 60;  // a judgement is as thorough as in a search of these
constexpr size_t kMostLegal = 40'000;   // configs that are looked at for a closed sub-space

std::string code_of(const Error& error) {
  return std::string(code_text(error.code));
}

// Every legal config of a family, as far as a bounded walk goes.
std::vector<KernelConfig> legal_configs(const kernels::Family& family) {
  std::vector<KernelConfig> out;
  const kernels::SpaceWalk walk(family);
  walk.all([&](const KernelConfig& config) {
    out.push_back(config);
    return out.size() < kMostLegal;
  });
  return out;
}

// The few that a family likes best.
std::vector<KernelConfig> best_guesses(const kernels::Family& family, size_t count) {
  auto all = legal_configs(family);
  const auto guess = [&](const KernelConfig& config) { return family.guess(config); };
  std::ranges::stable_sort(all, {}, guess);
  if (all.size() > count) all.erase(all.begin() + as_int64(count), all.end());
  return all;
}

using Ranges = std::map<std::string, std::vector<int64_t>>;

bool is_within(const KernelConfig& config, const Ranges& ranges) {
  for (const auto& [name, values] : ranges)
    if (!contains(values, config.get(name).value_or(0))) return false;
  return true;
}

// Of every field some values, so that at most `most` of a family's legal configs are left, its best
// guess among them: from the field with the most values one goes at random, again and again.
Ranges drawn_ranges(const kernels::Family& family, size_t most, Random& random) {
  auto legal = legal_configs(family);
  const auto guess = [&](const KernelConfig& config) { return family.guess(config); };
  Ranges ranges;
  if (legal.empty()) return ranges;
  const KernelConfig kept = *std::ranges::min_element(legal, {}, guess);
  for (const KernelConfig& config : legal)
    for (const auto& field : family.space().fields) {
      auto& values = ranges[field.name];
      const int64_t value = config.get(field.number);
      if (!contains(values, value)) values.push_back(value);
    }
  while (legal.size() > most) {
    const auto count = [](const auto& range) { return range.second.size(); };
    auto& [name, values] = *std::ranges::max_element(ranges, {}, count);
    const size_t at = random.below(values.size());
    if (values[at] == kept.get(name)) continue;
    values.erase(values.begin() + as_int64(at));
    const auto is_outside = [&](const KernelConfig& config) { return !is_within(config, ranges); };
    std::erase_if(legal, is_outside);
  }
  return ranges;
}
}  // namespace

Status add_problem(Outcomes& outcomes, const std::string& name, const kernels::Region& region,
                   Use use) {
  if (contains(outcomes.problems, name, &RecordedProblem::name))
    return fail({ErrorCode::kOutcomesInvalid, "a problem of this name is recorded already", name,
                 "a name that is new", name, "take another name"});
  RecordedProblem problem;
  problem.name = name;
  problem.use = use;
  problem.track = region.track;
  problem.graph = region.graph;
  outcomes.problems.push_back(std::move(problem));
  return ok();
}

// A recorded problem with its region on the target, and the plans by their texts.
struct Recorder::Bound {
  RecordedProblem* problem;
  Task task;
  std::optional<ActionSpace> actions = {};
  std::map<std::string, int> numbers = {};
  std::set<std::string> compiled = {};

  bool add(const KernelConfig& config, Origin origin, int parent) {
    const std::string text = config.text();
    const auto number = as_int(problem->plans.size());
    if (!numbers.try_emplace(text, number).second) return false;
    problem->plans.push_back({.config = text, .origin = origin, .parent = parent});
    return true;
  }

  // What the legal actions at a config make of it.
  std::vector<KernelConfig> changes_of(const KernelConfig& config) const {
    std::vector<KernelConfig> out;
    for (const Action& action : actions->at(config).legal)
      if (auto changed = carry_out(task.space, action, config)) out.push_back(*std::move(changed));
    return out;
  }

  // The numbers of what is right, the fastest first.
  std::vector<int> right() const {
    std::vector<int> out;
    for (int i = 0; i < as_int(problem->plans.size()); ++i)
      if (problem->plans[as_size(i)].is_right()) out.push_back(i);
    const auto us = [&](int number) { return problem->plans[as_size(number)].us; };
    std::ranges::stable_sort(out, {}, us);
    return out;
  }

  KernelConfig config_of(int number) const {
    return *kernels::config_from_text(problem->plans[as_size(number)].config);
  }
};

Recorder::Recorder(Outcomes& outcomes) : outcomes_(outcomes) {
  for (RecordedProblem& problem : outcomes.problems) {
    const kernels::Region region(problem.graph, problem.track);
    auto bound = std::make_shared<Bound>();
    bound->problem = &problem;
    bound->task = make_task(region, outcomes.capabilities, 1);
    bound->task.space = search_space_of(region, outcomes.capabilities);
    bound->actions.emplace(bound->task.space);
    for (const RecordedPlan& plan : problem.plans)
      bound->numbers.emplace(plan.config, as_int(bound->numbers.size()));
    bound_.push_back(std::move(bound));
  }
}

size_t Recorder::unknown() const {
  size_t count = 0;
  for (const RecordedProblem& problem : outcomes_.problems)
    for (const RecordedPlan& plan : problem.plans)
      count += plan.is_known() ? 0 : 1;
  return count;
}

void Recorder::add_seeds(Bound& bound, Random& random) {
  if (const auto fallback = fallback_of(bound.task.space))
    bound.add(fallback->config, Origin::seed, -1);
  for (const auto& family : bound.task.space.families) {
    for (const KernelConfig& config : best_guesses(*family, kGuesses))
      bound.add(config, Origin::seed, -1);
    const kernels::SpaceWalk walk(*family);
    for (size_t i = 0; i < kRandomSeeds; ++i)
      if (const auto config = walk.sample(random)) bound.add(*config, Origin::seed, -1);
  }
}

// Half of the time from one of the best, else from any that is right.
void Recorder::forward(Bound& bound, size_t most, Random& random) {
  constexpr int kTries = 64;
  const auto right = bound.right();
  if (right.empty()) return;
  for (int tries = 0; most > 0 && tries < kTries; ++tries) {
    const bool from_best = random.below(2) == 0;
    const size_t among = from_best ? std::min(kBest, right.size()) : right.size();
    const int parent = right[random.below(among)];
    const auto config = bound.config_of(parent);
    auto changes = bound.changes_of(config);
    random.shuffle(changes);
    size_t taken = 0;
    for (const KernelConfig& change : changes) {
      if (most == 0 || taken == kExpansion) break;
      if (!bound.add(change, Origin::forward, parent)) continue;
      ++taken;
      --most;
    }
  }
}

void Recorder::backward(Bound& bound, size_t most) {
  std::set<std::string> seen;
  for (const int number : bound.right()) {
    const auto config = bound.config_of(number);
    if (!seen.insert(config.family()).second) continue;
    for (const KernelConfig& change : bound.changes_of(config))
      if (most > 0 && bound.add(change, Origin::backward, number)) --most;
  }
}

void Recorder::grow(const Growth& growth) {
  for (const auto& bound : bound_) {
    if (bound->problem->is_closed()) continue;
    Random random(growth.seed, bound->problem->name);
    const size_t before = bound->problem->plans.size();
    if (before == 0) {
      add_seeds(*bound, random);
      continue;
    }
    backward(*bound, growth.plans / 2);
    const size_t added = bound->problem->plans.size() - before;
    forward(*bound, growth.plans - std::min(growth.plans, added), random);
  }
}

// The families that are made for the region have twice the share of those that cover anything.
void Recorder::enclose(const Growth& growth) {
  for (const auto& bound : bound_) {
    if (!bound->problem->plans.empty()) continue;
    Random random(growth.seed, bound->problem->name);
    const auto share_of = [](const kernels::FamilyPtr& family) {
      return family->suit() == kernels::Specialization::general ? size_t{1} : size_t{2};
    };
    size_t shares = 0;
    for (const auto& family : bound->task.space.families)
      shares += share_of(family);
    for (const auto& family : bound->task.space.families) {
      const size_t most = growth.plans * share_of(family) / shares;
      const auto ranges = drawn_ranges(*family, most, random);
      if (ranges.empty()) continue;
      bound->problem->ranges[family->name()] = ranges;
      for (const KernelConfig& config : legal_configs(*family))
        if (is_within(config, ranges)) bound->add(config, Origin::closed, -1);
    }
  }
}

Status Recorder::compile(const Budget& budget, int jobs) {
  struct Job {
    Bound* bound;
    RecordedPlan* plan;
  };

  std::vector<Job> todo;
  for (const auto& bound : bound_)
    for (RecordedPlan& plan : bound->problem->plans)
      if (!plan.is_known()) todo.push_back({bound.get(), &plan});
  std::mutex mutex;
  std::optional<Error> fatal;
  const auto work = [&](int64_t i) {
    const Job& job = todo[as_size(i)];
    if (budget.is_over()) return;
    const auto config = kernels::config_from_text(job.plan->config);
    auto list = config ? job.bound->task.space.build(*config) : fail(config.error());
    Status done = ok();
    if (!list)
      done = fail(list.error());
    else if (auto binary = runtime::compile(*list); !binary)
      done = fail(binary.error());
    const std::scoped_lock lock(mutex);
    if (done)
      job.bound->compiled.insert(job.plan->config);
    else if (is_fatal(done.error().code))
      fatal = done.error();
    else
      job.plan->code = code_of(done.error());
  };
  graph::parallel_for(std::ssize(todo), jobs, work);
  if (fatal) return fail(*fatal);
  return ok();
}

Status Recorder::measure_problem(Bound& bound, const Budget& budget) {
  std::vector<RecordedPlan*> todo;
  for (RecordedPlan& plan : bound.problem->plans)
    if (!plan.is_known()) todo.push_back(&plan);
  if (todo.empty() || budget.is_over()) return ok();
  Random(todo.size(), bound.problem->name).shuffle(todo);  // so that drift hits all alike
  verify::Setup setup = bound.task.setup;
  setup.time_reference = false;
  auto started = verify::Evaluator::start(setup, {.until = budget.until()});
  if (!started) return budget.is_over() ? ok() : Status(fail(started.error()));
  for (RecordedPlan* plan : todo) {
    if (budget.is_over()) break;
    WARPLOOM_TRY(const KernelConfig config, kernels::config_from_text(plan->config));
    auto list = bound.task.space.build(config);
    if (!list) {
      plan->code = code_of(list.error());
      continue;
    }
    verify::Request request = quick_request(kRequestSeconds, 0);
    request.list = *std::move(list);
    WARPLOOM_TRY(const verify::Verdict verdict, started->judge(request));
    if (verdict.accepted)
      plan->us = verdict.median_us;
    else if (is_fatal(verdict.error_found.code))
      return fail(verdict.error_found);
    else
      plan->code = code_of(verdict.error_found);
  }
  return ok();
}

Status Recorder::measure(const Budget& budget) {
  for (const auto& bound : bound_)
    WARPLOOM_CHECK(measure_problem(*bound, budget));
  return ok();
}
}  // namespace warploom::search
