// conformance.cu goes on: matrix products of registers and of shared memory.

// a: 8 (4) elements a lane, b: 4 (2), d starts as 1.
#define MULTIPLY_CASE(name, T, Acc, call)                                                  \
  WL_KERNEL(name, 32, 1) PARAMETERS {                                                      \
    WL_REG(T, a, 16 / sizeof(T));                                                          \
    WL_REG(T, b, 8 / sizeof(T));                                                           \
    WL_REG(Acc, d, 4);                                                                     \
    wl::ld_global<16>(wl::at(a, 0), reinterpret_cast<const T*>(in + wl::lane() * 4));      \
    wl::ld_global<8>(wl::at(b, 0), reinterpret_cast<const T*>(in + 128 + wl::lane() * 2)); \
    WL_UNROLL for (int i = 0; i < 4; ++i) d[i] = Acc(1);                                   \
    wl::call(wl::at(d, 0), wl::at(a, 0), wl::at(b, 0));                                    \
    wl::st_global<16>(reinterpret_cast<Acc*>(out) + wl::lane() * 4, wl::at(d, 0));         \
  }                                                                                        \
  WL_EXPORT(name)
MULTIPLY_CASE(multiply_bf16, wl::bf16, float, mma_m16n8k16)
MULTIPLY_CASE(multiply_f16, wl::f16, float, mma_m16n8k16)
MULTIPLY_CASE(multiply_tf32, wl::tf32, float, mma_m16n8k8)
MULTIPLY_CASE(multiply_e4m3, wl::e4m3, float, mma_m16n8k32)
MULTIPLY_CASE(multiply_e5m2, wl::e5m2, float, mma_m16n8k32)
MULTIPLY_CASE(multiply_s8, signed char, int, mma_m16n8k32)
// With operands of many digits: how the sums are rounded.
MULTIPLY_CASE(multiply_sums_bf16, wl::bf16, float, mma_m16n8k16)
MULTIPLY_CASE(multiply_sums_f16, wl::f16, float, mma_m16n8k16)
MULTIPLY_CASE(multiply_sums_tf32, wl::tf32, float, mma_m16n8k8)
MULTIPLY_CASE(multiply_sums_e4m3, wl::e4m3, float, mma_m16n8k32)
MULTIPLY_CASE(multiply_sums_e5m2, wl::e5m2, float, mma_m16n8k32)

// Shared images of A (at 0) and B (at b_at) come from `in`; two multiplications, the first not
// accumulating.
#define WGMMA_CASE(name, N, T, Acc, TA, TB, words, b_at, a_offset, b_offset, a_lbo, a_sbo, b_lbo, \
                   b_sbo, mode)                                                                   \
  WL_KERNEL(name, 128, 1) PARAMETERS {                                                            \
    const unsigned smem = WL_SHARED_BASE();                                                       \
    for (int i = wl::thread(); i < words; i += 128) {                                             \
      WL_REG(unsigned, w, 1);                                                                     \
      wl::ld_global<4>(wl::at(w, 0), in + i);                                                     \
      wl::st_shared<4>(smem + 4 * i, wl::at(w, 0));                                               \
    }                                                                                             \
    wl::fence_async_shared();                                                                     \
    wl::sync_threads();                                                                           \
    WL_REG(Acc, acc, N / 2);                                                                      \
    WL_UNROLL for (int i = 0; i < N / 2; ++i) acc[i] = Acc(7);                                    \
    const unsigned long long a = wl::smem_descriptor(smem + a_offset, a_lbo, a_sbo, mode);        \
    const unsigned long long b = wl::smem_descriptor(smem + b_at + b_offset, b_lbo, b_sbo, mode); \
    wl::wgmma_fence_regs<N / 2>(wl::at(acc, 0));                                                  \
    wl::wgmma_fence();                                                                            \
    wl::wgmma<N, T, TA, TB>(wl::at(acc, 0), a, b, false);                                         \
    wl::wgmma<N, T, TA, TB>(wl::at(acc, 0), a, b, true);                                          \
    wl::wgmma_commit();                                                                           \
    wl::wgmma_wait<0>();                                                                          \
    wl::wgmma_fence_regs<N / 2>(wl::at(acc, 0));                                                  \
    const int row = wl::warp() * 16 + wl::lane() / 4, col = wl::lane() % 4 * 2;                   \
    WL_UNROLL for (int j = 0; j < N / 8; ++j) {                                                   \
      wl::st_global<8>(reinterpret_cast<Acc*>(out) + row * N + 8 * j + col, wl::at(acc, 4 * j));  \
      wl::st_global<8>(reinterpret_cast<Acc*>(out) + (row + 8) * N + 8 * j + col,                 \
                       wl::at(acc, 4 * j + 2));                                                   \
    }                                                                                             \
  }                                                                                               \
  WL_EXPORT(name)

// K-major, one slice of 32 bytes of K inside the atom.
WGMMA_CASE(wgmma_bf16_128, 64, wl::bf16, float, false, false, 4096, 8192, 32, 32, 0, 1024, 0, 1024,
           1)
WGMMA_CASE(wgmma_bf16_64, 64, wl::bf16, float, false, false, 2048, 4096, 32, 32, 0, 512, 0, 512, 2)
WGMMA_CASE(wgmma_bf16_32, 64, wl::bf16, float, false, false, 1024, 2048, 0, 0, 0, 256, 0, 256, 3)
WGMMA_CASE(wgmma_bf16_none, 64, wl::bf16, float, false, false, 1024, 2048, 0, 0, 1024, 128, 1024,
           128, 0)
// MN-major, 16 rows of K.
WGMMA_CASE(wgmma_bf16_mn_128, 128, wl::bf16, float, true, true, 1536, 2048, 0, 0, 2048, 1024, 2048,
           1024, 1)
WGMMA_CASE(wgmma_bf16_mn_64, 128, wl::bf16, float, true, true, 1536, 2048, 0, 0, 1024, 512, 1024,
           512, 2)
WGMMA_CASE(wgmma_bf16_mn_32, 128, wl::bf16, float, true, true, 1536, 2048, 0, 0, 512, 256, 512, 256,
           3)
WGMMA_CASE(wgmma_bf16_mn_none, 128, wl::bf16, float, true, true, 1536, 2048, 0, 0, 1024, 128, 2048,
           128, 0)
// The other types and the ends of N.
WGMMA_CASE(wgmma_f16_8, 8, wl::f16, float, false, false, 2304, 8192, 0, 0, 0, 1024, 0, 1024, 1)
WGMMA_CASE(wgmma_f16_256, 256, wl::f16, float, false, false, 10240, 8192, 64, 64, 0, 1024, 0, 1024,
           1)
WGMMA_CASE(wgmma_tf32_64, 64, wl::tf32, float, false, false, 4096, 8192, 32, 32, 0, 1024, 0, 1024,
           1)
WGMMA_CASE(wgmma_e4m3_64, 64, wl::e4m3, float, false, false, 4096, 8192, 32, 32, 0, 1024, 0, 1024,
           1)
WGMMA_CASE(wgmma_e5m2_64, 64, wl::e5m2, float, false, false, 4096, 8192, 32, 32, 0, 1024, 0, 1024,
           1)
// Likewise.
WGMMA_CASE(wgmma_sums_bf16, 64, wl::bf16, float, false, false, 4096, 8192, 32, 32, 0, 1024, 0, 1024,
           1)
WGMMA_CASE(wgmma_sums_f16, 64, wl::f16, float, false, false, 4096, 8192, 32, 32, 0, 1024, 0, 1024,
           1)
WGMMA_CASE(wgmma_sums_tf32, 64, wl::tf32, float, false, false, 4096, 8192, 32, 32, 0, 1024, 0, 1024,
           1)
WGMMA_CASE(wgmma_sums_e4m3, 64, wl::e4m3, float, false, false, 4096, 8192, 32, 32, 0, 1024, 0, 1024,
           1)
WGMMA_CASE(wgmma_sums_e5m2, 64, wl::e5m2, float, false, false, 4096, 8192, 32, 32, 0, 1024, 0, 1024,
           1)
WGMMA_CASE(wgmma_s8_64, 64, signed char, int, false, false, 4096, 8192, 32, 32, 0, 1024, 0, 1024, 1)

// A from registers: in holds 4 words a thread, then the image of B (K-major, 128-byte swizzle, N =
// 64).
#define WGMMA_RS_CASE(name, T)                                                          \
  WL_KERNEL(name, 128, 1) PARAMETERS {                                                  \
    const unsigned smem = WL_SHARED_BASE();                                             \
    for (int i = wl::thread(); i < 2048; i += 128) {                                    \
      WL_REG(unsigned, w, 1);                                                           \
      wl::ld_global<4>(wl::at(w, 0), in + 512 + i);                                     \
      wl::st_shared<4>(smem + 4 * i, wl::at(w, 0));                                     \
    }                                                                                   \
    wl::fence_async_shared();                                                           \
    wl::sync_threads();                                                                 \
    WL_REG(T, a, 16 / sizeof(T));                                                       \
    wl::ld_global<16>(wl::at(a, 0), reinterpret_cast<const T*>(in + wl::thread() * 4)); \
    WL_REG(float, acc, 32);                                                             \
    WL_UNROLL for (int i = 0; i < 32; ++i) acc[i] = 1.0f;                               \
    const unsigned long long b = wl::smem_descriptor(smem + 32, 0, 1024, 1);            \
    wl::wgmma_fence_regs<32>(wl::at(acc, 0));                                           \
    wl::wgmma_fence();                                                                  \
    wl::wgmma_rs<64, T, false>(wl::at(acc, 0), wl::at(a, 0), b, true);                  \
    wl::wgmma_commit();                                                                 \
    wl::wgmma_wait<0>();                                                                \
    wl::wgmma_fence_regs<32>(wl::at(acc, 0));                                           \
    const int row = wl::warp() * 16 + wl::lane() / 4, col = wl::lane() % 4 * 2;         \
    WL_UNROLL for (int j = 0; j < 8; ++j) {                                             \
      wl::st_global<8>(reinterpret_cast<float*>(out) + row * 64 + 8 * j + col,          \
                       wl::at(acc, 4 * j));                                             \
      wl::st_global<8>(reinterpret_cast<float*>(out) + (row + 8) * 64 + 8 * j + col,    \
                       wl::at(acc, 4 * j + 2));                                         \
    }                                                                                   \
  }                                                                                     \
  WL_EXPORT(name)
WGMMA_RS_CASE(wgmma_rs_bf16, wl::bf16)
WGMMA_RS_CASE(wgmma_rs_f16, wl::f16)
WGMMA_RS_CASE(wgmma_rs_tf32, wl::tf32)
WGMMA_RS_CASE(wgmma_rs_e4m3, wl::e4m3)
