// Products of the oracle on a GPU, in a process of their own that runs no candidate: this program
// once more, `PROGRAM __multiply SOCKET MEMORY`, with a plain FP64 kernel
// (resources/plain/product.cu). A problem is one piece of shared memory: sizes, the tables of where
// elements are, both operands as doubles, and behind them room for the results, which are added
// here.
//
//   evaluator → process   {"words": 4096, "results": 2048}      of 8 bytes; where the results begin
//   process → evaluator   {"done": true}
//
// A process that cannot be started, dies or does not answer in time is not asked again: what it
// does not do, the CPU does.
#pragma once
#include "codegen/launch_list.h"
#include "graph/reference.h"

namespace warploom::verify {
class Channel;
inline constexpr const char* kMultiplyCommand = "__multiply";

struct GpuProductOptions {
  double least = 1e9;  // multiply-adds; smaller products are declined, and those that are small
                       // beside what must be copied
  int limit_ms = 60'000;
  std::string program = "/proc/self/exe";
};

// Its copies share the process, which is started when there is a first product to do, and used by
// one thread at a time.
graph::ProductEngine gpu_products(const GpuProductOptions& options = {});

LaunchList product_list(const std::string& arch, int64_t blocks);

// The process's own side, to its end: its exit status.
int multiply_for(Channel& channel, char* memory);
}  // namespace warploom::verify
