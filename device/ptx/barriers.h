// Barriers of the block, of a part of it, and of the cluster; transaction barriers (mbarrier) in
// shared memory.
#pragma once

namespace wl {
WL_FN void sync_threads() {
  asm volatile("barrier.sync.aligned 0;" ::: "memory");
}

// id 1 to 15; threads a multiple of 32; whole warps take part.
WL_FN void sync_named(int id, int threads) {
  asm volatile("barrier.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

WL_FN void sync_warp() {
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

// Not the aligned forms: the lanes of a warp may come one after another.
WL_FN void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
}

// addr: 8 bytes, aligned to 8. A phase completes when `count` arrivals and all expected bytes are
// in.
WL_FN void mbarrier_init(unsigned addr, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(addr), "r"(count) : "memory");
}

// After the inits and before the barrier that publishes them, when TMA or another block
// will use them.
WL_FN void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

WL_FN void mbarrier_arrive(unsigned addr) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(addr) : "memory");
}

WL_FN void mbarrier_arrive_expect_tx(unsigned addr, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(addr), "r"(bytes)
               : "memory");
}

// mbarrier_wait returns once the phase of that parity has completed: 0 for the first phase; 1 at
// once on a fresh barrier. mbarrier_wait_cluster also acquires what other blocks of the cluster
// wrote before they arrived.
#define WL_MBARRIER_WAIT(name, scope)               \
  WL_FN void name(unsigned addr, unsigned parity) { \
    asm volatile(                                   \
        "{ .reg .pred p;\n"                         \
        "wl_again: mbarrier.try_wait.parity" scope  \
        ".shared::cta.b64 p, [%0], %1;\n"           \
        "@p bra wl_done;\n"                         \
        "bra wl_again;\n"                           \
        "wl_done: }" ::"r"(addr),                   \
        "r"(parity)                                 \
        : "memory");                                \
  }
WL_MBARRIER_WAIT(mbarrier_wait, "")
WL_MBARRIER_WAIT(mbarrier_wait_cluster, ".acquire.cluster")
#undef WL_MBARRIER_WAIT

// Arrives at the barrier at the same address of another block of the cluster: hands back what this
// thread has read there. It orders no writes: `.release.cluster` would, by a fence of the whole GPU
// (1.6 times the time of a matmul on an H200).
WL_FN void mbarrier_arrive_cluster(unsigned addr, int cta_rank) {
  asm volatile(
      "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote]; }" ::"r"(addr),
      "r"(cta_rank)
      : "memory");
}
}  // namespace wl
