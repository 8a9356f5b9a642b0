// Recorder: fills a file of outcomes (outcomes.h) by measuring plans on this machine.
//
//   Outcomes outcomes;                                       // or one read from a file
//   WARPLOOM_CHECK(add_problem(outcomes, "softmax_512", region, Use::train));
//   Recorder recorder(outcomes);
//   recorder.grow({.plans = 40, .seed = 1});                 // plans without outcomes yet
//   WARPLOOM_CHECK(recorder.compile(budget, 0));             // all cores; images go to the cache
//   WARPLOOM_CHECK(recorder.measure(budget));                // one at a time, in a quiet machine
//   write_outcomes(path, outcomes);
//
// Each step takes up what earlier ones left, so recording can stop anywhere and go on. Compiling
// and measuring are apart since a compiler on another core spoils a time.
//
// grow() goes forward and backward. Forward: from one of the best plans, or from any that was
// measured, what its actions make of it, some at random. Backward: all that actions make of the
// best plan of each family, since what makes the best plan worse is, the other way round, the last
// step to it. enclose() draws a closed sub-space: of every field some values, so that at most so
// many legal plans are left, and takes them all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include "base/error.h"
#include "base/random.h"
#include "kernels/family.h"
#include "search/budget.h"
#include "search/policy/outcomes.h"
#include "search/task.h"
#include "target/capabilities.h"

namespace warploom::search {
// A problem more, without plans; outcomes-invalid where the name is taken.
Status add_problem(Outcomes& outcomes, const std::string& name, const kernels::Region& region,
                   Use use);

struct Growth {
  size_t plans = 40;  // how many more, at most
  uint64_t seed = 1;
};

class Recorder {
 public:
  // Of outcomes that outlive it.
  explicit Recorder(Outcomes& outcomes);

  // Adds plans to every problem that is not closed.
  void grow(const Growth& growth);
  // Makes each of those problems closed that have no plans yet.
  void enclose(const Growth& growth);

  // Compiles what is not measured yet, by `jobs` compilers at once (0: one a core); what does not
  // build has its outcome then. Ends with the budget.
  Status compile(const Budget& budget, int jobs);
  // Measures what was compiled. Ends with the budget; fails with what no other plan would escape.
  Status measure(const Budget& budget);

  size_t unknown() const;  // plans without outcomes

 private:
  struct Bound;

  void forward(Bound& bound, size_t most, Random& random);
  void backward(Bound& bound, size_t most);
  void add_seeds(Bound& bound, Random& random);
  Status measure_problem(Bound& bound, const Budget& budget);

  Outcomes& outcomes_;
  std::vector<std::shared_ptr<Bound>> bound_;
};
}  // namespace warploom::search
