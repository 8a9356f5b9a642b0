// The copy engine: boxes of a tensor map to and from shared memory, 1 to 5 coordinates, innermost first.
// smem: aligned to 128, to 1024 with the 128-byte swizzle. c0: whole 16 bytes (measured: else an H200 answers with an illegal
// instruction). One thread issues.
#pragma once

namespace wl {

WL_FN void tma_prefetch(const TensorMap& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

WL_FN void tma_load(unsigned smem, const TensorMap& map, unsigned bar, int c0) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3}], "
      "[%2];" ::"r"(smem),
      "l"(&map), "r"(bar), "r"(c0)
      : "memory");
}
// To the same address of every block whose bit is set in mask, signalling each one's own barrier.
WL_FN void tma_load_multicast(unsigned smem, const TensorMap& map, unsigned bar, unsigned short mask, int c0) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4}], [%2], %3;" ::"r"(smem),
      "l"(&map), "r"(bar), "h"(mask), "r"(c0)
      : "memory");
}
WL_FN void tma_store(const TensorMap& map, unsigned smem, int c0) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%2}], [%1];" ::"l"(&map), "r"(smem),
               "r"(c0)
               : "memory");
}

WL_FN void tma_load(unsigned smem, const TensorMap& map, unsigned bar, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], [%2];" ::"r"(smem),
      "l"(&map), "r"(bar), "r"(c0), "r"(c1)
      : "memory");
}
// To the same address of every block whose bit is set in mask, signalling each one's own barrier.
WL_FN void tma_load_multicast(unsigned smem, const TensorMap& map, unsigned bar, unsigned short mask, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5}], [%2], %3;" ::"r"(smem),
      "l"(&map), "r"(bar), "h"(mask), "r"(c0), "r"(c1)
      : "memory");
}
WL_FN void tma_store(const TensorMap& map, unsigned smem, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
               "r"(smem), "r"(c0), "r"(c1)
               : "memory");
}

WL_FN void tma_load(unsigned smem, const TensorMap& map, unsigned bar, int c0, int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5}], [%2];" ::"r"(smem),
      "l"(&map), "r"(bar), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
// To the same address of every block whose bit is set in mask, signalling each one's own barrier.
WL_FN void tma_load_multicast(unsigned smem, const TensorMap& map, unsigned bar, unsigned short mask, int c0, int c1,
                              int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(smem),
      "l"(&map), "r"(bar), "h"(mask), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
WL_FN void tma_store(const TensorMap& map, unsigned smem, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
               "r"(smem), "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}

WL_FN void tma_load(unsigned smem, const TensorMap& map, unsigned bar, int c0, int c1, int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5, %6}], [%2];" ::"r"(smem),
      "l"(&map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
// To the same address of every block whose bit is set in mask, signalling each one's own barrier.
WL_FN void tma_load_multicast(unsigned smem, const TensorMap& map, unsigned bar, unsigned short mask, int c0, int c1,
                              int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(smem),
      "l"(&map), "r"(bar), "h"(mask), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
WL_FN void tma_store(const TensorMap& map, unsigned smem, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
               "r"(smem), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}

WL_FN void tma_load(unsigned smem, const TensorMap& map, unsigned bar, int c0, int c1, int c2, int c3, int c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5, %6, %7}], [%2];" ::"r"(smem),
      "l"(&map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}
// To the same address of every block whose bit is set in mask, signalling each one's own barrier.
WL_FN void tma_load_multicast(unsigned smem, const TensorMap& map, unsigned bar, unsigned short mask, int c0, int c1,
                              int c2, int c3, int c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;" ::"r"(smem),
      "l"(&map), "r"(bar), "h"(mask), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}
WL_FN void tma_store(const TensorMap& map, unsigned smem, int c0, int c1, int c2, int c3, int c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
      "r"(smem), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}

WL_FN void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until at most N of this thread's groups are unfinished; the _read form: have not yet read their shared memory.
template <int N>
WL_FN void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}
template <int N>
WL_FN void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
// Makes this thread's ordinary accesses to shared memory visible to the copy engine and to wgmma. Every writer calls it,
// then the barrier, then the issue.
WL_FN void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace wl
