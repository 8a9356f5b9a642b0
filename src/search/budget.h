// Budget: the time of a search, and how much of it its last rounds will want.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>

namespace warploom::search {
class Budget {
 public:
  using Clock = std::chrono::steady_clock;

  // `endless`: no clock ends the search.
  Budget(double seconds, bool endless) : seconds_(seconds), endless_(endless) {}

  Clock::time_point start() const { return start_; }

  double seconds() const { return seconds_; }

  double spent() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  double left() const { return endless_ ? HUGE_VAL : seconds_ - spent(); }

  // Seconds of an evaluator's start, and about how many a candidate's judgement takes.
  void evaluator_took(double seconds) { start_seconds_ = seconds; }

  void judgement_took(double seconds) {
    // The first judgement makes what later ones find ready.
    const bool early = judgements_++ < 2;
    judge_seconds_ = early ? seconds : 0.7 * judge_seconds_ + 0.3 * seconds;
  }

  double judgement() const { return judge_seconds_; }

  // A fresh evaluator's start, and its whole judgement.
  double last_round() const { return 1.2 * start_seconds_ + 2 * judge_seconds_; }

  // Kept back for the last rounds: the same, and the finalists' measurements.
  double reserve() const {
    const double finals = std::min(4.0, 0.07 * seconds_);
    return std::min(1.3 * start_seconds_ + 2 * judge_seconds_ + finals, 0.6 * seconds_);
  }

 private:
  double seconds_;
  bool endless_;
  Clock::time_point start_ = Clock::now();
  double start_seconds_ = 0;
  double judge_seconds_ = 0;
  int judgements_ = 0;
};
}  // namespace warploom::search
