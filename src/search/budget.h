// Budget: the wall clock of a command, handed down from it to whatever waits.
//
//   const Budget budget(20);                  // twenty seconds from now on
//   budget.left()                             // of them
//   budget.part(3)                            // ends in three seconds, or with the whole
//   budget.less(5)                            // ends five seconds before the whole
//   run({.until = budget.until()});           // a wait that ends with it
//
// Times are seconds. Tests hand in a clock of their own.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

namespace warploom::search {
class Budget {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<double()>;  // seconds since some moment

  // `now`: the clock; nothing: this machine's.
  explicit Budget(double seconds, Now now = {})
      : now_(std::move(now)), seconds_(seconds), start_(time()) {}

  // No clock ends it.
  static Budget endless() { return Budget(HUGE_VAL); }

  double seconds() const { return seconds_; }

  double spent() const { return time() - start_; }

  double left() const { return seconds_ - spent(); }

  bool is_over() const { return left() <= 0; }

  // It began `seconds` earlier than it was made.
  void begin_earlier(double seconds) { start_ -= seconds; }

  Budget part(double seconds) const {
    Budget out = *this;
    out.seconds_ = std::min(seconds_, spent() + seconds);
    return out;
  }

  Budget less(double seconds) const {
    Budget out = *this;
    out.seconds_ -= seconds;
    return out;
  }

  // When waits on this machine's clock have to end; nothing where no clock ends it.
  std::optional<Clock::time_point> until() const {
    constexpr double kMost = 1e8;  // what clocks can count
    if (left() > kMost) return std::nullopt;
    const std::chrono::duration<double> rest(std::max(0.0, left()));
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(rest);
  }

 private:
  double time() const {
    if (now_) return now_();
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  }

  Now now_;
  double seconds_;
  double start_;
};
}  // namespace warploom::search
