#include "search/policy/features.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "loopnest/loop_nest.h"
#include "search/action/action.h"
#include "search/policy/plan_facts.h"
#include "search/policy/state.h"
#include "search/search_space.h"
#include "target/capabilities.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;
using kernels::LoopNest;

constexpr double kMost = 2;

double bounded(double value) {
  return std::isfinite(value) ? std::clamp(value, -kMost, kMost) : 0;
}

// Doublings, of which `unit` count as 1. 0 where there is nothing to take a logarithm of.
double doublings(double value, double unit) {
  return value > 0 ? bounded(std::log2(value) / unit) : 0;
}

// Those of `before` over `after`; 0 where one is not known.
double gain(double before, double after) {
  constexpr double kUnit = 3;
  return before > 0 && after > 0 ? doublings(before / after, kUnit) : 0;
}

double& at(FeatureVector& out, Feature feature) {
  return out[as_size(feature)];
}

// The place of a value among those that its field may take, from 0, the least, to 1.
double place_of(int64_t value, const kernels::Values& values) {
  if (values.size() < 2) return 0;
  const auto less = std::ranges::count_if(values, [&](int64_t one) { return one < value; });
  return as_double(less) / as_double(values.size() - 1);
}

// What a region's nests have of what the features ask.
struct Shape {
  double inner = 1;
  double outer = 1;
  double reduced = 1;
  double reductions = 0;
  double operations = 0;
  double loads = 0;
  bool has_products = false;
  bool has_windows = false;
};

bool is_product(const LoopNest& nest, const loopnest::Expr& value) {
  if (value.kind != loopnest::Kind::reduce || value.op != ValueOp::add) return false;
  const auto& summed = nest.value(value.operands[0]);
  return summed.kind == loopnest::Kind::apply && summed.op == ValueOp::mul;
}

Shape shape_of(const std::vector<LoopNest>& nests) {
  Shape out;
  for (const LoopNest& nest : nests) {
    const auto reduced = nest.reduced();
    const size_t outputs = nest.outputs.empty() ? 0 : nest.outputs[0].place.at.size();
    for (size_t i = 0; i < nest.axes.size(); ++i) {
      const auto size = as_double(nest.axes[i]);
      if (reduced[i]) out.reduced = std::max(out.reduced, size);
      if (i < outputs) out.outer = std::max(out.outer, size);
    }
    if (outputs > 0 && outputs <= nest.axes.size())
      out.inner = std::max(out.inner, as_double(nest.axes[outputs - 1]));
    for (const auto& load : nest.loads)
      out.has_windows = out.has_windows || !load.in_bounds;
    for (const auto& value : nest.values) {
      out.reductions += value.kind == loopnest::Kind::reduce ? 1 : 0;
      out.operations += value.kind == loopnest::Kind::apply ? 1 : 0;
      out.has_products = out.has_products || is_product(nest, value);
    }
    out.loads += as_double(nest.loads.size());
  }
  return out;
}

bool is_same_direction(const Setting& one, const Setting& other) {
  return (one.to > one.from) == (other.to > other.from);
}

// What earlier steps of the same kind, or of the same field in the same direction, gained.
void add_experience(FeatureVector& out, const State& state, const Action& action) {
  double kind_gain = 0;
  double kind_steps = 0;
  double field_gain = 0;
  double field_steps = 0;
  double refused = 0;
  for (const Moment& moment : state.history) {
    const double gained = moment.accepted ? gain(moment.before_us, moment.after_us) : -1;
    refused += moment.accepted ? 0 : 1;
    if (moment.action.kind != action.kind) continue;
    kind_gain += gained;
    kind_steps += 1;
    const bool has_fields = !moment.action.settings.empty() && !action.settings.empty();
    if (!has_fields || moment.action.type != action.type) continue;
    const Setting& then = moment.action.settings[0];
    if (then.field != action.settings[0].field) continue;
    if (!is_same_direction(then, action.settings[0])) continue;
    field_gain += gained;
    field_steps += 1;
  }
  const double steps = as_double(std::max<size_t>(1, state.history.size()));
  at(out, Feature::kind_gain) = kind_gain / std::max(1.0, kind_steps);
  at(out, Feature::field_gain) = field_gain / std::max(1.0, field_steps);
  at(out, Feature::field_tried) = bounded(field_steps / 4);
  at(out, Feature::refused_share) = refused / steps;
}

void add_last_step(FeatureVector& out, const Moment& last, const Action& action) {
  at(out, Feature::last_gain) = last.accepted ? gain(last.before_us, last.after_us) : 0;
  at(out, Feature::last_refused) = last.accepted ? 0 : 1;
  at(out, Feature::same_kind) = last.action.kind == action.kind ? 1 : 0;
  const bool has_fields = !last.action.settings.empty() && !action.settings.empty();
  if (!has_fields || last.action.type != action.type || action.changes_family) return;
  const Setting& then = last.action.settings[0];
  const Setting& now = action.settings[0];
  if (then.field != now.field) return;
  at(out, Feature::same_field) = 1;
  at(out, Feature::undoes_last) = is_same_direction(then, now) ? 0 : 1;
}
}  // namespace

Features::Features(const SearchSpace& space)
    : space_(&space), work_(kernels::work_of(space.region)) {
  for (const auto& family : space.families)
    fields_[family->name()] = family->space();
  add_region();
  add_target();
}

void Features::add_region() {
  const graph::Graph& graph = space_->region.graph;
  outputs_ = 0;
  for (const auto id : graph.outputs)
    outputs_ += as_double(graph::element_count(graph.tensor(id).shape));
  outputs_ = std::max(1.0, outputs_);
  const auto dtype = graph.tensor(graph.outputs[0]).dtype;
  const Shape shape = shape_of(space_->region.nests());
  at(fixed_, Feature::flops) = doublings(work_.flops, 32);
  at(fixed_, Feature::bytes) = doublings(work_.bytes, 32);
  at(fixed_, Feature::intensity) = doublings(work_.flops / std::max(1.0, work_.bytes), 8);
  at(fixed_, Feature::inner_axis) = doublings(shape.inner, 12);
  at(fixed_, Feature::outer_axes) = doublings(outputs_ / shape.inner, 16);
  at(fixed_, Feature::reduced_axes) = doublings(shape.reduced, 12);
  at(fixed_, Feature::products) = shape.has_products ? 1 : 0;
  at(fixed_, Feature::windows) = shape.has_windows ? 1 : 0;
  at(fixed_, Feature::reductions) = bounded(shape.reductions / 4);
  at(fixed_, Feature::operations) = bounded(shape.operations / 16);
  at(fixed_, Feature::loads) = bounded(shape.loads / 8);
  at(fixed_, Feature::element_bytes) = bits_of(dtype) / 64.0;
}

void Features::add_target() {
  const target::Capabilities& here = space_->capabilities;
  const double lanes = here.gpu ? 32 : here.lanes();
  const double flops = here.fp32_tflops * 1e3;
  at(fixed_, Feature::is_gpu) = here.gpu ? 1 : 0;
  at(fixed_, Feature::cores) = doublings(here.num_sms, 8);
  at(fixed_, Feature::lanes) = doublings(lanes, 5);
  at(fixed_, Feature::fast_memory) = doublings(as_double(here.shared_bytes), 22);
  at(fixed_, Feature::balance) = here.dram_gbs > 0 ? doublings(flops / here.dram_gbs, 8) : 0;
}

Features::PlanFeatures Features::features_of(const PlanFacts& facts, bool is_general) const {
  const target::Capabilities& here = space_->capabilities;
  const double cores = std::max(1, here.num_sms);
  const double lanes = here.gpu ? 32 : here.lanes();
  const double rounds = std::ceil(std::max(1.0, facts.tasks) / cores);
  const double registers = here.gpu ? here.registers * 4.0 : here.registers * here.vector_bytes;
  const double fast = as_double(std::max<int64_t>(1, here.shared_bytes));
  const double vectors = std::ceil(std::max(1.0, facts.inner_extent) / lanes);
  return {doublings(facts.tasks / cores, 6),
          1 - facts.tasks / (rounds * cores),
          doublings(facts.moved_bytes / std::max(1.0, work_.bytes), 3),
          doublings(facts.lane_work / std::max(work_.flops / 2, outputs_), 3),
          doublings(facts.statements / outputs_, 8),
          doublings(facts.register_bytes / std::max(1.0, registers), 4),
          doublings((facts.scratch_bytes + 1) / fast, 8),
          doublings((facts.workspace_bytes + work_.bytes) / std::max(1.0, work_.bytes), 2),
          doublings(facts.inner_extent / lanes, 4),
          facts.inner_extent / (vectors * lanes),
          doublings(facts.reuse, 5),
          bounded(facts.programs / 4),
          is_general ? 1.0 : 0.0};
}

const Features::Plan& Features::plan_of(const KernelConfig& config) {
  const auto [known, is_new] = plans_.try_emplace(config.text());
  Plan& out = known->second;
  if (!is_new) return out;
  const auto family = std::ranges::find(space_->families, config.family(), &kernels::Family::name);
  if (family == space_->families.end()) return out;
  const bool is_general = (*family)->suit() == kernels::Specialization::general;
  const auto programs = (*family)->programs(config);
  const PlanFacts facts =
      programs ? search::facts_of(*programs, space_->capabilities) : PlanFacts{};
  out.features = features_of(facts, is_general);
  out.guess = (*family)->guess(config);
  if (space_->capabilities.gpu && space_->predict)
    out.model_us = space_->predict(config).value_or(0);
  return out;
}

void Features::add_action(FeatureVector& out, const KernelConfig& now, const Action& action) {
  out[as_size(Feature::kind_tiling) + as_size(action.kind)] = 1;
  out[as_size(Feature::eases_unknown) + as_size(action.eases)] = 1;
  at(out, Feature::changes_family) = action.changes_family ? 1 : 0;
  if (action.changes_family || action.settings.empty()) return;
  const Setting& meant = action.settings[0];
  const auto& fields = fields_[now.family()].fields;
  const auto field = std::ranges::find(fields, meant.field, &kernels::Field::number);
  at(out, Feature::settings) = bounded(as_double(action.settings.size()) / 4);
  at(out, Feature::raise) = doublings(as_double(std::max<int64_t>(meant.to, 0) + 1) /
                                          as_double(std::max<int64_t>(meant.from, 0) + 1),
                                      4);
  if (field == fields.end()) return;
  at(out, Feature::from) = place_of(meant.from, field->values);
  at(out, Feature::to) = place_of(meant.to, field->values);
  at(out, Feature::choices) = doublings(as_double(field->values.size()), 4);
}

FeatureVector Features::timeless(const KernelConfig& now, const Action& action,
                                 const KernelConfig& then) {
  FeatureVector out = fixed_;
  const Plan& before = plan_of(now);  // a map's elements stay where they are
  const Plan& after = plan_of(then);
  for (size_t i = 0; i < kPlanFeatures; ++i) {
    out[as_size(Feature::tasks) + i] = after.features[i];
    out[as_size(Feature::more_tasks) + i] = bounded(after.features[i] - before.features[i]);
  }
  add_action(out, now, action);
  const bool has_guess = !action.changes_family && before.guess > 0 && after.guess > 0;
  const bool has_model = before.model_us > 0 && after.model_us > 0;
  at(out, Feature::has_guess) = has_guess ? 1 : 0;
  at(out, Feature::guess_gain) = has_guess ? gain(before.guess, after.guess) : 0;
  at(out, Feature::has_model) = has_model ? 1 : 0;
  at(out, Feature::model_gain) = gain(before.model_us, after.model_us);
  return out;
}

void Features::add_times(FeatureVector& out, const State& state, const Action& action) {
  const verify::Bound& bound = state.facts->bound;
  const bool has_time = state.us > 0 && bound.us > 0;
  const Bottleneck binds = bottleneck_of(state);
  at(out, Feature::has_time) = has_time ? 1 : 0;
  at(out, Feature::over_bound) = has_time ? doublings(state.us / bound.us, 5) : 0;
  at(out, Feature::arithmetic_binds) = bound.of == "arithmetic" ? 1 : 0;
  at(out, Feature::memory_binds) = bound.of == "DRAM" ? 1 : 0;
  at(out, Feature::eases_what_binds) =
      binds != Bottleneck::unknown && binds == action.eases ? 1 : 0;
  at(out, Feature::over_best) = gain(state.us, state.best_us);
  at(out, Feature::steps) = bounded(as_double(state.history.size()) / 16);
  if (state.history.empty()) return;
  add_last_step(out, state.history.back(), action);
  add_experience(out, state, action);
}

FeatureVector Features::of(const State& state, const Action& action, const KernelConfig& then) {
  FeatureVector out = timeless(state.config, action, then);
  add_times(out, state, action);
  return out;
}
}  // namespace warploom::search
