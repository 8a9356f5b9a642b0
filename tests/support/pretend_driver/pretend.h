// A CUDA driver without a GPU: a libcuda.so.1 whose device memory is the host's, and whose kernels
// do nothing. With it tests see what a user is told about cards, memory and GPUs that are lost.
//
//   LD_LIBRARY_PATH=build/release/pretend_driver
//   PRETEND_GPU='{"name": "NVIDIA X1", "memory_mb": 64, "lost_after": 3, "lost_file": "/tmp/lost"}'
//
// `lost_after` launches of a process the GPU is gone, for every process from then on: `lost_file`
// is made, and each call fails. `init` and `retain` are codes that cuInit and the primary context
// fail with.
#pragma once
#include <cstdint>
#include <string>
#include "runtime/driver.h"

namespace pretend {
using warploom::runtime::CUresult;

constexpr CUresult kUnknown = 999;  // what a GPU that is lost answers

struct Settings {
  std::string name = "NVIDIA H100 80GB HBM3";
  int major = 9;
  int minor = 0;
  int processors = 132;
  int64_t memory_mb = 81559;
  CUresult init = 0;
  CUresult retain = 0;
  int64_t lost_after = -1;
  std::string lost_file;
};

const Settings& settings();
bool is_lost();
// What a call answers: 0, or that the GPU is lost.
CUresult answer();
}  // namespace pretend
