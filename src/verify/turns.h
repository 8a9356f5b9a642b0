// Turns: what comes of samples that a candidate and the reference took in turns.
//
// A reference's samples may be hard to believe (runtime/timing.h: doubt_of). Then all are taken
// again, twice at most, and the run whose reference was faster is kept: a pair is always of one
// run, and nothing makes a library faster than it is. What is still doubted is dropped where the
// reference is known to be faster, or the machine was busy; the verdict says why, and has no figure
// of it. Within the room only.
#pragma once
#include <functional>
#include "verify/evaluator.h"

namespace warploom::verify {
struct Turns {
  std::vector<runtime::Samples> samples;  // the candidate's; the reference's where there is one
  runtime::Noise noise;                   // of the machine, meanwhile
  runtime::Doubt doubt;                   // of the reference's samples
};

// What is known of the reference beside its samples; 0: nothing.
struct ReferenceKnown {
  double flops = 0;        // of the problem
  double archived_us = 0;  // its best median of earlier runs on this machine
  double here_us = 0;      // and in this process, which believable_turns() keeps up to date
};

Result<Turns> believable_turns(const std::function<Result<Turns>()>& take, ReferenceKnown& known);

// Times, intervals, the ratio of pairs and the state of the machine.
void take_figures(Verdict& verdict, const Turns& turns, uint64_t seed);
}  // namespace warploom::verify
