// The course of a search by rounds, as Stanford CRFM shows theirs (crfm.stanford.edu, "Surprisingly
// Fast AI-Generated Kernels", 2025): the best time of each round, and of all rounds up to it.
//
//   round   0      1      2      3
//   best    812    431    431    71     µs of all so far; the line
//   own     812    431    540    71     µs of the round; the ringed marks
//
// Searches of older programs, and strategies without rounds, have none: there candidates are
// counted in their place.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace warploom::report {
struct Round {
  double number = 0;
  std::optional<double> own_us;   // the fastest of it; none: nothing of it was right
  std::optional<double> best_us;  // of all up to it
  int candidates = 0;
};

// A search in its rounds, the first one first.
struct Rounds {
  bool are_candidates = false;  // each is one candidate
  std::vector<Round> rounds;
};

// Of a history's candidates.
Rounds rounds_of(const nlohmann::json& history);

// The picture; "" where nothing was right.
std::string rounds_picture(const nlohmann::json& history);
}  // namespace warploom::report
