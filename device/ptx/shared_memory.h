// Shared memory of the block and of the cluster, by 32-bit address; matrix moves; cp.async.
#pragma once

namespace wl {
// The _cluster forms take addresses that come from mapa.
#define WL_SHARED_FORMS(load, Load, store, Store)                               \
  template <int BYTES, class T> WL_FN void load(T* dst, unsigned addr) {        \
    Load<BYTES>::go(dst, addr);                                                 \
  }                                                                             \
  template <int BYTES, class T> WL_FN void store(unsigned addr, const T* src) { \
    Store<BYTES>::go(addr, src);                                                \
  }
WL_SHARED_FORMS(ld_shared, SharedLoad, st_shared, SharedStore)
WL_SHARED_FORMS(ld_shared_cluster, ClusterLoad, st_shared_cluster, ClusterStore)
#undef WL_SHARED_FORMS

// The address of addr in the block of that rank in the cluster.
WL_FN unsigned mapa(unsigned addr, int rank) {
  unsigned r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(addr), "r"(rank));
  return r;
}

// Stores 4 bytes to another block of the cluster, or this one, and tells the barrier there that
// they have come. Both addresses are from mapa. Orders nothing else that the thread wrote.
template <int BYTES, class T> WL_FN void st_async(unsigned addr, const T* src, unsigned bar) {
  static_assert(BYTES == 4, "st_async moves 4 bytes");
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(addr),
      "r"(*reinterpret_cast<const unsigned*>(src)), "r"(bar)
      : "memory");
}

// X matrices of 8 rows of 16 bytes. Lane 8 i + r gives the address of row r of matrix i; the i-th
// 32 bits of a thread are word lane % 4 of row lane / 4. TRANS, 16-bit elements only: two
// neighbours of column lane / 4.
#define WL_LDMATRIX(N, registers, address, ...)                                                   \
  if constexpr (X == N && !TRANS)                                                                 \
    asm volatile("ldmatrix.sync.aligned.m8n8.x" #N ".shared.b16 {" registers "}, [" address "];"  \
                 : __VA_ARGS__                                                                    \
                 : "r"(addr));                                                                    \
  else if constexpr (X == N)                                                                      \
    asm volatile("ldmatrix.sync.aligned.m8n8.x" #N ".trans.shared.b16 {" registers "}, [" address \
                 "];"                                                                             \
                 : __VA_ARGS__                                                                    \
                 : "r"(addr));

template <int X, bool TRANS, class T> WL_FN void ldmatrix(T* dst, unsigned addr) {
  static_assert((sizeof(T) == 2 || !TRANS) && (X == 1 || X == 2 || X == 4),
                "ldmatrix moves 1, 2 or 4 matrices");
  unsigned* d = reinterpret_cast<unsigned*>(dst);
  WL_LDMATRIX(1, "%0", "%1", "=r"(d[0]))
  WL_LDMATRIX(2, "%0, %1", "%2", "=r"(d[0]), "=r"(d[1]))
  WL_LDMATRIX(4, "%0, %1, %2, %3", "%4", "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]))
}

#undef WL_LDMATRIX
#define WL_STMATRIX(N, registers, ...)                                                   \
  if constexpr (X == N && !TRANS)                                                        \
    asm volatile("stmatrix.sync.aligned.m8n8.x" #N ".shared.b16 [%0], {" registers       \
                 "};" ::"r"(addr),                                                       \
                 __VA_ARGS__                                                             \
                 : "memory");                                                            \
  else if constexpr (X == N)                                                             \
    asm volatile("stmatrix.sync.aligned.m8n8.x" #N ".trans.shared.b16 [%0], {" registers \
                 "};" ::"r"(addr),                                                       \
                 __VA_ARGS__                                                             \
                 : "memory");

template <int X, bool TRANS, class T> WL_FN void stmatrix(unsigned addr, const T* src) {
  static_assert((sizeof(T) == 2 || !TRANS) && (X == 1 || X == 2 || X == 4),
                "stmatrix moves 1, 2 or 4 matrices");
  const unsigned* s = reinterpret_cast<const unsigned*>(src);
  WL_STMATRIX(1, "%1", "r"(s[0]))
  WL_STMATRIX(2, "%1, %2", "r"(s[0]), "r"(s[1]))
  WL_STMATRIX(4, "%1, %2, %3, %4", "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]))
}

#undef WL_STMATRIX

// BYTES in 4, 8, 16. Where pred is false the destination becomes zero and g is not read.
template <int BYTES, class T> WL_FN void cp_async(unsigned smem, const T* g, bool pred = true) {
  const int size = pred ? BYTES : 0;
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(smem), "l"(g),
                 "r"(size)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(smem), "l"(g), "n"(BYTES),
                 "r"(size)
                 : "memory");
  }
}

// For data used once: they leave the L2 cache first.
template <int BYTES, class T>
WL_FN void cp_async_stream(unsigned smem, const T* g, bool pred = true) {
  if constexpr (BYTES != 16) return cp_async<BYTES>(smem, g, pred);
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  const int size = pred ? BYTES : 0;
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(smem),
               "l"(g), "r"(size), "l"(policy)
               : "memory");
}

WL_FN void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until at most the N newest of this thread's groups are under way.
template <int N> WL_FN void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
}  // namespace wl
