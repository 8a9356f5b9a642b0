#include "search/choice_search.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "plan/fusion.h"
#include "search/action/action.h"
#include "search/action/plan_actions.h"
#include "search/graph_search.h"
#include "search/optimize.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/plan_archive.h"
#include "search/plan_choice.h"
#include "target/capabilities.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
using graph::Graph;
using graph::NodeWork;
using graph::RewriteOffer;
using nlohmann::json;

constexpr double kWorth = 1.05;      // times faster by prediction: it is searched
constexpr double kLeastGain = 1e-3;  // of the whole, of a step
constexpr double kSame = 1.001;      // times slower by prediction: as good
constexpr size_t kMostSteps = 12;    // of a chain
constexpr double kLeastShare = 0.5;  // of the time that is left, of one that others follow
constexpr double kMostShare = 0.8;
constexpr double kSearchOn = 0.1;   // of the budget, that is worth going on for
constexpr size_t kFewBytes = 4096;  // of a constant whose numbers are looked at

// Predicted by the roofline, one after the other; without known rates in operations and bytes.
class Clock {
 public:
  Clock(Track track, const target::Capabilities& capabilities)
      : track_(track), capabilities_(capabilities) {}

  double us_of(const NodeWork& work) const {
    const double products = verify::roofline_us(capabilities_, track_, work.products, 0);
    const double bytes = verify::roofline_us(capabilities_, track_, 0, work.bytes);
    const bool is_known = (products > 0 || work.products <= 0) && (bytes > 0 || work.bytes <= 0);
    return is_known ? products + bytes : work.products + work.bytes;
  }

  // Of a step, whose elementwise work counts as well: it may make the next step possible.
  double us_of_step(const NodeWork& work) const {
    return us_of({work.operations, work.operations, work.bytes});
  }

  double floor_us(const NodeWork& work) const {
    return verify::floor_us(capabilities_, track_, work.products, 0);
  }

 private:
  Track track_;
  const target::Capabilities& capabilities_;
};

// A graph of which large constants are inputs that hold the same in every call: it is copied at
// every step.
struct Light {
  Graph graph;
  std::set<std::string> known;

  Light(const Graph& of, const std::set<std::string>& constants) : known(constants) {
    graph.name = of.name;
    graph.nodes = of.nodes;
    graph.inputs = of.inputs;
    graph.outputs = of.outputs;
    for (const graph::Tensor& tensor : of.tensors) {
      const bool is_large = tensor.constant && tensor.constant->size() > kFewBytes;
      const graph::TensorInfo& info = tensor;
      graph.tensors.push_back({info, is_large ? std::nullopt : tensor.constant});
      if (!is_large) continue;
      known.insert(tensor.name);
      graph.inputs.push_back(static_cast<graph::TensorId>(graph.tensors.size() - 1));
    }
  }

  NodeWork work() const { return graph::work_of(graph, known); }
};

// The step that saves most time; nothing where none saves any.
std::optional<RewriteOffer> best_step(const Light& light, Track track, const Clock& clock) {
  const double whole = clock.us_of_step(light.work());
  std::optional<RewriteOffer> best;
  double most = kLeastGain * whole;
  for (RewriteOffer& offer : graph::rewrites_of(light.graph, track, light.known)) {
    if (!offer.why.empty()) continue;
    const double gain = clock.us_of_step(offer.before) - clock.us_of_step(offer.after);
    if (gain <= most) continue;
    most = gain;
    best = std::move(offer);
  }
  return best;
}

std::optional<NodeWork> work_under(const Light& light, const std::vector<RewriteOffer>& chain,
                                   Track track) {
  std::vector<graph::Rewrite> steps;
  for (const RewriteOffer& offer : chain)
    steps.push_back(offer.rewrite);
  auto made = graph::rewrite(light.graph, steps, track);
  if (!made) return std::nullopt;
  return graph::work_of(*made, light.known);
}

// The chain without steps that it is as good without.
std::vector<RewriteOffer> pruned(const Light& light, std::vector<RewriteOffer> chain, Track track,
                                 const Clock& clock) {
  const auto us_of = [&](const std::vector<RewriteOffer>& steps) {
    const auto work = work_under(light, steps, track);
    return work ? std::optional(clock.us_of(*work)) : std::nullopt;
  };
  auto us = us_of(chain);
  for (size_t i = chain.size(); us && i-- > 0;) {
    std::vector<RewriteOffer> without = chain;
    without.erase(without.begin() + as_int64(i));
    const auto instead = us_of(without);
    if (!instead || *instead > kSame * *us) continue;
    chain = std::move(without);
    us = instead;
  }
  return chain;
}

std::vector<RewriteOffer> best_chain(const Light& given, Track track, const Clock& clock) {
  std::vector<RewriteOffer> chain;
  std::optional<Light> light;  // from the first step on
  while (chain.size() < kMostSteps) {
    auto step = best_step(light ? *light : given, track, clock);
    if (!step) break;
    if (!light) light = given;
    auto made = graph::rewrite(std::move(light->graph), step->rewrite, track);
    if (!made) break;
    light->graph = *std::move(made);
    chain.push_back(*std::move(step));
  }
  return pruned(given, std::move(chain), track, clock);
}
}  // namespace

std::vector<OfferedChoice> offered_choices(const Graph& graph, Track track,
                                           const target::Capabilities& capabilities,
                                           const std::set<std::string>& constants) {
  const Clock clock(track, capabilities);
  const Light light(graph, constants);
  const NodeWork work = light.work();
  std::vector<OfferedChoice> out;
  out.push_back({.predicted_us = clock.us_of(work),
                 .floor_us = clock.floor_us(work),
                 .products = work.products});
  const auto chain = best_chain(light, track, clock);
  const auto rewritten = work_under(light, chain, track);
  if (chain.empty() || !rewritten) return out;
  OfferedChoice best{.action = action_of(chain),
                     .predicted_us = clock.us_of(*rewritten),
                     .floor_us = clock.floor_us(*rewritten),
                     .products = rewritten->products};
  for (const RewriteOffer& offer : chain)
    best.choice.rewrites.push_back(offer.rewrite);
  if (best.predicted_us * kWorth <= out[0].predicted_us) out.insert(out.begin(), std::move(best));
  return out;
}

double least_flops(const Graph& primitive, Track track, const target::Capabilities& capabilities,
                   const std::set<std::string>& constants) {
  double least = HUGE_VAL;
  for (const OfferedChoice& one : offered_choices(primitive, track, capabilities, constants))
    least = std::min(least, one.products);
  return least;
}

ChoiceSearch::ChoiceSearch(std::vector<OfferedChoice> offered, const Options& options,
                           Search search, Record record)
    : offered_(std::move(offered)),
      options_(options),
      search_(std::move(search)),
      record_(std::move(record)),
      budget_(options.budget_seconds, options.now) {
  budget_.begin_earlier(options.begun_seconds);
}

Result<Outcome> ChoiceSearch::run() {
  for (size_t i = 0; i < offered_.size(); ++i) {
    const bool is_last = i + 1 == offered_.size();
    if (best_ && (options_.is_interrupted() || budget_.is_over())) break;
    if (can_be_faster(offered_[i])) {
      WARPLOOM_CHECK(try_one(offered_[i], is_last ? 1 : share_of(i)));
      continue;
    }
    tried_.push_back({.offered = offered_[i], .is_left_out = true});
  }
  if (!best_) return fail(*error_);
  const bool is_done = options_.is_interrupted() || !options_.resume ||
                       budget_.left() < kSearchOn * budget_.seconds();
  if (!is_done && tried_.back().is_left_out) WARPLOOM_CHECK(try_one(*best_choice_, 1));
  best_->candidates = candidates_;
  best_->refused = refused_;
  best_->seconds = budget_.spent();
  if (offered_.size() > 1) best_->choices = told();
  return *std::move(best_);
}

// The more it promises against the next, the more of the time.
double ChoiceSearch::share_of(size_t number) const {
  const double own = offered_[number].predicted_us;
  const double next = offered_[number + 1].predicted_us;
  return own + next > 0 ? std::clamp(next / (own + next), kLeastShare, kMostShare) : kLeastShare;
}

// By its physical floor, than what was measured.
bool ChoiceSearch::can_be_faster(const OfferedChoice& offered) const {
  return !best_ || !best_->proven || offered.floor_us < best_->verdict.median_us;
}

Status ChoiceSearch::try_one(const OfferedChoice& offered, double share) {
  Options options = options_;
  options.choice = offered.choice;
  options.begun_seconds = budget_.spent();
  options.budget_seconds = budget_.spent() + share * budget_.left();
  options.force_search = options.force_search || best_.has_value();
  Result<Outcome> found = search_(options);
  WARPLOOM_CHECK(record_(offered, found));
  Tried tried{offered};
  if (found) {
    tried.best_us = found->verdict.median_us;
    tried.proven = found->proven;
    take(offered, *std::move(found));
  } else {
    tried.error_code = code_text(found.error().code);
    error_ = found.error();
  }
  tried_.push_back(std::move(tried));
  return ok();
}

void ChoiceSearch::take(const OfferedChoice& offered, Outcome found) {
  candidates_ += found.candidates;
  refused_ += found.refused;
  const auto worth = [](const Outcome& one) {
    return std::pair(!one.proven, one.verdict.median_us > 0 ? one.verdict.median_us : HUGE_VAL);
  };
  if (best_ && worth(*best_) <= worth(found)) return;
  best_ = std::move(found);
  best_choice_ = offered;
}

json ChoiceSearch::told() const {
  json out = json::array();
  for (const Tried& one : tried_) {
    json row = {{"choice", one.offered.choice.text()},
                {"predicted_us", one.offered.predicted_us},
                {"proven", one.proven}};
    row["best_us"] = one.best_us > 0 ? json(one.best_us) : json();
    row["error_code"] = one.error_code.empty() ? json() : json(one.error_code);
    row["sentence"] = one.offered.action ? one.offered.action->sentence : "";
    row["left_out"] = one.is_left_out;
    out.push_back(std::move(row));
  }
  return out;
}

Result<Outcome> search_choices(const Graph& given, const Options& options) {
  const Budget budget(options.budget_seconds, options.now);
  WARPLOOM_TRY(const target::Capabilities capabilities, resolve_target(options.target));
  WARPLOOM_TRY(const Graph primitives, plan::primitives_for_target(given, capabilities));
  const auto offered = offered_choices(primitives, options.track, capabilities, options.constants);
  if (offered.size() == 1) return GraphSearch(options).run(given);
  WARPLOOM_TRY(PlanArchive record, PlanArchive::open(given, options, capabilities));
  Options begun = options;
  begun.begun_seconds += budget.spent();
  ChoiceSearch search(
      offered, begun, [&](const Options& of) { return GraphSearch(of).run(given); },
      [&](const OfferedChoice& one, const Result<Outcome>& found) {
        return record.record(one.choice, one.action, one.predicted_us, found);
      });
  WARPLOOM_TRY(Outcome outcome, search.run());
  outcome.plans_key = record.key();
  const PlanChoice chosen{outcome.plan.rewrites, outcome.plan.partition.changes};
  if (!outcome.interrupted) WARPLOOM_CHECK(record.conclude(chosen, outcome.seconds));
  return outcome;
}
}  // namespace warploom::search
