// Requests: how candidates are asked to be judged, as the time allows.
#pragma once
#include "search/budget.h"
#include "verify/evaluator.h"

namespace warploom::search {
// Asks for a screening: sampled outputs, and a quick time. A candidate much slower than
// `known_us`, what is known to be possible, is of no use (0: nothing is known). `seconds`: of the
// whole search.
verify::Request quick_request(double seconds, double known_us);

// Asks for a finalist's time beside the reference, more exactly than a screening does.
verify::Request finalist_request(double seconds, double known_us);

// How long something may go on.
struct Slice {
  Budget soft;               // nothing more is begun after it
  Budget hard;               // what is at work then is ended
  bool until_right = false;  // or until something is right
};

// Asks for a judgement of the whole in about as many seconds as are left of the soft budget, of
// which no launch may take more than its limit.
verify::Request whole_request(const Slice& slice, double limit_ms);
}  // namespace warploom::search
