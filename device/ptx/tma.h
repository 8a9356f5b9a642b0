// The copy engine: boxes of a tensor map to and from shared memory, 1 to 5 coordinates, innermost
// first. smem: aligned to 128, to 1024 with the 128-byte swizzle. c0: whole 16 bytes (measured:
// else an H200 answers with an illegal instruction). One thread issues.
#pragma once

namespace wl {
// One row a rank: its number, parameters, their asm operands, and the coordinates' numbers behind
// 2, 3 and 4 other operands. tma_load_multicast: to the same address of every block whose bit is
// set in mask, signalling each one's own barrier. tma_reduce_add: adds to what global memory holds,
// element by element; T is the map's type.
#define WL_ARGS(...) __VA_ARGS__
#define WL_TMA(rank, params, operands, after2, after3, after4)                                    \
  WL_FN void tma_load(unsigned smem, const TensorMap& map, unsigned bar, WL_ARGS params) {        \
    asm volatile("cp.async.bulk.tensor." rank                                                     \
                 ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" after3  \
                 "}], [%2];" ::"r"(smem),                                                         \
                 "l"(&map), "r"(bar), WL_ARGS operands                                            \
                 : "memory");                                                                     \
  }                                                                                               \
  WL_FN void tma_load_multicast(unsigned smem, const TensorMap& map, unsigned bar,                \
                                unsigned short mask, WL_ARGS params) {                            \
    asm volatile("cp.async.bulk.tensor." rank                                                     \
                 ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "  \
                 "[%0], [%1, {" after4 "}], [%2], %3;" ::"r"(smem),                               \
                 "l"(&map), "r"(bar), "h"(mask), WL_ARGS operands                                 \
                 : "memory");                                                                     \
  }                                                                                               \
  WL_FN void tma_store(const TensorMap& map, unsigned smem, WL_ARGS params) {                     \
    asm volatile("cp.async.bulk.tensor." rank ".global.shared::cta.tile.bulk_group [%0, {" after2 \
                 "}], [%1];" ::"l"(&map),                                                         \
                 "r"(smem), WL_ARGS operands                                                      \
                 : "memory");                                                                     \
  }                                                                                               \
  template <class T>                                                                              \
  WL_FN void tma_reduce_add(const TensorMap& map, unsigned smem, WL_ARGS params) {                \
    asm volatile("cp.reduce.async.bulk.tensor." rank                                              \
                 ".global.shared::cta.add.tile.bulk_group [%0, {" after2 "}], [%1];" ::"l"(&map), \
                 "r"(smem), WL_ARGS operands                                                      \
                 : "memory");                                                                     \
  }
WL_TMA("1d", (int c0), ("r"(c0)), "%2", "%3", "%4")
WL_TMA("2d", (int c0, int c1), ("r"(c0), "r"(c1)), "%2, %3", "%3, %4", "%4, %5")
WL_TMA("3d", (int c0, int c1, int c2), ("r"(c0), "r"(c1), "r"(c2)), "%2, %3, %4", "%3, %4, %5",
       "%4, %5, %6")
WL_TMA("4d", (int c0, int c1, int c2, int c3), ("r"(c0), "r"(c1), "r"(c2), "r"(c3)),
       "%2, %3, %4, %5", "%3, %4, %5, %6", "%4, %5, %6, %7")
WL_TMA("5d", (int c0, int c1, int c2, int c3, int c4),
       ("r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)), "%2, %3, %4, %5, %6", "%3, %4, %5, %6, %7",
       "%4, %5, %6, %7, %8")
#undef WL_TMA
#undef WL_ARGS

WL_FN void bulk_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until at most N of this thread's groups are unfinished; the _read form: have not yet read their
// shared memory.
template <int N> WL_FN void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}

template <int N> WL_FN void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

// Shows this thread's ordinary accesses of shared memory to TMA and wgmma: every
// writer, a barrier, then the issue.
WL_FN void fence_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
}  // namespace wl
