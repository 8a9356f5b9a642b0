#include "search/graph_search.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/parallel.h"
#include "graph/rewrite.h"
#include "kernels/family.h"
#include "plan/fusion.h"
#include "plan/limits.h"
#include "runtime/driver.h"
#include "runtime/executor.h"
#include "search/budget.h"
#include "search/costs.h"
#include "search/optimize.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/plan_choice.h"
#include "search/requests.h"
#include "search/shares.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "target/capabilities.h"
#include "target/instruction_set.h"
#include "verify/setup.h"
#include "verify/truth_kernels.h"
#include "verify/truth_work.h"

namespace warploom::search {
namespace {
constexpr double kPlanningShare = 0.3;
// Of the budget at most, for what comes behind the search; and all of it together. A bundle that
// takes longer to build is written and not built: on a GPU, whose compiler takes its time,
// candidates are worth more.
constexpr double kDeliveryShare = 0.3;
constexpr double kDeliveryShareOfGpu = 0.15;
constexpr double kLeastDelivery = 0.3;  // seconds, for writing a bundle
constexpr double kWholeShare = 0.2;
constexpr double kFinalsShare = 0.15;
constexpr double kReserveShare = 0.6;
constexpr double kLeastReserve = 0.2;  // seconds
// Of the time that is left, what judging a first plan aims at.
constexpr double kFirstPlanShare = 0.2;
constexpr double kLeastSlice = 0.5;  // seconds
constexpr double kSlices = 8;        // of the time that is left
constexpr double kTries = 2;         // judgements that a slice has room for
constexpr size_t kMostAwake = 4;     // evaluators at once: each holds its region's tensors
constexpr double kReadyShare = 0.2;  // of the budget, that getting ready for the whole aims at
constexpr int kMostIdle = 3;         // slices in a row in which nothing was tried

double io_bytes(const graph::Graph& graph) {
  double bytes = 0;
  for (const graph::TensorId id : graph.inputs)
    bytes += as_double(graph::byte_count(graph.tensor(id)));
  for (const graph::TensorId id : graph.outputs)
    bytes += as_double(graph::byte_count(graph.tensor(id)));
  return bytes;
}
}  // namespace

GraphSearch::GraphSearch(const Options& options)
    : options_(options), budget_(options.budget_seconds, options.now), turns_(turns_for(options)) {
  budget_.begin_earlier(options.begun_seconds);
}

Result<Outcome> GraphSearch::run(const graph::Graph& given) {
  say("planning");
  // The region that comes first, and the process that judges whole.
  constexpr int kEvaluators = 2;
  const bool may_be_gpu = options_.target != "cpu" && !target::instruction_set(options_.target);
  if (may_be_gpu && runtime::has_driver()) evaluators_.emplace(kEvaluators);
  WARPLOOM_TRY(target::Capabilities found, resolve_target(options_.target));
  capabilities_ = with_rates(std::move(found), options_.budget_seconds);
  const target::Capabilities& capabilities = capabilities_;
  given_ = &given;
  WARPLOOM_TRY(const graph::Graph primitive, graph::decompose(given));
  const PlanChoice choice = options_.choice.value_or(PlanChoice());
  WARPLOOM_TRY(graph_,
               plan::lower_for_target(given, capabilities, options_.track, choice.rewrites));
  const plan::Limits limits{options_.interrupted,
                            budget_.part(kPlanningShare * budget_.left()).until()};
  // Of a rewritten graph the given one has no floor: it does less.
  const double least =
      choice.rewrites.empty() ? HUGE_VAL : graph::work_of(graph_, options_.constants).products;
  whole_ = make_task({primitive, options_.track}, capabilities, options_.seed, options_.constants,
                     least);
  WARPLOOM_CHECK(plan_regions(limits));
  if (capabilities.gpu)
    compile_truth(capabilities);
  else
    evaluators_.reset();
  // What is rewritten is judged by what was given.
  is_trivial_ = choice.rewrites.empty() && partition_.trivial(graph_);
  if (!is_trivial_) WARPLOOM_CHECK(judge_as_network());
  WARPLOOM_CHECK(make_sessions());
  WARPLOOM_CHECK(search());
  WARPLOOM_TRY(Outcome outcome, whole(given));
  note_boundaries(outcome);
  outcome.speedup = outcome.verdict.speedup.median;
  outcome.card = target::card_to_json(capabilities);
  outcome.bound = whole_.bound;
  const double us = outcome.verdict.median_us;
  outcome.roofline_fraction = us > 0 ? whole_.bound.us / us : 0;
  outcome.plan.graph = std::move(graph_);
  outcome.plan.rewrites = choice.rewrites;
  outcome.seconds = budget_.spent();
  outcome.delivery_seconds = delivery_seconds();
  return outcome;
}

Status GraphSearch::judge_as_network() {
  is_trivial_ = false;
  WARPLOOM_TRY(const graph::Graph primitive, graph::decompose(*given_));
  whole_.setup.reference = whole_reference(*given_, primitive);
  verify::Setup setup = whole_.setup;
  setup.seed ^= kFreshSeed;
  judge_.emplace(std::move(setup), options_.interrupted, evaluators());
  return ok();
}

void GraphSearch::say(const char* phase) const {
  if (!options_.on_progress) return;
  options_.on_progress(
      {.seconds = budget_.spent(), .budget_seconds = options_.budget_seconds, .phase = phase});
}

// Truth's kernels are compiled once for all regions and the whole: by this process, while the
// others open the GPU.
void GraphSearch::compile_truth(const target::Capabilities& capabilities) {
  std::vector<verify::Setup*> setups = {&whole_.setup};
  for (const auto& one : searches_)
    setups.push_back(&one->task.setup);
  verify::TruthWork all;
  for (const verify::Setup* setup : setups) {
    const auto work = verify::truth_work_of(setup->graph);
    if (!work) continue;
    all.operations.insert(work->operations.begin(), work->operations.end());
    all.kernels.insert(work->kernels.begin(), work->kernels.end());
  }
  for (verify::Setup* setup : setups)
    setup->operations = all.operations;
  const int num_sms = capabilities.num_sms;
  truth_kernels_ =
      std::async(std::launch::async, [all = std::move(all), arch = capabilities.arch, num_sms] {
        verify::compile_truth_kernels(all, arch, num_sms);
      });
}

// A region's share of the budget, which is what set-up and judgements go by: half in equal parts,
// half by the time that each takes at best.
Options GraphSearch::options_for(size_t number) {
  double weights = 0;
  for (const RegionSearch* one : order_)
    weights += one->weight();
  const double equal = 1 / static_cast<double>(order_.size());
  const double share = 0.5 * equal + 0.5 * order_[number]->weight() / weights;
  Options options = options_;
  options.budget_seconds = share * options_.budget_seconds;
  options.asked_seconds = options.budget_seconds;
  options.stands_by = is_trivial_;
  options.evaluators = evaluators();
  const std::string name = order_[number]->task.setup.graph.name;
  options.on_progress = [this, number, name](Progress progress) {
    progress.region = static_cast<int>(number) + 1;
    progress.regions = static_cast<int>(order_.size());
    progress.region_name = name;
    if (options_.on_progress) options_.on_progress(progress);
  };
  return options;
}

Error GraphSearch::with_place(Error error, const RegionSearch& one) const {
  const auto number = std::ranges::find(order_, &one) - order_.begin() + 1;
  if (order_.size() > 1)
    error.place = fmt::format("region {} of {}, {}", number, order_.size(), error.place);
  return error;
}

Status GraphSearch::search() {
  if (whole_.setup.engine == Engine::cuda) WARPLOOM_CHECK(begin_early());
  WARPLOOM_CHECK(search_first());
  // On a GPU its process is ready by now.
  const bool wants_first_plan = !is_trivial_ && evaluators_ && !proven_ && !has_tried_first_plan_;
  if (wants_first_plan && !options_.is_interrupted()) WARPLOOM_CHECK(prove_first_plan());
  if (may_change_boundaries()) {
    constexpr double kBefore = 0.5;  // of the time for rounds
    WARPLOOM_CHECK(search_on(kBefore));
    WARPLOOM_CHECK(search_boundaries());
  }
  WARPLOOM_CHECK(search_on());
  return finish();
}

// On a GPU nobody can judge anything for seconds: the first compilers run meanwhile.
Status GraphSearch::begin_early() {
  for (size_t i = 0; i < std::min(order_.size(), kMostAwake); ++i)
    if (order_[i]->session->is_waiting()) WARPLOOM_CHECK(order_[i]->session->begin());
  if (truth_kernels_.valid()) truth_kernels_.wait();
  wake_evaluators();
  return ok();
}

// On a GPU an evaluator takes seconds to get ready, most of them on cores: that of the whole and
// those of the heaviest regions do so at once, where the GPU has memory for them all. They take
// turns where one of them times anything (verify/gpu_turn.h).
void GraphSearch::wake_evaluators() {
  constexpr double kMemoryShare = 0.5;
  constexpr double kCopies = 4;  // of inputs and outputs: sets of inputs, and what truth keeps
  constexpr double kOwn = 2e9;   // bytes, of a context and of libraries
  if (is_trivial_) return;
  const auto gpu = runtime::Executor::describe(Engine::cuda);
  if (!gpu) return;
  double left = kMemoryShare * as_double(gpu->memory_bytes);
  const auto takes_room = [&left](const Task& task) {
    const double bytes = kOwn + kCopies * io_bytes(task.setup.graph);
    if (bytes > left) return false;
    left -= bytes;
    return true;
  };
  has_room_for_all_ = takes_room(whole_);
  if (has_room_for_all_) judge_->begin(kReadyShare * options_.budget_seconds);
  for (size_t i = 0; i < std::min(order_.size(), kMostAwake); ++i) {
    const bool has_room = takes_room(order_[i]->task);
    has_room_for_all_ &= has_room;
    if (has_room) order_[i]->session->wake();
  }
}

// Something right for each, in turns while there is time: what the last rounds want is kept back
// only once there is an answer.
Status GraphSearch::search_first() {
  std::vector<RegionSearch*> left = order_;
  const auto is_done = [](const RegionSearch* one) { return !one->session->is_waiting(); };
  for (std::erase_if(left, is_done); !left.empty(); std::erase_if(left, is_done)) {
    for (size_t i = 0; i < left.size(); ++i) {
      const size_t others = left.size() - i;
      if (is_first_too_long(others)) WARPLOOM_CHECK(prove_first_plan());
      const Budget all = for_first();
      if (all.is_over() || options_.is_interrupted()) return ok();
      // The next one's first compiler runs beside this one's evaluator.
      for (size_t next = i; next < std::min(left.size(), i + 2); ++next)
        WARPLOOM_CHECK(left[next]->session->begin());
      const double share = 2 / static_cast<double>(others + 1);
      const Budget part = all.part(share * all.left());
      WARPLOOM_CHECK(slice(*left[i], {.soft = part, .hard = all, .until_right = true}));
    }
  }
  return ok();
}

Budget GraphSearch::for_first() const {
  return budget_.less(proven_ ? reserve() : whole_reserve());
}

// Whether the first candidates of so many others would leave no time for anything else.
bool GraphSearch::is_first_too_long(size_t others) const {
  if (is_trivial_ || proven_ || has_tried_first_plan_) return false;
  double seconds = 0;
  double count = 0;
  for (const RegionSearch* one : order_) {
    seconds += one->seconds;
    count += one->seconds > 0 ? 1 : 0;
  }
  const double left = budget_.less(whole_reserve()).left();
  return count > 0 && seconds / count * static_cast<double>(others) > left;
}

// An answer before all: the plan of what is right so far and else of fallbacks, judged whole.
Status GraphSearch::prove_first_plan() {
  has_tried_first_plan_ = true;
  if (!has_room_for_all_) rest_all();
  // Families are asked for many configs, and one is built: of several regions at once.
  graph::parallel_for(std::ssize(order_), 0, [&](int64_t i) {
    TuningSession& session = *order_[i]->session;
    if (!session.is_right() && !budget_.is_over()) session.take_fallback();
  });
  if (budget_.is_over()) return take_winners();
  Outcome out;
  if (!join(out)) return take_winners();  // then there is no such plan
  say("judging a first plan whole");
  const Budget soft = budget_.part(kFirstPlanShare * budget_.left());
  const Result<verify::Verdict> verdict = judge_list(out.list, soft);
  if (verdict) {
    take_whole(out, *verdict);
    proven_ = std::move(out);
  }
  const bool goes_on = verdict || verdict.error().code == ErrorCode::kPlanWrong ||
                       verdict.error().code == ErrorCode::kInterrupted;
  if (!goes_on) return fail(verdict.error());
  return take_winners();
}

Status GraphSearch::take_winners() {
  for (RegionSearch* one : order_)
    one->session->take_winner();
  return ok();
}

Status GraphSearch::slice(RegionSearch& one, const Slice& slice) {
  const double before = budget_.spent();
  const Status done = one.session->search(slice);
  one.seconds += budget_.spent() - before;
  std::erase(awake_, &one);
  if (one.session->is_awake()) awake_.push_back(&one);
  while (awake_.size() > kMostAwake) {
    awake_.front()->session->rest();
    awake_.erase(awake_.begin());
  }
  if (done || options_.is_interrupted()) return ok();
  return fail(with_place(one.session->failure(done.error()), one));
}

void GraphSearch::rest_all() {
  for (RegionSearch* one : awake_)
    one->session->rest();
  awake_.clear();
}

// Slices for the region that can gain most, until the rest is needed for what comes last.
Status GraphSearch::search_on(double share) {
  int idle = 0;
  const double least = (1 - share) * budget_.less(reserve()).left();
  while (!options_.is_interrupted() && idle < kMostIdle) {
    const Budget kept = budget_.less(reserve() + std::max(0.0, least));
    RegionSearch* const one = most_worth(kept.left());
    if (!one) break;
    const Costs& costs = one->session->costs();
    const double starting = one->session->is_awake() ? 0 : costs.set_up();
    // A slice that has no room for a judgement would try nothing.
    const double trying = kTries * costs.judgement() + costs.compile();
    const double seconds = std::max({kLeastSlice, kept.left() / kSlices, trying}) + starting;
    const int before = one->session->candidates();
    WARPLOOM_CHECK(slice(*one, {.soft = kept.part(seconds), .hard = kept}));
    idle = one->session->candidates() > before ? 0 : idle + 1;
  }
  return ok();
}

RegionSearch* GraphSearch::most_worth(double seconds) {
  RegionSearch* best = nullptr;
  double most = 0;
  for (RegionSearch* one : order_) {
    const TuningSession& session = *one->session;
    const double wanted =
        session.costs().judgement() + (session.is_awake() ? 0 : session.costs().set_up());
    if (wanted >= seconds || session.is_recalled()) continue;
    const double worth = worth_of({.best_us = session.best_us(),
                                   .floor_us = one->task.setup.floor_us,
                                   .times = one->times,
                                   .dry = session.dry(),
                                   .has_more = session.has_more()});
    if (worth > most) {
      most = worth;
      best = one;
    }
  }
  return best;
}

// The best of each region beside its reference. What is the whole model is judged whole in a fresh
// process then; the plan of several regions is judged as a whole anyway, and they alone once that
// is done (prove_regions).
Status GraphSearch::finish() {
  if (options_.is_interrupted()) return ok();
  const Budget until = budget_.less(delivery_reserve() + whole_reserve());
  for (size_t i = 0; i < order_.size() && !options_.is_interrupted(); ++i) {
    TuningSession& session = *order_[i]->session;
    if (session.is_recalled() || !session.is_right()) continue;
    const double share = until.left() / static_cast<double>(order_.size() - i);
    const Budget part = until.part(std::max(share, 2 * session.costs().last_round()));
    // What is right in parts can be delivered: the bundle's files have their time.
    const Budget hard = budget_.less(std::min(kLeastDelivery, delivery_reserve()));
    const Status done = is_trivial_ ? session.finish({.soft = part, .hard = hard})
                                    : session.measure_best(until.part(share), 1);
    if (!done && !options_.is_interrupted())
      return fail(with_place(session.failure(done.error()), *order_[i]));
  }
  if (!has_room_for_all_) rest_all();
  return ok();
}

// Regions alone, for the archive: what the time allows, the heaviest first. The plan is judged by
// then: what goes wrong here takes nothing from it.
void GraphSearch::prove_regions() {
  if (is_trivial_) return;
  const Budget until = budget_.less(delivery_reserve());
  for (RegionSearch* one : order_) {
    TuningSession& session = *one->session;
    const double wanted = session.costs().last_round();
    const bool is_wanted = !session.is_recalled() && session.is_right();
    if (!is_wanted || until.left() <= wanted || options_.is_interrupted()) continue;
    if (!session.prove_best({.soft = until.part(2 * wanted), .hard = until})) return;
    (void)session.conclude();  // the archive's record of its run
  }
}

double GraphSearch::delivery_seconds() const {
  double slowest = 0;
  for (const RegionSearch* one : order_)
    slowest = std::max(slowest, one->session->compile_seconds());
  return options_.delivery_seconds ? options_.delivery_seconds(slowest) : 0;
}

// A bundle whose building would not end is written and not built: the search has the time.
double GraphSearch::delivery_reserve() const {
  const double wanted = delivery_seconds();
  const double share = evaluators_ ? kDeliveryShareOfGpu : kDeliveryShare;
  const bool fits = wanted <= share * options_.budget_seconds;
  return fits ? wanted : std::min(kLeastDelivery, share * options_.budget_seconds);
}

// For the judgement of the plan, in a process that is still to start.
double GraphSearch::whole_reserve() const {
  if (is_trivial_) return 0;
  double wanted = judge_->seconds();
  if (wanted <= 0)
    for (const RegionSearch* one : order_) {
      const Costs& costs = one->session->costs();
      wanted += one->times * (judge_->has_begun() ? costs.whole_judgement() : costs.last_round());
    }
  return std::min(std::max(wanted, kLeastReserve), kWholeShare * options_.budget_seconds);
}

double GraphSearch::reserve() const {
  double finals = 0;
  for (const RegionSearch* one : order_) {
    const TuningSession& session = *one->session;
    finals += is_trivial_ ? session.costs().finals() : session.finalists_seconds();
  }
  const double most = (is_trivial_ ? kReserveShare : kFinalsShare) * options_.budget_seconds;
  finals = std::min(std::max(finals, kLeastReserve), most);
  const double wanted = delivery_reserve() + whole_reserve() + finals;
  return std::min(wanted, kReserveShare * options_.budget_seconds);
}
}  // namespace warploom::search
