#include "search/coder/model_writer.h"
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/rendered.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "llm/answer.h"
#include "llm/exchange.h"
#include "llm/model.h"
#include "llm/prompt.h"
#include "search/candidate.h"
#include "search/task.h"
#include "target/capabilities.h"
#include "verify/evaluator.h"
#include "verify/setup.h"
#include "verify/tolerance.h"

namespace warploom::search {
namespace {
using nlohmann::json;

constexpr int kMostMends = 2;
constexpr int kMostFailures = 3;
constexpr int kMostDry = 8;
constexpr size_t kBanked = 4;
constexpr size_t kTried = 6;        // verdicts in a question
constexpr size_t kSuggestions = 6;  // ideas in a question
constexpr size_t kMostIdeas = 64;
constexpr size_t kOffered = 16;

std::string target_words(const target::Capabilities& target) {
  if (!target.gpu)
    return fmt::format(
        "a CPU, {}, {} cores, vectors of {} bytes, {} vector registers, {} KiB of L2 cache a core",
        target.arch, target.num_sms, target.vector_bytes, target.registers,
        target.shared_bytes / 1024);
  return fmt::format(
      "{} ({}), {} multiprocessors, {} bytes of shared memory a block at most, {} registers a "
      "multiprocessor, L2 of {} MiB, DRAM {:.0f} GB/s, fp32 {:.1f} TFLOPS, tf32 {:.0f}, halves "
      "{:.0f}",
      target.card, target.arch, target.num_sms, target.shared_bytes, target.registers,
      target.l2_bytes >> 20, target.dram_gbs, target.fp32_tflops, target.tf32_tflops,
      target.half_tflops);
}

std::string tolerance_words(const graph::Graph& graph, Track track) {
  const auto tolerance = verify::tolerance_of(graph, track, 0);
  if (!std::isfinite(tolerance.frobenius))
    return fmt::format("An output may be off by {:g} absolutely and relatively.",
                       tolerance.absolute);
  return fmt::format("The relative Frobenius error against FP64 may be {:.2g}, or a vendor's own.",
                     tolerance.frobenius);
}

std::string bound_words(const verify::Bound& bound) {
  if (bound.us <= 0) return "";
  return fmt::format("no kernel takes less than {}, by {}", time_text(bound.us), bound.of);
}

std::string words_of(const Error& error) {
  std::string words(code_text(error.code));
  if (!error.place.empty()) words += ", " + error.place;
  words += ": " + error.message;
  if (!error.expected.empty()) words += "; expected " + error.expected;
  if (!error.found.empty()) words += "; found " + error.found;
  return words;
}

bool is_ready(const std::future<llm::Exchange>& asked) {
  return asked.wait_for(std::chrono::milliseconds(0)) == std::future_status::ready;
}
}  // namespace

ModelWriter::ModelWriter(WriterSetup setup) : setup_(std::move(setup)) {}

ModelWriter::~ModelWriter() {
  ended_ = true;  // the thread ends within a second
}

void ModelWriter::stop() {
  stop_for("the search ended");
  ended_ = true;
}

void ModelWriter::stop_for(std::string why) {
  if (!std::exchange(stopped_, true)) why_stopped_ = std::move(why);
}

void ModelWriter::suggest(std::vector<std::string> sentences) {
  suggested_ = std::move(sentences);
}

void ModelWriter::offer(std::string sentence) {
  offered_.push_front(std::move(sentence));
  if (offered_.size() > kOffered) offered_.pop_back();
}

void ModelWriter::tell(const Candidate& candidate) {
  const verify::Verdict& verdict = candidate.verdict;
  const std::string config = candidate.config.text();
  if (verdict.accepted) bank(candidate);
  if (!last_ || last_->config != config || last_->is_judged) return;
  last_->is_judged = true;
  llm::TriedRow row{last_->sentence, time_text(verdict.median_us)};
  if (verdict.accepted) {
    ++right_;
    mends_ = 0;
  } else {
    last_->refusal = words_of(verdict.error_found);
    row.verdict = last_->refusal;
  }
  const bool gains = verdict.accepted && (best_us_ <= 0 || verdict.median_us <= best_us_);
  dry_ = gains ? 0 : dry_ + 1;
  tried_.push_back(std::move(row));
  if (tried_.size() > kTried) tried_.erase(tried_.begin());
  if (dry_ >= kMostDry) stop_for(fmt::format("{} texts in a row gained nothing", dry_));
}

// The fastest whose source a model can read.
void ModelWriter::bank(const Candidate& candidate) {
  const double us = candidate.verdict.median_us;
  const bool is_best = best_us_ <= 0 || us < best_us_;
  if (is_best) best_us_ = us;
  std::string source = setup_.texts->text_of(candidate.config);
  if (source.empty() && is_best) source = setup_.texts->file_of(candidate.list);
  if (source.empty()) return;
  const std::string config = candidate.config.text();
  std::erase_if(bank_, [&](const Banked& one) { return one.config == config; });
  bank_.push_back({config, std::move(source), us});
  std::ranges::stable_sort(bank_, {}, &Banked::us);
  if (bank_.size() > kBanked) bank_.resize(kBanked);
}

std::optional<Written> ModelWriter::take() {
  if (asked_) {
    if (!is_ready(*asked_)) return std::nullopt;
    llm::Exchange exchange = asked_->get();
    asked_.reset();
    return read(std::move(exchange));
  }
  const bool awaits_verdict = last_ && !last_->is_judged;
  if (!stopped_ && !awaits_verdict) ask();
  return std::nullopt;
}

void ModelWriter::ask() {
  llm::KernelPrompt now = prompt();
  now.task = choose_task(now);
  shown_source_ = now.source;
  ++asked_count_;
  const auto is_ended = [this] {
    return ended_.load() || (setup_.interrupted && setup_.interrupted->load());
  };
  llm::Question question = llm::question_of(now);
  question.most_tokens = setup_.answer_tokens;
  asked_ = std::async(std::launch::async, [this, is_ended, question = std::move(question)] {
    return setup_.model->ask(question, is_ended);
  });
}

llm::KernelPrompt ModelWriter::prompt() const {
  const Task& task = *setup_.task;
  const target::Capabilities& target = task.space.capabilities;
  const graph::Graph& graph = task.setup.graph;
  llm::KernelPrompt out;
  out.language = target.gpu ? "CUDA C++" : "C++";
  out.gpu = target.gpu;
  out.problem = graph::to_text(graph);
  out.buffers = setup_.texts->buffers();
  out.track = name_of(task.setup.track);
  out.tolerance = tolerance_words(graph, task.setup.track);
  out.target = target_words(target);
  out.bound = bound_words(task.bound);
  out.reference = reference_;
  out.tried = tried_;
  return out;
}

// What is asked for, and the source that the model is shown.
std::string ModelWriter::choose_task(llm::KernelPrompt& prompt) {
  shown_parents_.clear();
  const bool is_refused = last_ && !last_->refusal.empty();
  if (is_refused && mends_ < kMostMends) {
    ++mends_;
    prompt.source = last_->source;
    prompt.standing = "refused: " + last_->refusal;
    shown_parents_ = {last_->config};
    return "Mend the current source: it was refused. Keep what it does well.";
  }
  mends_ = 0;
  const size_t shown = std::min(suggested_.size(), kSuggestions);
  prompt.ideas.assign(suggested_.begin(), suggested_.begin() + static_cast<ptrdiff_t>(shown));
  if (asked_count_ > 0) prompt.idea = next_idea();
  if (bank_.empty()) return "Write a kernel file that is right, and as fast as you can make it.";
  const bool is_second = bank_.size() > 1 && turn_++ % 3 == 2;
  const Banked& base = bank_[is_second ? 1 : 0];
  prompt.source = base.source;
  prompt.standing = fmt::format("right, {}", time_text(base.us));
  shown_parents_ = {base.config};
  if (prompt.idea.empty()) return "Make the current source faster, or write another that is.";
  return "Make the current source faster by the idea above, or write another that is.";
}

// The model's own and the search's in turn, each once.
std::string ModelWriter::next_idea() {
  const auto first_new = [this](auto& ideas) {
    while (!ideas.empty()) {
      std::string idea = std::move(ideas.front());
      ideas.erase(ideas.begin());
      if (taken_ideas_.insert(idea).second) return idea;
    }
    return std::string();
  };
  const auto of_search = [&] {
    std::string idea = first_new(offered_);
    std::vector<std::string> suggested = suggested_;  // which are told again with each question
    return idea.empty() ? first_new(suggested) : idea;
  };
  const bool own_first = taken_ideas_.size() % 2 == 0;
  std::string idea = own_first ? first_new(ideas_) : of_search();
  if (idea.empty()) idea = own_first ? of_search() : first_new(ideas_);
  return idea;
}

std::optional<Written> ModelWriter::read(llm::Exchange exchange) {
  std::optional<Error> failure = exchange.failure;
  std::optional<Written> out;
  spent_.prompt += exchange.usage.prompt;
  spent_.answer += exchange.usage.answer;
  spent_.is_estimated = spent_.is_estimated || exchange.usage.is_estimated;
  money_ += exchange.money;
  const llm::Answer answer = llm::read_answer(exchange.answer);
  if (!failure) {
    for (const std::string& idea : answer.ideas)
      if (ideas_.size() < kMostIdeas) ideas_.push_back(idea);
    Result<std::string> text = answer.source_from(shown_source_);
    if (!text) {
      failure = text.error();
    } else {
      const kernels::KernelConfig config = setup_.texts->add(*text);
      const bool is_new = written_.insert(config.text()).second;
      exchange.made = config.text();
      const std::string sentence =
          answer.change.empty() ? exchange.question.purpose : answer.change;
      if (is_new) {
        out = Written{config, sentence, shown_parents_};
        last_ = Last{config.text(), *std::move(text), sentence};
      } else {
        failure = Error{ErrorCode::kModelNoSource, "the model wrote what it had written before"};
      }
    }
  }
  exchange.failure = failure;
  exchanges_.push_back(std::move(exchange));
  if (failure)
    fail(*failure);
  else
    failures_ = 0;
  texts_ += out ? 1 : 0;
  return out;
}

void ModelWriter::fail(const Error& error) {
  ++failed_[std::string(code_text(error.code))];
  tried_.push_back({"an answer", words_of(error)});
  if (tried_.size() > kTried) tried_.erase(tried_.begin());
  const bool is_last = ++failures_ >= kMostFailures || llm::is_hopeless(error.code);
  if (is_last) stop_for(words_of(error));
}

json ModelWriter::summary() const {
  json why;
  if (stopped_) why = why_stopped_;
  return {{"model", setup_.model->name()},
          {"exchanges", asked_count_},
          {"failed", failed_},
          {"texts", texts_},
          {"right", right_},
          {"tokens", spent_.total()},
          {"tokens_estimated", spent_.is_estimated},
          {"money", money_},
          {"stopped", why}};
}
}  // namespace warploom::search
