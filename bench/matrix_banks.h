// The kernels of matrix_banks.cu: products of two operands from shared memory, copies beside them,
// and clocks around both. Sizes are in bytes.
#pragma once
#include <type_traits>
#include "wl.h"

constexpr int A_BYTES = 64 * 128;
constexpr int B_AT = 2 * A_BYTES;
constexpr int COPY_AT = B_AT + 256 * 128;
constexpr int COPY_BYTES = 128 << 10;
constexpr int BARS_AT = COPY_AT + COPY_BYTES;
constexpr int BARS = 64;
constexpr int FLAG_AT = BARS_AT + 8 * BARS;
constexpr int SHARED = FLAG_AT + 16;
constexpr int SLICES = 4;
constexpr int GROUPS = 256;  // of 8 instructions
constexpr int BOXES = 4096;
constexpr int RUNS = 5;
constexpr int TIMES = 8;

struct Operand {
  unsigned lbo;
  unsigned sbo;
  unsigned step[SLICES];
};

struct Work {
  const unsigned* image;
  const unsigned* fragments;
  void* out;
  // Of a block: start and stop of each warpgroup, of the copies, and their number.
  long long* times;
  Operand a;
  Operand b;
  int mode;
  int groups;
  int width;
};

template <class T> using Sum = std::conditional_t<std::is_same_v<T, signed char>, int, float>;

WL_FN void prepare(unsigned smem, const unsigned* image, int at, int bytes) {
  for (int i = wl::thread(); i < bytes / 4; i += static_cast<int>(blockDim.x)) {
    WL_REG(unsigned, w, 1);
    wl::ld_global<4>(wl::at(w, 0), image + i);
    wl::st_shared<4>(smem + at + 4 * i, wl::at(w, 0));
  }
  if (wl::thread() == 0) {
    WL_REG(unsigned, zero, 1);
    zero[0] = 0;
    wl::st_shared<4>(smem + FLAG_AT, wl::at(zero, 0));
    for (int i = 0; i < BARS; ++i)
      wl::mbarrier_init(smem + BARS_AT + 8 * i, 1);
    wl::fence_mbarrier_init();
  }
  wl::fence_async_shared();
  wl::sync_threads();
}

// One thread: boxes of 128 rows into a ring of slots, until `limit` or until the flag is set;
// returns when all have landed. Box i waits for box i - slots, which is use i / slots - 1 of its
// barrier.
WL_FN int fill(unsigned smem, const wl::TensorMap& map, int width, int limit) {
  const int bytes = 128 * width;
  const int slots = COPY_BYTES / bytes;
  const int shift = 31 - __clz(slots);
  const auto bar = [&](int i) { return smem + BARS_AT + 8 * (i & (slots - 1)); };
  WL_REG(unsigned, flag, 1);
  flag[0] = 0;
  int i = 0;
  for (;; ++i) {
    if (i >= slots) wl::mbarrier_wait(bar(i), ((i >> shift) - 1) & 1);
    if (i % 4 == 0) wl::ld_shared<4>(wl::at(flag, 0), smem + FLAG_AT);
    if (i == limit || flag[0] != 0) break;
    const int slot = i & (slots - 1);
    wl::mbarrier_arrive_expect_tx(bar(i), bytes);
    wl::tma_load(smem + COPY_AT + slot * bytes, map, bar(i), 0,
                 (wl::block_x() * slots + slot) * 128);
  }
  for (int j = wl::max(0, i - slots + 1); j < i; ++j)
    wl::mbarrier_wait(bar(j), (j >> shift) & 1);
  return i;
}

// All passes add to the same sums: ptxas leaves out matrix instructions whose sums nobody reads, as
// where each pass begins anew. A warp behind the warpgroups, where there is one, fills other shared
// memory meanwhile.
template <class T, int N, bool MN, bool RS>
__global__ void __launch_bounds__(RS ? 256 : 288, 1)
    multiply(Work work, const __grid_constant__ wl::TensorMap map) {
  const unsigned smem = WL_SHARED_BASE();
  prepare(smem, work.image, 0, COPY_AT);
  const int group = wl::thread() / 128;
  const int groups = static_cast<int>(blockDim.x) / 128;
  const int t = wl::thread() % 128;
  long long* times = work.times + wl::block_x() * TIMES;
  if (group == groups) {
    if (t == 0) {
      times[4] = clock64();
      times[6] = fill(smem, map, work.width, 1 << 20);
      times[5] = clock64();
    }
    return;
  }
  WL_REG(T, a, RS ? SLICES * 16 / sizeof(T) : 1);
  if constexpr (RS) {
    WL_UNROLL for (int kk = 0; kk < SLICES; ++kk) wl::ld_global<16>(
        wl::at(a, kk * 16 / sizeof(T)),
        reinterpret_cast<const T*>(work.fragments + (wl::thread() * SLICES + kk) * 4));
  }
  const unsigned long long a_desc =
      wl::smem_descriptor(smem + group * A_BYTES, work.a.lbo, work.a.sbo, work.mode);
  const unsigned long long b_desc =
      wl::smem_descriptor(smem + B_AT, work.b.lbo, work.b.sbo, work.mode);
  WL_REG(Sum<T>, acc, N / 2);
  WL_UNROLL for (int i = 0; i < N / 2; ++i) acc[i] = Sum<T>(7);
  wl::wgmma_fence_regs<N / 2>(wl::at(acc, 0));
  const long long start = clock64();
  for (int i = 0; i < work.groups; ++i) {
    wl::wgmma_fence();
    WL_UNROLL for (int step = 0; step < 2 * SLICES; ++step) {
      const int kk = step % SLICES;
      const unsigned long long b = b_desc + work.b.step[kk] / 16;
      if constexpr (RS)
        wl::wgmma_rs<N, T, MN>(wl::at(acc, 0), wl::at(a, kk * 16 / sizeof(T)), b,
                               i > 0 || step > 0);
      else
        wl::wgmma<N, T, MN, MN>(wl::at(acc, 0), a_desc + work.a.step[kk] / 16, b,
                                i > 0 || step > 0);
    }
    wl::wgmma_commit();
    wl::wgmma_wait<1>();
  }
  wl::wgmma_wait<0>();
  wl::wgmma_fence_regs<N / 2>(wl::at(acc, 0));
  const long long stop = clock64();
  if (wl::thread() == 0 &&
      blockDim.x % 128 != 0) {  // the copies end; nothing else hangs on when they see it
    WL_REG(unsigned, one, 1);
    one[0] = 1;
    wl::st_shared<4>(smem + FLAG_AT, wl::at(one, 0));
  }
  if (t == 0) {
    times[2 * group] = start;
    times[2 * group + 1] = stop;
  }
  Sum<T>* out = static_cast<Sum<T>*>(work.out) +
                ((wl::block_x() * groups + group) * 64 + t / 32 * 16 + t % 32 / 4) * N + t % 4 * 2;
  WL_UNROLL for (int j = 0; j < N / 8; ++j) {
    wl::st_global<8>(out + 8 * j, wl::at(acc, 4 * j));
    wl::st_global<8>(out + 8 * N + 8 * j, wl::at(acc, 4 * j + 2));
  }
}

[[maybe_unused]] __global__ void __launch_bounds__(128, 1)
    copy(Work work, const __grid_constant__ wl::TensorMap map, bool stores) {
  const unsigned smem = WL_SHARED_BASE();
  const int words = COPY_BYTES / 4;
  const int bytes = 128 * work.width;
  const int slots = COPY_BYTES / bytes;
  const int a_group = 16384 / bytes;
  prepare(smem, work.image + (stores ? wl::block_x() * words : 0), COPY_AT,
          stores ? COPY_BYTES : 0);
  if (wl::thread() == 0) {
    long long* times = work.times + wl::block_x() * TIMES;
    times[0] = clock64();
    if (stores) {
      for (int i = 0; i < work.groups;
           ++i) {  // the same contents to the same places, again and again
        const int slot = i & (slots - 1);
        wl::tma_store(map, smem + COPY_AT + slot * bytes, 0, (wl::block_x() * slots + slot) * 128);
        if ((i + 1) % a_group != 0) continue;
        wl::bulk_commit();
        wl::bulk_wait_read<7>();
      }
      wl::bulk_commit();
      wl::bulk_wait_read<0>();
    } else {
      fill(smem, map, work.width, work.groups);
    }
    times[1] = clock64();
    if (stores) wl::bulk_wait<0>();
  }
  wl::sync_threads();
  for (int i = wl::thread(); !stores && i < words; i += 128) {
    WL_REG(unsigned, w, 1);
    wl::ld_shared<4>(wl::at(w, 0), smem + COPY_AT + 4 * i);
    wl::st_global<4>(static_cast<unsigned*>(work.out) + wl::block_x() * words + i, wl::at(w, 0));
  }
}
