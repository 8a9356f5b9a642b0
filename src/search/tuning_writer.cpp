// The part of a session that has a language model write beside its strategy.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/rendered.h"
#include "llm/exchange.h"
#include "llm/model.h"
#include "search/candidate.h"
#include "search/coder/model_writer.h"
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
  const bool is_full = put_ >= most_candidates();
  if (is_full) writer_->stop();
  std::optional<Written> written = writer_->take();
  const std::vector<llm::Exchange> exchanges = writer_->take_exchanges();
  if (!options_.replay_model)
    for (const llm::Exchange& exchange : exchanges)
      WARPLOOM_CHECK(archive_.record(exchange));
  if (written) {
    ++put_;
    measurer_.submit({.config = written->config, .parents = std::move(written->parents)});
  }
  const bool is_idle = measurer_.pending() == 0 && writer_->has_more();
  if (is_idle) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return ok();
}

void TuningSession::end_writer() {
  if (writer_) writer_->stop();
}
}  // namespace warploom::search
