// Model: who is asked, an endpoint or a transcript of one.
//
//   WARPLOOM_TRY(auto model, ChatModel::open({.url = "http://127.0.0.1:8080/v1", .name = "qwen"},
//                                            {.tokens = 100'000}));
//   const Exchange exchange = model->ask({.messages = {{"user", "…"}}});
//   if (!exchange.failure) read(exchange.answer);
//
// ask() never fails otherwise: an exchange says what went wrong, and its caller keeps it either
// way. What may pass (429, 5xx, a refused or broken connection, a time-out, a stream cut short) is
// tried again, a few times, after pauses that double, or as long as the server asks. What will not
// (401, 404, no completion at all) is not.
//
// Errors within exchanges: no-curl, model-unreachable, -timeout, -refused, -busy, -schema,
// -truncated, -too-large, -budget, interrupted.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"
#include "llm/exchange.h"
#include "llm/key.h"
#include "llm/spending.h"

namespace warploom::llm {
class Model {
 public:
  virtual ~Model() = default;

  // Ends early, with interrupted, once `is_ended` says so.
  virtual Exchange ask(const Question& question, const std::function<bool()>& is_ended) = 0;
  virtual std::string name() const = 0;
};

// Whether asking again is of no use, whatever is asked.
bool is_hopeless(ErrorCode code);

// Where a model is, and how patiently it is asked.
struct Endpoint {
  std::string url;   // up to the version: "http://127.0.0.1:8080/v1"
  std::string name;  // of the model, as the endpoint knows it
  Key key = {};
  double connect_seconds = 10;
  double idle_seconds = 120;
  double seconds = 600;
  size_t most_bytes = 4 << 20;  // of an answer
  int most_tries = 5;
  double pause_seconds = 0.5;  // before the second try; each is twice as long
  double most_pause_seconds = 60;
};

class ChatModel : public Model {
 public:
  // Fails with usage where the URL is none, or has a name or password in it; no-curl.
  static Result<std::shared_ptr<ChatModel>> open(Endpoint endpoint, const Allowance& allowance);

  Exchange ask(const Question& question, const std::function<bool()>& is_ended) override;

  std::string name() const override { return endpoint_.name; }

 private:
  // One request: its answer, and how long the server asks to wait where it did not answer.
  struct Tried {
    Reply reply;
    Usage usage;
    std::optional<Error> failure;
    double retry_after = -1;
    bool met_limit = false;  // of tokens: it would again
  };

  ChatModel(Endpoint endpoint, const Allowance& allowance)
      : endpoint_(std::move(endpoint)), spending_(allowance) {}

  Tried ask_once(const Question& question, const std::function<bool()>& is_ended);

  const Endpoint endpoint_;
  Spending spending_;
};

// Gives the answers of a transcript in their order, whatever is asked; model-budget after the last.
class ReplayedModel : public Model {
 public:
  explicit ReplayedModel(std::vector<Exchange> exchanges) : exchanges_(std::move(exchanges)) {}

  Exchange ask(const Question& question, const std::function<bool()>& is_ended) override;

  std::string name() const override { return exchanges_.empty() ? "" : exchanges_[0].model; }

 private:
  std::vector<Exchange> exchanges_;
  std::atomic<size_t> next_ = 0;
};
}  // namespace warploom::llm
