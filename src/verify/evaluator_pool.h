// EvaluatorPool: evaluator processes that open a GPU and the vendors' libraries before anybody
// knows the problem, and with each the one that evaluates FP64. A search plans and compiles
// meanwhile: what they need takes seconds, most of them in the driver.
//
//   EvaluatorPool pool(2);                                  // at once, before the model is read
//   …
//   Evaluator::start(setup, {.pool = &pool});               // the first takes a process that waits
//
// Who finds none starts a process of his own, as without a pool. Where one has no GPU to open, the
// evaluator says so when it is given a problem. Processes that nobody took end with the pool. They
// belong to the thread that made it.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>
#include "base/error.h"
#include "verify/channel.h"
#include "verify/memory_group.h"

namespace warploom::verify {
// An evaluator's process, and what bounds its memory with all that it starts.
struct EvaluatorProcess {
  std::unique_ptr<MemoryGroup> group;  // null: none
  Peer peer;

  // `ahead`: it opens the GPU before it is told of a problem.
  Status start(const std::filesystem::path& program, bool ahead = false);
};

class EvaluatorPool {
 public:
  explicit EvaluatorPool(int count, const std::filesystem::path& program = "/proc/self/exe");

  // One that nobody has taken; null: none is left.
  std::unique_ptr<EvaluatorProcess> take();

 private:
  std::vector<std::unique_ptr<EvaluatorProcess>> waiting_;
};
}  // namespace warploom::verify
