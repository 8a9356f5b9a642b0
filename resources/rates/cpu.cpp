// A plain copy past the caches, and multiplications and additions in registers alone, of fp32 and
// of bf16, of one task of many (runtime/rates.cpp). FLOATS, of a task's part of the copy, and TURNS
// are defined in front of this text.
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

#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
extern "C" void half_rate(void* const* buffers, long long task, void*) {
  static constexpr wl::TileSizes kSizes = wl::TileGrid<32, 32>::sizes();
  const void* from = buffers[0];
  asm volatile("ldtilecfg %0" : : "m"(kSizes));
  wl::each_of(wl::Numbers<4>(), [](auto sum) { wl::clear_tile(wl::Tile<sum>()); });
  wl::load_tile(wl::Tile<4>(), from, 64);
  wl::load_tile(wl::Tile<5>(), from, 64);
  wl::load_tile(wl::Tile<6>(), from, 64);
  wl::load_tile(wl::Tile<7>(), from, 64);
  for (long turn = 0; turn < TURNS; ++turn) {
    wl::add_products_of_tiles(wl::Tile<0>(), wl::Tile<4>(), wl::Tile<6>());
    wl::add_products_of_tiles(wl::Tile<1>(), wl::Tile<4>(), wl::Tile<7>());
    wl::add_products_of_tiles(wl::Tile<2>(), wl::Tile<5>(), wl::Tile<6>());
    wl::add_products_of_tiles(wl::Tile<3>(), wl::Tile<5>(), wl::Tile<7>());
  }
  asm volatile("tilerelease");
  if (task < 0) *static_cast<float*>(buffers[1]) = 0;  // nothing else is written
}
#else
extern "C" void half_rate(void* const* buffers, long long task, void*) {
  constexpr int kChains = 12;
  const float* from = static_cast<const float*>(buffers[0]);
  wl::vf sums[kChains];
  WL_UNROLL for (int i = 0; i < kChains; ++i) sums[i] = wl::splat(from[i]);
  const wl::vu a = wl::load_pairs(from, wl::kLanes);
  const wl::vu b = wl::load_pairs(from + wl::kLanes, wl::kLanes);
  for (long turn = 0; turn < TURNS; ++turn) {
    WL_UNROLL for (int i = 0; i < kChains; ++i) sums[i] = wl::add_products_of_pairs(sums[i], a, b);
  }
  wl::vf all = sums[0];
  WL_UNROLL for (int i = 1; i < kChains; ++i) all += sums[i];
  // Which no compiler can know.
  if (all[0] == 12345.0f) static_cast<float*>(buffers[1])[task] = all[0];
}
#endif
