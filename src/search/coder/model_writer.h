// ModelWriter: a language model that writes kernels beside a strategy.
//
// It asks one question at a time, on a thread of its own, while the search goes on with other
// candidates. What comes back is a text like any other candidate: the session submits it, and
// tells the writer its verdict, which the next question holds.
//
//   ModelWriter writer({.task = &task, .model = model, .texts = texts});
//   while (searching) {
//     if (auto written = writer.take()) submit(written->config);
//     writer.tell(judged);              // every verdict, of other coders' candidates too
//   }
//
// What is asked for next:
//
//   mend     the last text was refused: it and its verdict, twice in a row at most
//   write    nothing is right yet: a first kernel
//   go on    the bank's best, every third time its second, with an idea to carry out:
//            in turn one of the model's own earlier answers, and an action that the strategy took
//            or that the policy holds for best, in its words; each once
//
// It stops when the model may use no more, cannot be reached, fails or repeats itself three times
// in a row, or when eight of its texts in a row gained nothing. A failure ends nothing but that:
// the search goes on without it.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "kernels/config/kernel_config.h"
#include "llm/completion.h"
#include "llm/exchange.h"
#include "llm/model.h"
#include "llm/prompt.h"
#include "search/candidate.h"
#include "search/coder/written.h"
#include "search/task.h"

namespace warploom::search {
// A text that came, with where it comes from.
struct Written {
  kernels::KernelConfig config;
  std::string sentence;              // what the model says that it does
  std::vector<std::string> parents;  // texts of the configs whose source it was shown
};

struct WriterSetup {
  const Task* task = nullptr;  // which must outlive it
  std::shared_ptr<llm::Model> model;
  std::shared_ptr<WrittenTexts> texts;
  const std::atomic<bool>* interrupted = nullptr;
  int64_t answer_tokens = 8192;
};

class ModelWriter {
 public:
  explicit ModelWriter(WriterSetup setup);
  ~ModelWriter();
  ModelWriter(const ModelWriter&) = delete;
  ModelWriter& operator=(const ModelWriter&) = delete;

  // A verdict. The list, where the candidate has one, becomes what the model goes on with.
  void tell(const Candidate& candidate);
  // Changes that the search's own rules hold for promising, in words, best first.
  void suggest(std::vector<std::string> sentences);

  // An action that the strategy has just taken, in words; the latest are kept.
  void offer(std::string sentence);

  void set_reference(std::string words) { reference_ = std::move(words); }

  // A text that has come, at most one; asks the next question where none is open.
  std::optional<Written> take();

  // Whether more may come: a question is open, or may be asked.
  bool has_more() const { return !stopped_; }

  // Asks no more, and ends the question that is open.
  void stop();

  // The exchanges since it was last asked.
  std::vector<llm::Exchange> take_exchanges() { return std::exchange(exchanges_, {}); }

  // What it did so far: "model", "exchanges", "failed" (by code), "texts", "right", "tokens",
  // "tokens_estimated", "money", "stopped" (why; null: it did not).
  nlohmann::json summary() const;

 private:
  struct Banked {
    std::string config;  // its text
    std::string source;
    double us = 0;
  };

  // The text that was written last, until its verdict is known and after.
  struct Last {
    std::string config;
    std::string source;
    std::string sentence;
    std::string refusal = {};
    bool is_judged = false;
  };

  void ask();
  llm::KernelPrompt prompt() const;
  std::string choose_task(llm::KernelPrompt& prompt);
  std::string next_idea();
  std::optional<Written> read(llm::Exchange exchange);
  void fail(const Error& error);
  void bank(const Candidate& candidate);
  void stop_for(std::string why);

  WriterSetup setup_;
  std::atomic<bool> ended_ = false;
  bool stopped_ = false;
  std::string why_stopped_;
  std::optional<std::future<llm::Exchange>> asked_;
  std::string shown_source_;                // in the open question
  std::vector<std::string> shown_parents_;  // whose it is
  std::optional<Last> last_;
  std::vector<Banked> bank_;         // the fastest first
  std::deque<std::string> ideas_;    // of the model's answers
  std::deque<std::string> offered_;  // the latest first
  std::vector<std::string> suggested_;
  std::set<std::string> taken_ideas_;
  std::vector<llm::TriedRow> tried_;
  std::vector<llm::Exchange> exchanges_;
  std::set<std::string> written_;      // texts of configs
  std::map<std::string, int> failed_;  // by code
  std::string reference_;
  llm::Usage spent_;
  double money_ = 0;
  double best_us_ = 0;
  int asked_count_ = 0;
  int texts_ = 0;
  int right_ = 0;
  int mends_ = 0;     // in a row
  int failures_ = 0;  // in a row
  int dry_ = 0;       // texts in a row without a gain
  int turn_ = 0;
};
}  // namespace warploom::search
