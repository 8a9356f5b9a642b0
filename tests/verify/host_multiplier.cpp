#include "host_multiplier.h"
#include <barrier>
#include <cmath>
#include <optional>
#include <thread>
#include <vector>
#include "verify/channel.h"
#include "verify/gpu_products.h"
#include "verify/peer.h"

namespace {
struct Place {
  unsigned x = 0;
};

thread_local Place threadIdx;
thread_local Place blockIdx;
constexpr Place gridDim = {2};
constexpr Place blockDim = {256};
std::optional<std::barrier<>> barrier;
}  // namespace

#define __device__
#define __global__
#define __launch_bounds__(...)
#define __shared__ static
#define __syncthreads() barrier->arrive_and_wait()
#include "../../resources/plain/product.cu"

namespace warploom::verify {
namespace {
// All blocks, one after another, as one of the threads that run them.
void run_thread(unsigned thread, char* memory) {
  threadIdx.x = thread;
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
    oracle_product(reinterpret_cast<long long*>(memory));
    barrier->arrive_and_wait();  // what blocks share here is not shared there
  }
}
}  // namespace

bool host_multiplier_main(int argc, char** argv, int* status) {
  return peer_main(kMultiplyCommand, 5, argc, argv, status, [](Channel& channel, char* memory) {
    const int count = product_list("sm_90a", 1).kernels[0].threads;
    while (const auto message = channel.receive(-1)) {
      barrier.emplace(count);
      std::vector<std::jthread> threads;
      for (unsigned t = 0; t < static_cast<unsigned>(count); ++t)
        threads.emplace_back([memory, t] { run_thread(t, memory); });
      threads.clear();
      channel.send({{"done", true}});
    }
    return 0;
  });
}
}  // namespace warploom::verify
