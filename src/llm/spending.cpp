#include "llm/spending.h"
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include "base/casts.h"
#include "base/error.h"
#include "llm/completion.h"

namespace warploom::llm {
namespace {
constexpr int64_t kLeastAnswer = 256;  // tokens: no kernel is shorter
constexpr double kMillion = 1e6;

Error used_up(std::string expected, std::string found) {
  Error error{ErrorCode::kModelBudget, "what the model may use is used up"};
  error.expected = std::move(expected);
  error.found = std::move(found);
  error.remedy = "give it more with --llm-budget or --llm-money";
  return error;
}
}  // namespace

Status Spending::may_ask(int64_t prompt_tokens) const {
  const Usage spent = this->spent();
  const int64_t least = prompt_tokens + kLeastAnswer;
  if (allowance_.tokens > 0 && spent.total() + least > allowance_.tokens)
    return fail(used_up(fmt::format("at most {} tokens", allowance_.tokens),
                        fmt::format("{} were used, {} more are needed", spent.total(), least)));
  const double price = money_of({prompt_tokens, kLeastAnswer});
  if (allowance_.money > 0 && money() + price > allowance_.money)
    return fail(used_up(fmt::format("at most {:g} of money", allowance_.money),
                        fmt::format("{:.4f} was spent, {:.4f} more is needed", money(), price)));
  return ok();
}

int64_t Spending::most_answer(int64_t prompt_tokens, int64_t wanted) const {
  int64_t most = wanted;
  if (allowance_.tokens > 0)
    most = std::min(most, allowance_.tokens - spent().total() - prompt_tokens);
  if (allowance_.money > 0 && allowance_.prices.answer > 0) {
    const double left = allowance_.money - money() - money_of({prompt_tokens, 0});
    most = std::min(most, static_cast<int64_t>(left / allowance_.prices.answer * kMillion));
  }
  return std::max<int64_t>(most, 1);
}

std::chrono::duration<double> Spending::next_turn(Clock::time_point now) {
  if (allowance_.requests_per_minute <= 0) return {};
  const std::lock_guard lock(mutex_);
  const std::chrono::duration<double> gap(60 / allowance_.requests_per_minute);
  const Clock::time_point turn = std::max(now, next_.value_or(now));
  next_ = turn + std::chrono::duration_cast<Clock::duration>(gap);
  return turn - now;
}

void Spending::add(const Usage& usage) {
  const std::lock_guard lock(mutex_);
  spent_.prompt += usage.prompt;
  spent_.answer += usage.answer;
  spent_.is_estimated = spent_.is_estimated || usage.is_estimated;
}

Usage Spending::spent() const {
  const std::lock_guard lock(mutex_);
  return spent_;
}

double Spending::money() const {
  return money_of(spent());
}

double Spending::money_of(const Usage& usage) const {
  const double prompt = as_double(usage.prompt) * allowance_.prices.prompt;
  const double answer = as_double(usage.answer) * allowance_.prices.answer;
  return (prompt + answer) / kMillion;
}
}  // namespace warploom::llm
