#include "runtime/executor.h"

#include "runtime/engines.h"

namespace warploom::runtime {

Result<std::unique_ptr<Executor>> Executor::open(Engine engine, int ordinal, int threads) {
  return engine == Engine::cuda ? open_gpu(ordinal) : open_cpu(threads);
}

}  // namespace warploom::runtime
