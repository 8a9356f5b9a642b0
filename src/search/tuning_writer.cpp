// The part of a session that has a language model write beside its strategy.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/rendered.h"
#include "llm/exchange.h"
#include "llm/model.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/candidate.h"
#include "search/coder/model_writer.h"
#include "search/coder/written.h"
#include "search/policy/analytic.h"
#include "search/policy/state.h"
#include "search/tuning_session.h"

namespace warploom::search {
namespace {
constexpr size_t kBanked = 4;  // texts of earlier searches that are judged again
}  // namespace

Status TuningSession::start_writer() {
  if (!task_.texts || !options_.has_model()) return ok();
  std::shared_ptr<llm::Model> model = options_.model;
  if (options_.replay_model) {
    WARPLOOM_TRY(std::vector<llm::Exchange> exchanges, archive_.exchanges());
    model = std::make_shared<llm::ReplayedModel>(std::move(exchanges));
  }
  writer_.emplace(WriterSetup{&task_, std::move(model), task_.texts, options_.interrupted,
                              options_.answer_tokens});
  const double us = archive_.run().reference_us.value_or(0);
  if (us > 0) writer_->set_reference(archive_.ready().reference + " takes " + time_text(us));
  return ok();
}

// The best that models wrote in earlier searches, whoever they were.
void TuningSession::submit_banked(std::vector<Candidate> known) {
  if (!writer_) return;
  sort_by_time(known);
  if (known.size() > kBanked) known.resize(kBanked);
  for (Candidate& one : known) {
    one.verdict = {};
    one.judged_here = false;
    measurer_.submit(std::move(one));
    ++put_;
  }
}

// Takes what has come and asks for more; waits a little where nothing else is at work.
Status TuningSession::ask_writer() {
  if (!writer_) return ok();
  // It has more to say of a source that is right than of none.
  const bool is_first_out = candidates() == 0 && measurer_.pending() > 0;
  if (is_first_out) return ok();
  const bool is_full = put_ >= most_candidates();
  if (is_full) writer_->stop();
  suggest_actions();
  std::optional<Written> written = writer_->take();
  WARPLOOM_CHECK(record_exchanges());
  if (written) {
    ++put_;
    measurer_.submit({.config = written->config,
                      .parents = std::move(written->parents),
                      .action = idea_of(written->sentence)});
  }
  const bool is_idle = measurer_.pending() == 0 && writer_->has_more();
  if (is_idle) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return ok();
}

Status TuningSession::record_exchanges() {
  const std::vector<llm::Exchange> exchanges = writer_->take_exchanges();
  if (options_.replay_model) return ok();
  for (const llm::Exchange& exchange : exchanges)
    WARPLOOM_CHECK(archive_.record(exchange));
  return ok();
}

// What the policy holds for the most promising changes of the best config, where that is new.
void TuningSession::suggest_actions() {
  constexpr size_t kSuggested = 6;
  const auto is_usable = [](const Candidate& one) {
    return one.verdict.accepted && !is_written(one.config);
  };
  const Candidate* best = nullptr;
  for (const Candidate& one : candidates_)
    if (is_usable(one) && (!best || one.verdict.median_us < best->verdict.median_us)) best = &one;
  if (!best || best->config == suggested_for_) return;
  suggested_for_ = best->config;
  const RegionFacts facts = facts_of(task_.space);
  const double us = best->verdict.median_us;
  const State state{&task_.space, &facts, best->config, us, us};
  const std::vector<Action> legal = actions_of(task_.space, best->config).legal;
  const std::vector<double> weights = AnalyticPolicy().weights(state, legal);
  std::vector<size_t> order(legal.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return -weights[i]; });
  std::vector<std::string> sentences;
  for (const size_t i : order)
    if (sentences.size() < kSuggested) sentences.push_back(legal[i].sentence);
  writer_->suggest(std::move(sentences));
}

void TuningSession::end_writer() {
  if (writer_) writer_->stop();
}

// The question that was open when the search ended is kept as well, once it has ended.
nlohmann::json TuningSession::writer_summary() {
  if (!writer_) return nullptr;
  (void)writer_->take();
  (void)record_exchanges();  // the outcome is worth more than this row
  return writer_->summary();
}
}  // namespace warploom::search
