// A plain copy past the caches, and multiplications and additions in registers alone, of one task
// of many (runtime/rates.cpp). FLOATS, of a task's part of the copy, and TURNS are defined in front
// of this text.
#include "wl_cpu.h"

extern "C" void copy_rate(void* const* buffers, long long task, void*) {
  const float* from = static_cast<const float*>(buffers[0]) + task * FLOATS;
  float* to = static_cast<float*>(buffers[1]) + task * FLOATS;
  for (long i = 0; i < FLOATS; i += wl::kLanes) wl::stream(to + i, wl::load(from + i));
  wl::stream_end();
}

extern "C" void fma_rate(void* const* buffers, long long task, void*) {
  constexpr int kChains = 12;
  const float* from = static_cast<const float*>(buffers[0]);
  wl::vf sums[kChains];
  WL_UNROLL for (int i = 0; i < kChains; ++i) sums[i] = wl::splat(from[i]);
  const wl::vf a = wl::load(from);
  const wl::vf b = wl::load(from + wl::kLanes);
  for (long turn = 0; turn < TURNS; ++turn) {
    WL_UNROLL for (int i = 0; i < kChains; ++i) sums[i] = wl::fma(sums[i], a, b);
  }
  wl::vf all = sums[0];
  WL_UNROLL for (int i = 1; i < kChains; ++i) all += sums[i];
  // Which no compiler can know.
  if (all[0] == 12345.0f) static_cast<float*>(buffers[1])[task] = all[0];
}
