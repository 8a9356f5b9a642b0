// The functions of the interface, each handing its work and the caller's line to the machine. Names, order and meaning as in
// device/ptx; docs/device.md is the table.
#pragma once
namespace wl {
inline int thread() { return emu::self->thread; }
inline int lane() { return emu::self->thread & 31; }
inline int warp() { return emu::self->thread >> 5; }
inline int block_x() { return emu::self->block[0]; }
inline int block_y() { return emu::self->block[1]; }
inline int block_z() { return emu::self->block[2]; }
inline int cluster_rank() { return emu::self->cluster_rank; }
inline int cluster_size() { return emu::self->cluster_size; }

// What the machine offers under the interface's own name.
using emu::signal_flag, emu::wait_flag, emu::mapa, emu::cp_async_commit, emu::sync_warp, emu::cluster_arrive, emu::cluster_wait,
    emu::mbarrier_init, emu::fence_mbarrier_init, emu::bulk_commit, emu::fence_async_shared, emu::wgmma_fence, emu::wgmma_commit,
    emu::griddepcontrol_wait;

template <int BYTES, class T>
emu::RegisterRun run_of(emu::Handle<T> h) {
  return h.run(BYTES / static_cast<int>(sizeof(T)));
}

#define WL_COUNTED(name, ...) \
  template <int N>            \
  void name(WL_SITE) {        \
    emu::__VA_ARGS__;         \
  }

// Global memory. The streaming forms differ in the caches alone.
#define WL_GLOBAL_FORMS(load, store)                                            \
  template <int BYTES, class D, class T>                                        \
  void load(D&& dst, const T* p, WL_SITE) {                                     \
    emu::load_global(run_of<BYTES>(emu::regs(dst)), p, BYTES, site);            \
  }                                                                             \
  template <int BYTES, class D, class T>                                        \
  void load(D&& dst, const T* p, bool pred, emu::same<T> fill, WL_SITE) {       \
    if (pred) load<BYTES>(dst, p, site);                                        \
    else emu::fill_registers(run_of<BYTES>(emu::regs(dst)), &fill, sizeof(T));  \
  }                                                                             \
  template <int BYTES, class S, class T>                                        \
  void store(T* p, S&& src, bool pred = true, WL_SITE) {                        \
    if (pred) emu::store_global(p, run_of<BYTES>(emu::regs(src)), BYTES, site); \
  }
WL_GLOBAL_FORMS(ld_global, st_global)
WL_GLOBAL_FORMS(ld_global_stream, st_global_stream)
#undef WL_GLOBAL_FORMS

template <class I>
int lookup(const I* p, bool pred = true, WL_SITE) {
  I index = -1;
  if (pred) emu::load_global({&index, nullptr, 0, 1}, p, sizeof(I), site);
  return index == static_cast<int>(index) ? static_cast<int>(index) : -1;
}

// Updates of global memory, each element by itself.
struct Sum {
  static float of(float a, float b) { return a + b; }
  static int of(int a, int b) { return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)); }
};
struct Max {
  static float of(float a, float b) { return max(a, b); }
  static int of(int a, int b) { return a > b ? a : b; }
};
struct Min {
  static float of(float a, float b) { return min(a, b); }
  static int of(int a, int b) { return a < b ? a : b; }
};
template <class T, class Op>
emu::Combine combining() {
  return {sizeof(T), [](void* to, const void* with) {
            T &a = *static_cast<T*>(to), b = *static_cast<const T*>(with);
            if constexpr (emu::is_same<T, int>) a = Op::of(a, b);
            else a = cast<T>(Op::of(to_float(a), to_float(b)));
          }};
}
#define WL_REDUCTION(name, Op)                                                                       \
  template <int BYTES, class S, class T>                                                             \
  void name(T* p, S&& src, bool pred = true, WL_SITE) {                                              \
    if (pred) emu::reduce_global(p, run_of<BYTES>(emu::regs(src)), BYTES, combining<T, Op>(), site); \
  }
WL_REDUCTION(red_add, Sum)
WL_REDUCTION(red_max, Max)
WL_REDUCTION(red_min, Min)
#undef WL_REDUCTION

// Shared memory.
#define WL_SHARED_FORMS(load, store, cluster)                                           \
  template <int BYTES, class D>                                                         \
  void load(D&& dst, unsigned addr, WL_SITE) {                                          \
    emu::move_shared(run_of<BYTES>(emu::regs(dst)), addr, BYTES, cluster, false, site); \
  }                                                                                     \
  template <int BYTES, class S>                                                         \
  void store(unsigned addr, S&& src, WL_SITE) {                                         \
    emu::move_shared(run_of<BYTES>(emu::regs(src)), addr, BYTES, cluster, true, site);  \
  }
WL_SHARED_FORMS(ld_shared, st_shared, false)
WL_SHARED_FORMS(ld_shared_cluster, st_shared_cluster, true)
#undef WL_SHARED_FORMS

template <int X, bool TRANS, class D>
void ldmatrix(D&& dst, unsigned addr, WL_SITE) {
  emu::move_matrix(run_of<4 * X>(emu::regs(dst)), addr, X, TRANS, false, site);
}
template <int X, bool TRANS, class S>
void stmatrix(unsigned addr, S&& src, WL_SITE) {
  emu::move_matrix(run_of<4 * X>(emu::regs(src)), addr, X, TRANS, true, site);
}

template <int BYTES, class T>
void cp_async(unsigned smem, const T* g, bool pred = true, WL_SITE) {
  emu::copy_async(smem, g, BYTES, pred, site);
}
WL_COUNTED(cp_async_wait, copy_async_wait(N, site))

// Barriers.
inline void sync_threads(WL_SITE) { emu::barrier(0, -1, site); }
inline void sync_named(int id, int threads, WL_SITE) { emu::barrier(id, threads, site); }
inline void cluster_sync(WL_SITE) {
  emu::cluster_arrive(site);
  emu::cluster_wait(site);
}
inline void mbarrier_arrive(unsigned addr, WL_SITE) { emu::mbarrier_arrive(addr, 0, site); }
inline void mbarrier_arrive_expect_tx(unsigned addr, int bytes, WL_SITE) { emu::mbarrier_arrive(addr, bytes, site); }
inline void mbarrier_wait(unsigned addr, unsigned parity, WL_SITE) { emu::mbarrier_wait(addr, parity, false, site); }
inline void mbarrier_wait_cluster(unsigned addr, unsigned parity, WL_SITE) { emu::mbarrier_wait(addr, parity, true, site); }
inline void mbarrier_arrive_cluster(unsigned addr, int cta_rank, WL_SITE) { emu::mbarrier_arrive_at(addr, cta_rank, site); }

// The copy engine.
#define WL_TENSOR_FORM(rank, params, coords)                                                                               \
  inline void tma_load(unsigned smem, const TensorMap& map, unsigned bar, WL_UNPACK params, WL_SITE) {                     \
    const int c[] = {WL_UNPACK coords};                                                                                    \
    emu::tensor_load(smem, map, bar, -1, c, rank, site);                                                                   \
  }                                                                                                                        \
  inline void tma_load_multicast(unsigned smem, const TensorMap& map, unsigned bar, unsigned short mask, WL_UNPACK params, \
                                 WL_SITE) {                                                                                \
    const int c[] = {WL_UNPACK coords};                                                                                    \
    emu::tensor_load(smem, map, bar, mask, c, rank, site);                                                                 \
  }                                                                                                                        \
  inline void tma_store(const TensorMap& map, unsigned smem, WL_UNPACK params, WL_SITE) {                                  \
    const int c[] = {WL_UNPACK coords};                                                                                    \
    emu::tensor_store(map, smem, c, rank, {}, site);                                                                       \
  }                                                                                                                        \
  template <class T>                                                                                                       \
  void tma_reduce_add(const TensorMap& map, unsigned smem, WL_UNPACK params, WL_SITE) {                                    \
    const int c[] = {WL_UNPACK coords};                                                                                    \
    emu::tensor_store(map, smem, c, rank, combining<T, Sum>(), site);                                                      \
  }
#define WL_UNPACK(...) __VA_ARGS__
WL_TENSOR_FORM(1, (int c0), (c0))
WL_TENSOR_FORM(2, (int c0, int c1), (c0, c1))
WL_TENSOR_FORM(3, (int c0, int c1, int c2), (c0, c1, c2))
WL_TENSOR_FORM(4, (int c0, int c1, int c2, int c3), (c0, c1, c2, c3))
WL_TENSOR_FORM(5, (int c0, int c1, int c2, int c3, int c4), (c0, c1, c2, c3, c4))
#undef WL_UNPACK
#undef WL_TENSOR_FORM
WL_COUNTED(bulk_wait, bulk_wait(N, false, site))
WL_COUNTED(bulk_wait_read, bulk_wait(N, true, site))

// Matrix units.
template <class T>
struct ElementOf;
#define WL_ELEMENT(T, name)                                   \
  template <>                                                 \
  struct ElementOf<T> {                                       \
    static constexpr emu::Element value = emu::Element::name; \
  };
WL_ELEMENT(bf16, bf16)
WL_ELEMENT(f16, f16)
WL_ELEMENT(tf32, tf32)
WL_ELEMENT(e4m3, e4m3)
WL_ELEMENT(e5m2, e5m2)
WL_ELEMENT(signed char, int8)
#undef WL_ELEMENT

WL_COUNTED(wgmma_wait, wgmma_wait(N, site))
template <int N, class A>
void wgmma_fence_regs(A&& acc) {
  emu::wgmma_pin(emu::regs(acc).run(N));
}
template <int N, class T, bool TRANS_A, bool TRANS_B, class A>
void wgmma(A&& acc, unsigned long long desc_a, unsigned long long desc_b, bool accumulate, WL_SITE) {
  static_assert(N % 8 == 0 && N >= 8 && N <= 256, "N of wgmma is a multiple of 8 up to 256");
  static_assert(sizeof(T) == 2 || (!TRANS_A && !TRANS_B), "only 16-bit operands may be MN-major");
  emu::wgmma({N, ElementOf<T>::value, TRANS_A, TRANS_B, false, accumulate, desc_a, desc_b}, emu::regs(acc).run(N / 2), {}, site);
}
template <int N, class T, bool TRANS_B, class A, class F>
void wgmma_rs(A&& acc, F&& a, unsigned long long desc_b, bool accumulate, WL_SITE) {
  static_assert(N % 8 == 0 && N >= 8 && N <= 256, "N of wgmma is a multiple of 8 up to 256");
  static_assert(sizeof(T) == 2 || !TRANS_B, "only 16-bit operands may be MN-major");
  emu::wgmma({N, ElementOf<T>::value, false, TRANS_B, true, accumulate, 0, desc_b}, emu::regs(acc).run(N / 2),
             emu::regs(a).run(16 / static_cast<int>(sizeof(T))), site);
}

template <class T>
constexpr emu::Element element_of(emu::Handle<T>) {
  return ElementOf<T>::value;
}
#define WL_MMA_SYNC(name)                                                                                                  \
  template <class D, class A, class B>                                                                                     \
  void name(D&& d, A&& a, B&& b, WL_SITE) {                                                                                \
    emu::mma_sync(emu::regs(d).run(4), run_of<16>(emu::regs(a)), run_of<8>(emu::regs(b)), element_of(emu::regs(a)), site); \
  }
WL_MMA_SYNC(mma_m16n8k8)
WL_MMA_SYNC(mma_m16n8k16)
WL_MMA_SYNC(mma_m16n8k32)
#undef WL_MMA_SYNC

// Warp and grid.
inline float shfl(float x, int source, WL_SITE) { return float_of(emu::shuffle(bits_of(x), source & 31, site)); }
inline int shfl(int x, int source, WL_SITE) {
  return static_cast<int>(emu::shuffle(static_cast<unsigned>(x), source & 31, site));
}
template <int BYTES, class D, class S>
void shfl(D&& dst, S&& src, int source, bool take = true, WL_SITE) {
  emu::shuffle_registers(run_of<BYTES>(emu::regs(dst)), run_of<BYTES>(emu::regs(src)), BYTES, source & 31, take, site);
}
inline float shfl_xor(float x, int lane_mask, WL_SITE) { return shfl(x, lane() ^ lane_mask, site); }
inline int shfl_xor(int x, int lane_mask, WL_SITE) { return shfl(x, lane() ^ lane_mask, site); }
WL_COUNTED(reg_alloc, set_registers(N, true, site))
WL_COUNTED(reg_dealloc, set_registers(N, false, site))
inline void griddepcontrol_launch() {}
#undef WL_COUNTED
}  // namespace wl
