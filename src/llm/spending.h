// Spending: what a model may cost a search, and what it has cost.
//
//   Spending spending({.tokens = 200'000, .requests_per_minute = 20,
//                      .prices = {.prompt = 3, .answer = 15}});
//   WARPLOOM_CHECK(spending.may_ask(2'000));  // model-budget where a question of so many tokens
//                                             // is more than what is left
//   spending.add({.prompt = 2'012, .answer = 900});
//   spending.money()                          // 0.019536
//
// Threads share it.
#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include "base/error.h"
#include "llm/completion.h"

namespace warploom::llm {
// Money a million tokens, in whatever coin the budget is in.
struct Prices {
  double prompt = 0;
  double answer = 0;
};

// What is 0 is not limited.
struct Allowance {
  int64_t tokens = 0;  // of questions and answers together
  double money = 0;
  double requests_per_minute = 0;
  Prices prices = {};
};

class Spending {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Spending(const Allowance& allowance = {}) : allowance_(allowance) {}

  // Whether a question of about so many tokens may be asked: something must be left for its answer.
  Status may_ask(int64_t prompt_tokens) const;
  // The most tokens that the answer to such a question may have, `wanted` at most.
  int64_t most_answer(int64_t prompt_tokens, int64_t wanted) const;
  // How long the next request has to wait; it is counted as sent then.
  std::chrono::duration<double> next_turn(Clock::time_point now);
  void add(const Usage& usage);

  Usage spent() const;
  double money() const;
  double money_of(const Usage& usage) const;

 private:
  const Allowance allowance_;
  mutable std::mutex mutex_;
  Usage spent_;
  std::optional<Clock::time_point> next_;  // when the next request may go
};
}  // namespace warploom::llm
