// Standing: whether figures allow to say who is faster.
//
// A ratio is decided when its 95 % interval is narrow, does not hold 1, is of enough pairs, and was
// taken on a quiet machine. Everything else is undecided, and is said so: in words, with the
// interval, never as a figure in green.
//
//   standing_of({1.31, 1.27, 1.35, 40}, quiet)      faster
//   standing_of({1.01, 0.97, 1.04, 40}, quiet)      undecided: "the interval holds 1"
//   standing_of({105.5, 104, 107, 40}, busy)        undecided: "the machine is busy"
//   standing_of({}, quiet)                          unknown: there is no reference
#pragma once
#include "runtime/noise.h"
#include "runtime/timing.h"

namespace warploom::runtime {
enum class Standing : uint8_t { unknown, undecided, slower, faster };

Standing standing_of(const Ratio& ratio, const Noise& noise);
std::string_view name_of(Standing standing);  // "unknown", "undecided", "slower", "faster"

// Why a known ratio decides nothing, in words; empty where it does decide, or is unknown.
std::vector<std::string> why_undecided(const Ratio& ratio, const Noise& noise);

// Half of an interval's width over its median: the 0.04 of "±4 %".
double uncertainty_of(const Ratio& ratio);
}  // namespace warploom::runtime
