// Rare errors: what a number of calls, all of them right, says of a kernel that is wrong now and
// then.
//
// A kernel that is wrong in a share p of its calls, at random, is right in n of them with
// probability (1 - p)^n. So n calls that were wholly looked at exclude, with 99 % confidence, every
// p for which that is below 1 %: those above 1 - 0.01^(1/n), about 4.6 / n.
//
// That holds of what a kernel does at random, and of what it does for some inputs as far as the
// calls were on inputs of their own. Where FP64 is too dear for that they repeat, and of a kernel
// that is wrong by what its inputs hold the number of different inputs tells.
//
//   excluded_rate(919)           // 0.005: a wrong call in more than 1 of 200 is excluded
//   whole_calls_for(true, 0.02)  // 919: so many calls of 20 us are looked at of a foreign kernel
//   whole_calls_for(true, 50)    // 40: as many as two seconds allow
#pragma once
#include <cstdint>
#include <string>

namespace warploom::verify {
// 1 where no call was looked at.
double excluded_rate(int64_t calls);

// How many whole calls a kernel should be judged by, beyond those of the families: `call_ms` is
// what one takes with its check. Of text that this program emitted itself none.
int64_t whole_calls_for(bool foreign, double call_ms);

// "a wrong call in more than 1 of 43 is excluded with 99 % confidence (200 whole calls)"; and where
// several calls were on the same inputs: "…; one that depends on its inputs, in more than 1 of 3
// (13 inputs)".
std::string text_of_excluded(int64_t calls, int64_t inputs);
}  // namespace warploom::verify
