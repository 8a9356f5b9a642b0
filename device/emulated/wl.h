// The device interface on the host: the text of a CUDA kernel compiled by a C++20 compiler, every
// thread a fiber of the emulator that loads it. Each function hands its work and the caller's line
// to the machine; names, order and meaning as in device/ptx, docs/device.md is the table. No
// standard header is pulled in.
#pragma once
#include "calls.h"
#include "integers.h"
#include "registers.h"
#include "value_functions.h"

namespace wl {
inline unsigned shared_base() {
  return emu::kSharedBase;
}

inline int thread() {
  return emu::self->thread;
}

inline int lane() {
  return emu::self->thread & 31;
}

inline int warp() {
  return emu::self->thread >> 5;
}

inline int block_x() {
  return emu::self->block[0];
}

inline int block_y() {
  return emu::self->block[1];
}

inline int block_z() {
  return emu::self->block[2];
}

inline int cluster_rank() {
  return emu::self->cluster_rank;
}

// What the machine offers under the interface's own name.
using emu::signal_flag, emu::wait_flag, emu::mapa, emu::cp_async_commit, emu::sync_warp,
    emu::cluster_sync, emu::mbarrier_init, emu::fence_mbarrier_init, emu::bulk_commit,
    emu::fence_async_shared, emu::wgmma_fence, emu::wgmma_commit, emu::griddepcontrol_wait,
    emu::griddepcontrol_launch_dependents;

template <int BYTES, class T> emu::RegisterRun run_of(emu::Handle<T> h) {
  return h.run(BYTES / static_cast<int>(sizeof(T)));
}

#define WL_COUNTED(name, ...)           \
  template <int N> void name(WL_SITE) { \
    emu::__VA_ARGS__;                   \
  }

// Global memory. The streaming forms differ in the caches alone.
#define WL_LOAD(name)                                                                       \
  template <int BYTES, class T>                                                             \
  void name(emu::Handle<T> dst, const T* p, bool pred = true, same<T> fill = {}, WL_SITE) { \
    if (pred)                                                                               \
      emu::load_global(run_of<BYTES>(dst), p, BYTES);                                       \
    else                                                                                    \
      emu::fill_registers(run_of<BYTES>(dst), &fill, sizeof(T));                            \
  }
WL_LOAD(ld_global)
WL_LOAD(ld_global_stream)
#undef WL_LOAD

template <class I> int lookup(const I* p, int size, bool pred = true, WL_SITE) {
  I index = -size - 1;
  if (pred) emu::load_global({&index, nullptr, 0, 1}, p, sizeof(I));
  const int whole = static_cast<int>(index);
  if (index != whole) return -1;
  return whole < 0 ? whole + size : whole;
}

// Stores, and updates of each element by itself.
struct Sum {
  float operator()(float a, float b) const { return a + b; }

  int operator()(int a, int b) const {
    return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
  }
};

template <class T, class Op> emu::Combine combining(Op) {
  return {sizeof(T), [](void* to, const void* with) {
            T& a = *static_cast<T*>(to);
            T b = *static_cast<const T*>(with);
            if constexpr (__is_same(T, int))
              a = Op()(a, b);
            else
              a = cast<T>(Op()(to_float(a), to_float(b)));
          }};
}

#define WL_STORE(name, ...)                                                                      \
  template <int BYTES, class T> void name(T* p, emu::Handle<T> src, bool pred = true, WL_SITE) { \
    if (pred) emu::store_global(p, run_of<BYTES>(src), BYTES, __VA_ARGS__);                      \
  }
WL_STORE(st_global, {})
WL_STORE(st_global_stream, {})
WL_STORE(red_add, combining<T>(Sum()))
WL_STORE(red_max, combining<T>([](auto a, auto b) { return max(a, b); }))
WL_STORE(red_min, combining<T>([](auto a, auto b) { return min(a, b); }))
#undef WL_STORE

// Shared memory.
#define WL_SHARED_FORMS(load, store, cluster)                                            \
  template <int BYTES, class T> void load(emu::Handle<T> dst, unsigned addr, WL_SITE) {  \
    emu::move_shared(run_of<BYTES>(dst), addr, BYTES, cluster, false);                   \
  }                                                                                      \
  template <int BYTES, class T> void store(unsigned addr, emu::Handle<T> src, WL_SITE) { \
    emu::move_shared(run_of<BYTES>(src), addr, BYTES, cluster, true);                    \
  }
WL_SHARED_FORMS(ld_shared, st_shared, false)
WL_SHARED_FORMS(ld_shared_cluster, st_shared_cluster, true)
#undef WL_SHARED_FORMS

template <int BYTES, class T>
void st_async(unsigned addr, emu::Handle<T> src, unsigned bar, WL_SITE) {
  static_assert(BYTES == 4, "st_async moves 4 bytes");
  emu::store_async(addr, run_of<BYTES>(src), BYTES, bar);
}

template <int X, bool TRANS, class T> void ldmatrix(emu::Handle<T> dst, unsigned addr, WL_SITE) {
  emu::move_matrix(run_of<4 * X>(dst), addr, X, TRANS, false);
}

template <int X, bool TRANS, class T> void stmatrix(unsigned addr, emu::Handle<T> src, WL_SITE) {
  emu::move_matrix(run_of<4 * X>(src), addr, X, TRANS, true);
}

template <int BYTES, class T> void cp_async(unsigned smem, const T* g, bool pred = true, WL_SITE) {
  emu::copy_async(smem, g, BYTES, pred);
}

template <int BYTES, class T>
void cp_async_stream(unsigned smem, const T* g, bool pred = true, WL_SITE) {
  emu::copy_async(smem, g, BYTES, pred);
}
WL_COUNTED(cp_async_wait, copy_async_wait(N))

// Barriers.
inline void sync_threads(WL_SITE) {
  emu::barrier(0, -1);
}

inline void sync_named(int id, int threads, WL_SITE) {
  emu::barrier(id, threads);
}

inline void mbarrier_arrive(unsigned addr, WL_SITE) {
  emu::mbarrier_arrive(addr, 0, -1);
}

inline void mbarrier_arrive_expect_tx(unsigned addr, int bytes, WL_SITE) {
  emu::mbarrier_arrive(addr, bytes, -1);
}

inline void mbarrier_wait(unsigned addr, unsigned parity, WL_SITE) {
  emu::mbarrier_wait(addr, parity, false);
}

inline void mbarrier_wait_cluster(unsigned addr, unsigned parity, WL_SITE) {
  emu::mbarrier_wait(addr, parity, true);
}

inline void mbarrier_arrive_cluster(unsigned addr, int cta_rank, WL_SITE) {
  emu::mbarrier_arrive(addr, 0, cta_rank);
}

// The copy engine: the coordinates follow the other arguments, of which one brings the line.
void tma_load_multicast(emu::Here<unsigned> smem, const TensorMap& map, unsigned bar, int mask,
                        auto... coordinates) {
  emu::tensor_load(smem.value, map, bar, mask, {{coordinates...}, sizeof...(coordinates)});
}

void tma_load(emu::Here<unsigned> smem, const TensorMap& map, unsigned bar, auto... coordinates) {
  tma_load_multicast(smem, map, bar, -1, coordinates...);
}

void tma_store(const TensorMap& map, emu::Here<unsigned> smem, auto... coordinates) {
  emu::tensor_store(map, smem.value, {{coordinates...}, sizeof...(coordinates)}, {});
}

template <class T>
void tma_reduce_add(const TensorMap& map, emu::Here<unsigned> smem, auto... coordinates) {
  emu::tensor_store(map, smem.value, {{coordinates...}, sizeof...(coordinates)},
                    combining<T>(Sum()));
}
WL_COUNTED(bulk_wait, bulk_wait(N, false))
WL_COUNTED(bulk_wait_read, bulk_wait(N, true))

// Matrix units.
constexpr emu::Element element_of(const bf16*) {
  return emu::Element::bf16;
}

constexpr emu::Element element_of(const f16*) {
  return emu::Element::f16;
}

constexpr emu::Element element_of(const tf32*) {
  return emu::Element::tf32;
}

constexpr emu::Element element_of(const e4m3*) {
  return emu::Element::e4m3;
}

constexpr emu::Element element_of(const e5m2*) {
  return emu::Element::e5m2;
}

constexpr emu::Element element_of(const signed char*) {
  return emu::Element::int8;
}

WL_COUNTED(wgmma_wait, wgmma_wait(N))

template <int N, class T> void wgmma_fence_regs(emu::Handle<T> acc) {
  emu::wgmma_pin(acc.run(N));
}

template <int N, class T, bool TRANS_A, bool TRANS_B, class A>
void wgmma(emu::Handle<A> acc, unsigned long long desc_a, unsigned long long desc_b,
           bool accumulate, WL_SITE) {
  static_assert(N % 8 == 0 && N >= 8 && N <= 256, "N of wgmma is a multiple of 8 up to 256");
  static_assert(sizeof(T) == 2 || (!TRANS_A && !TRANS_B), "only 16-bit operands may be MN-major");
  const emu::Element type = element_of(static_cast<T*>(nullptr));
  const emu::Wgmma op{N, type, TRANS_A, TRANS_B, false, accumulate, desc_a, desc_b};
  emu::wgmma(op, acc.run(N / 2), {});
}

template <int N, class T, bool TRANS_B, class A>
void wgmma_rs(emu::Handle<A> acc, emu::Handle<T> a, unsigned long long desc_b, bool accumulate,
              WL_SITE) {
  static_assert(N % 8 == 0 && N >= 8 && N <= 256, "N of wgmma is a multiple of 8 up to 256");
  static_assert(sizeof(T) == 2 || !TRANS_B, "only 16-bit operands may be MN-major");
  const emu::Wgmma op{N, element_of(a.data), false, TRANS_B, true, accumulate, 0, desc_b};
  emu::wgmma(op, acc.run(N / 2), run_of<16>(a));
}

#define WL_MMA_SYNC(name)                                                     \
  template <class D, class T>                                                 \
  void name(emu::Handle<D> d, emu::Handle<T> a, emu::Handle<T> b, WL_SITE) {  \
    emu::mma_sync(d.run(4), run_of<16>(a), run_of<8>(b), element_of(a.data)); \
  }
WL_MMA_SYNC(mma_m16n8k8)
WL_MMA_SYNC(mma_m16n8k16)
WL_MMA_SYNC(mma_m16n8k32)
#undef WL_MMA_SYNC

// Warp and grid.
inline float shfl(float x, int source, WL_SITE) {
  return float_of(emu::shuffle(bits_of(x), source & 31));
}

inline int shfl(int x, int source, WL_SITE) {
  return static_cast<int>(emu::shuffle(static_cast<unsigned>(x), source & 31));
}

template <int BYTES, class T>
void shfl(emu::Handle<T> dst, emu::Handle<T> src, int source, bool take = true, WL_SITE) {
  emu::shuffle_registers(run_of<BYTES>(dst), run_of<BYTES>(src), BYTES, source & 31, take);
}

auto shfl_xor(auto x, int lane_mask, WL_SITE) {
  return shfl(x, lane() ^ lane_mask, site);
}
WL_COUNTED(reg_alloc, set_registers(N, true))
WL_COUNTED(reg_dealloc, set_registers(N, false))
#undef WL_COUNTED
}  // namespace wl
