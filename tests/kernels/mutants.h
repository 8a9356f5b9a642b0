// Mutants of emitted kernels: texts in which one synchronisation is removed or weakened.
//
// All mutants of a text are compiled at once: every call that has weaker versions becomes a choice
// by the number `wl_mutant`, which the test sets before it runs the kernel. Lines stay what they
// were.
//
//   wl::cp_async_wait<1>();   becomes   (wl_mutant == 7 ? (void)0 : wl_mutant == 8 ?
//   wl::cp_async_wait<2>() : … );
#pragma once
#include <string>
#include <vector>
#include "codegen/launch_list.h"

extern "C" int wl_mutant;  // 0: the text as it was

namespace warploom::test {
struct Mutant {
  int number = 0;  // of wl_mutant, from 1 in each launch list
  std::string kernel;
  int line = 0;
  // "cp_async_wait", "one group more may be under way"
  std::string call;
  std::string change;
  std::string text;  // of the line
};

// Rewrites the kernels' sources; the mutants they now hold.
std::vector<Mutant> plant_mutants(LaunchList& list);
}  // namespace warploom::test
