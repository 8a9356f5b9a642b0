// Every function of the device interface in small kernels of one shape, run on the emulator and on
// a GPU and compared: inputs as 32-bit words, results as 32-bit words.
// tests/emulator/conformance.h says launch shapes, inputs and answers.
//
// The text goes on in conformance_products.cu and conformance_clusters.cu: the three are compiled
// as one (conformance_text), so that there is one cubin.
#include "wl.h"

#define PARAMETERS (WL_TENSOR_MAP map_in, WL_TENSOR_MAP map_out, const unsigned* in, unsigned* out)

WL_FN float as_float(unsigned x) {
  return wl::to_float(wl::tf32{x});
}

WL_FN void put(unsigned* out, float x) {
  WL_REG(float, v, 1);
  v[0] = x;
  wl::st_global<4>(reinterpret_cast<float*>(out), wl::at(v, 0));
}

WL_FN void put_bits(unsigned* out, unsigned x) {
  WL_REG(unsigned, v, 1);
  v[0] = x;
  wl::st_global<4>(out, wl::at(v, 0));
}

WL_KERNEL(ids, 64, 1) PARAMETERS {
  const int block = (wl::block_z() * 3 + wl::block_y()) * 4 + wl::block_x();  // a grid of 4 x 3 x 2
  unsigned* o = out + (block * 64 + wl::thread()) * 2;
  put_bits(o, wl::thread() + 100 * wl::lane() + 10000 * wl::warp() + 1000000 * wl::cluster_rank());
  put_bits(o + 1, wl::block_x() + 10 * wl::block_y() + 100 * wl::block_z());
}
WL_EXPORT(ids)

// Each width from global to registers to global, then predicated with a fill, then the stream
// forms. One thread.
template <int BYTES, class T> WL_FN void copy_width(const unsigned* in, unsigned* out) {
  constexpr int n = BYTES / static_cast<int>(sizeof(T));
  const T* p = reinterpret_cast<const T*>(in);
  T* q = reinterpret_cast<T*>(out);
  WL_REG(T, r, n);
  wl::ld_global<BYTES>(wl::at(r, 0), p);
  wl::st_global<BYTES>(q, wl::at(r, 0));
  wl::ld_global<BYTES>(wl::at(r, 0), p, false, T{});
  wl::st_global<BYTES>(q + n, wl::at(r, 0), true);
  wl::ld_global_stream<BYTES>(wl::at(r, 0), p);
  wl::st_global_stream<BYTES>(q + 2 * n, wl::at(r, 0));
  wl::ld_global_stream<BYTES>(wl::at(r, 0), p, true, T{});
  wl::st_global_stream<BYTES>(q + 3 * n, wl::at(r, 0), true);
  wl::st_global<BYTES>(q, wl::at(r, 0), false);
}

WL_KERNEL(global_widths, 32, 1) PARAMETERS {
  if (wl::thread() == 0) {
    copy_width<16, float>(in, out);
    copy_width<8, wl::bf16>(in, out + 16);
    copy_width<4, unsigned>(in, out + 24);
    copy_width<2, wl::f16>(in, out + 28);
    copy_width<1, wl::e4m3>(in, out + 30);
  }
}
WL_EXPORT(global_widths)

template <int BYTES, class T>
WL_FN void shared_width(unsigned smem, const unsigned* in, unsigned* out) {
  constexpr int n = BYTES / static_cast<int>(sizeof(T));
  WL_REG(T, r, n);
  wl::ld_global<BYTES>(wl::at(r, 0), reinterpret_cast<const T*>(in) + wl::thread() * n);
  wl::sync_threads();
  wl::st_shared<BYTES>(smem + wl::thread() * BYTES, wl::at(r, 0));
  wl::sync_threads();
  wl::ld_shared<BYTES>(wl::at(r, 0), smem + (wl::thread() ^ 5) * BYTES);
  wl::st_global<BYTES>(reinterpret_cast<T*>(out) + wl::thread() * n, wl::at(r, 0));
}

WL_KERNEL(shared_widths, 64, 1) PARAMETERS {
  const unsigned smem = WL_SHARED_BASE();
  shared_width<16, float>(smem, in, out);
  shared_width<8, wl::f16>(smem, in, out + 256);
  shared_width<4, unsigned>(smem, in, out + 384);
  shared_width<2, wl::bf16>(smem, in, out + 448);
  shared_width<1, wl::e5m2>(smem, in, out + 480);
}
WL_EXPORT(shared_widths)

WL_KERNEL(casts, 128, 1) PARAMETERS {
  const int i = wl::block_x() * 128 + wl::thread();
  WL_REG(unsigned, word, 1);
  wl::ld_global<4>(wl::at(word, 0), in + i);
  const float x = as_float(word[0]);
  unsigned* o = out + i * 6;
  put(o, wl::to_float(wl::cast<wl::bf16>(x)));
  put(o + 1, wl::to_float(wl::cast<wl::f16>(x)));
  put(o + 2, wl::to_float(wl::cast<wl::tf32>(x)));
  put(o + 3, wl::to_float(wl::cast<wl::e4m3>(x)));
  put(o + 4, wl::to_float(wl::cast<wl::e5m2>(x)));
  put(o + 5, wl::round_tf32(x));
}
WL_EXPORT(casts)

// Rows of value_ops.def in its order, without fast_exp, on pairs of inputs (x, x + 1 word).
WL_KERNEL(values, 64, 1) PARAMETERS {
  const int i = wl::block_x() * 64 + wl::thread();
  WL_REG(unsigned, word, 2);
  wl::ld_global<8>(wl::at(word, 0), in + 2 * i);
  const float a = as_float(word[0]);
  const float b = as_float(word[1]);
  const float c = 0.75f;
  unsigned* o = out + i * 30;
  put(o, wl::add(a, b));
  put(o + 1, wl::sub(a, b));
  put(o + 2, wl::mul(a, b));
  put(o + 3, wl::div(a, b));
  put(o + 4, wl::max(a, b));
  put(o + 5, wl::min(a, b));
  put(o + 6, wl::fma(a, b, c));
  put(o + 7, wl::where(a, b, c));
  put(o + 8, wl::less(a, b));
  put(o + 9, wl::equal(a, b));
  put(o + 10, wl::neg(a));
  put(o + 11, wl::abs(a));
  put(o + 12, wl::exp(a));
  put(o + 13, wl::exp2(a));
  put(o + 14, wl::log(wl::abs(a)));
  put(o + 15, wl::sqrt(wl::abs(a)));
  put(o + 16, wl::rsqrt(wl::abs(a)));
  put(o + 17, wl::reciprocal(a));
  put(o + 18, wl::tanh(a));
  put(o + 19, wl::sin(a));
  put(o + 20, wl::cos(a));
  put(o + 21, wl::erf(a));
  put(o + 22, wl::relu(a));
  put(o + 23, wl::sigmoid(a));
  put(o + 24, wl::floor(a));
  put(o + 25, wl::round_tf32(a));
  put(o + 26, wl::binade(a));
  put(o + 27, wl::inverse_binade(a));
  put(o + 28, wl::atan(a));
  put(o + 29, wl::fmod(a, b));
}
WL_EXPORT(values)

WL_KERNEL(fast_exp, 64, 1) PARAMETERS {
  const int i = wl::block_x() * 64 + wl::thread();
  WL_REG(unsigned, word, 1);
  wl::ld_global<4>(wl::at(word, 0), in + i);
  put(out + i, wl::fast_exp(as_float(word[0])));
}
WL_EXPORT(fast_exp)

// 512 bytes of words into shared memory at byte b, by the whole block.
WL_FN void fill_shared(unsigned smem, const unsigned* in, int words) {
  for (int i = wl::thread(); i < words / 4; i += 32) {
    WL_REG(unsigned, w, 4);
    wl::ld_global<16>(wl::at(w, 0), in + 4 * i);
    wl::st_shared<16>(smem + 16 * i, wl::at(w, 0));
  }
  wl::sync_threads();
}

template <int X, bool TRANS> WL_FN void matrix_load(unsigned smem, unsigned* out) {
  WL_REG(wl::bf16, r, 8);
  wl::ldmatrix<X, TRANS>(wl::at(r, 0), smem + wl::lane() % (8 * X) * 16);
  WL_UNROLL for (int i = 0; i < X; ++i)
      wl::st_global<4>(reinterpret_cast<wl::bf16*>(out + wl::lane() * X + i), wl::at(r, 2 * i));
}

WL_KERNEL(matrix_loads, 32, 1) PARAMETERS {
  const unsigned smem = WL_SHARED_BASE();
  fill_shared(smem, in, 128);
  matrix_load<1, false>(smem, out);
  matrix_load<1, true>(smem, out + 32);
  matrix_load<2, false>(smem, out + 64);
  matrix_load<2, true>(smem, out + 128);
  matrix_load<4, false>(smem, out + 192);
  matrix_load<4, true>(smem, out + 320);
}
WL_EXPORT(matrix_loads)

template <int X, bool TRANS>
WL_FN void matrix_store(unsigned smem, const unsigned* in, unsigned* out) {
  WL_REG(wl::bf16, r, 8);
  WL_UNROLL for (int i = 0; i < X; ++i) wl::ld_global<4>(
      wl::at(r, 2 * i), reinterpret_cast<const wl::bf16*>(in + wl::lane() * X + i));
  wl::sync_threads();
  wl::stmatrix<X, TRANS>(smem + wl::lane() % (8 * X) * 16, wl::at(r, 0));
  wl::sync_threads();
  WL_REG(unsigned, w, 1);
  WL_UNROLL for (int i = 0; i < X; ++i) {
    wl::ld_shared<4>(wl::at(w, 0), smem + (wl::lane() + 32 * i) * 4);
    wl::st_global<4>(out + wl::lane() + 32 * i, wl::at(w, 0));
  }
}

WL_KERNEL(matrix_stores, 32, 1) PARAMETERS {
  const unsigned smem = WL_SHARED_BASE();
  matrix_store<1, false>(smem, in, out);
  matrix_store<1, true>(smem, in, out + 32);
  matrix_store<2, false>(smem, in, out + 64);
  matrix_store<2, true>(smem, in, out + 128);
  matrix_store<4, false>(smem, in, out + 192);
  matrix_store<4, true>(smem, in, out + 320);
}
WL_EXPORT(matrix_stores)

template <int BYTES> WL_FN void copy_one(unsigned smem, const unsigned* in, unsigned* out) {
  const auto* own = reinterpret_cast<const wl::e4m3*>(in) + wl::thread() * BYTES;
  if (wl::thread() % 2)
    wl::cp_async<BYTES>(smem + wl::thread() * BYTES, own);
  else
    wl::cp_async_stream<BYTES>(smem + wl::thread() * BYTES, own);
  wl::cp_async_commit();
  wl::cp_async<BYTES>(smem + 512 + wl::thread() * BYTES, reinterpret_cast<const wl::e4m3*>(in),
                      wl::thread() % 3 != 0);
  wl::cp_async_commit();
  wl::cp_async_wait<1>();
  wl::cp_async_wait<0>();
  wl::sync_threads();
  WL_REG(unsigned, w, 2);
  for (int i = wl::thread(); i < 8 * BYTES; i += 32) {
    wl::ld_shared<4>(wl::at(w, 0), smem + i * 4);
    wl::ld_shared<4>(wl::at(w, 1), smem + 512 + i * 4);
    wl::st_global<4>(out + i, wl::at(w, 0));
    wl::st_global<4>(out + 8 * BYTES + i, wl::at(w, 1));
  }
  wl::sync_threads();
}

WL_KERNEL(async_copies, 32, 1) PARAMETERS {
  const unsigned smem = WL_SHARED_BASE();
  copy_one<16>(smem, in, out);
  copy_one<8>(smem, in, out + 256);
  copy_one<4>(smem, in, out + 384);
}
WL_EXPORT(async_copies)

WL_KERNEL(shuffles, 32, 1) PARAMETERS {
  const float x = static_cast<float>(wl::lane() * 3);
  put(out + wl::lane(), wl::shfl_xor(x, 5));
  put(out + 32 + wl::lane(), wl::shfl(x, 7));
  put_bits(out + 64 + wl::lane(), wl::shfl_xor(wl::lane(), 16));
  put_bits(out + 96 + wl::lane(), wl::shfl(wl::lane(), wl::lane() / 2));
}
WL_EXPORT(shuffles)

template <int BYTES, class T> WL_FN void shuffle_width(const unsigned* in, unsigned* out) {
  WL_REG(T, r, 4 / sizeof(T));
  WL_REG(T, moved, 4 / sizeof(T));
  wl::ld_global<4>(wl::at(r, 0), reinterpret_cast<const T*>(in + wl::lane()));
  wl::ld_global<4>(wl::at(moved, 0), reinterpret_cast<const T*>(in + wl::lane()));
  wl::shfl<BYTES>(wl::at(moved, 0), wl::at(r, 0), wl::lane() ^ 3, wl::lane() % 4 != 1);
  wl::shfl<BYTES>(wl::at(moved, 0), wl::at(r, 0), wl::lane() / 2, wl::lane() % 4 == 1);
  wl::st_global<4>(reinterpret_cast<T*>(out + wl::lane()), wl::at(moved, 0));
}

WL_KERNEL(register_shuffles, 32, 1) PARAMETERS {
  shuffle_width<4, float>(in, out);
  shuffle_width<2, wl::f16>(in, out + 32);
  shuffle_width<1, unsigned char>(in, out + 64);
}
WL_EXPORT(register_shuffles)

WL_KERNEL(lookups, 32, 1) PARAMETERS {
  const int i = wl::thread();
  put_bits(out + 4 * i, wl::lookup(reinterpret_cast<const int*>(in) + i, 1000));
  put_bits(out + 4 * i + 1, wl::lookup(reinterpret_cast<const int*>(in) + i, 7, i % 3 == 0));
  put_bits(out + 4 * i + 2, wl::lookup(reinterpret_cast<const long long*>(in) + i, 1000));
  put_bits(out + 4 * i + 3, wl::lookup(reinterpret_cast<const long long*>(in) + i, 7, i % 3 == 0));
}
WL_EXPORT(lookups)

// Each byte of a word apart, then a float into each type at each place.
WL_KERNEL(packed_elements, 64, 1) PARAMETERS {
  WL_REG(unsigned char, b, 4);
  wl::ld_global<4>(wl::at(b, 0), reinterpret_cast<const unsigned char*>(in + wl::thread()));
  unsigned* o = out + wl::thread() * 8;
  put(o, wl::unpacked<4, false>(b[0], 0) + 16 * wl::unpacked<4, false>(b[0], 1));
  put(o + 1, wl::unpacked<4, true>(b[1], 0) + 16 * wl::unpacked<4, true>(b[1], 1));
  put(o + 2, wl::unpacked<2, false>(b[2], 3) + 16 * wl::unpacked<2, false>(b[2], 0));
  put(o + 3, wl::unpacked<1, false>(b[3], 7) + 16 * wl::unpacked<1, false>(b[3], 0));
  WL_REG(unsigned, w, 1);
  wl::ld_global<4>(wl::at(w, 0), in + 64 + wl::thread());
  const float x = as_float(w[0]);
  put_bits(o + 4, wl::packed<4, false>(x, 0) | wl::packed<4, false>(x, 1));
  put_bits(o + 5, wl::packed<4, true>(x, 1));
  put_bits(o + 6, wl::packed<2, false>(x, 2));
  put_bits(o + 7, wl::packed<1, false>(x, 5));
}
WL_EXPORT(packed_elements)

// A box at (8, 5) of the input, its raw shared image to out, and stored back through the other map
// at (16, 2).
WL_FN void copy_box(const wl::TensorMap& map_in, const wl::TensorMap& map_out, unsigned* out,
                    int bytes) {
  const unsigned smem = WL_SHARED_BASE();
  const unsigned bar = smem + 16384;
  if (wl::thread() == 0) {
    wl::mbarrier_init(bar, 1);
    wl::fence_mbarrier_init();
  }
  wl::sync_threads();
  if (wl::thread() == 0) {
    wl::mbarrier_arrive_expect_tx(bar, bytes);
    wl::tma_load(smem, map_in, bar, 8, 5);
  }
  wl::mbarrier_wait(bar, 0);
  for (int i = wl::thread(); i < bytes / 4; i += 32) {
    WL_REG(unsigned, w, 1);
    wl::ld_shared<4>(wl::at(w, 0), smem + 4 * i);
    wl::st_global<4>(out + i, wl::at(w, 0));
  }
  if (wl::thread() == 0) {
    wl::tma_store(map_out, smem, 16, 2);
    wl::bulk_commit();
    wl::bulk_wait_read<0>();
    wl::bulk_wait<0>();
  }
}

WL_KERNEL(box_none, 32, 1) PARAMETERS {
  copy_box(map_in, map_out, out, 8 * 64 * 2);
}
WL_EXPORT(box_none)

WL_KERNEL(box_128, 32, 1) PARAMETERS {
  copy_box(map_in, map_out, out, 16 * 64 * 2);
}
WL_EXPORT(box_128)

WL_KERNEL(box_64, 32, 1) PARAMETERS {
  copy_box(map_in, map_out, out, 16 * 32 * 2);
}
WL_EXPORT(box_64)

WL_KERNEL(box_32, 32, 1) PARAMETERS {
  copy_box(map_in, map_out, out, 16 * 16 * 2);
}
WL_EXPORT(box_32)

// Two warpgroups of one warp each hand a number back and forth 10 times through two mbarriers;
// named barriers around.
WL_KERNEL(ping_pong, 64, 1) PARAMETERS {
  const unsigned smem = WL_SHARED_BASE();
  if (wl::thread() == 0) {
    wl::mbarrier_init(smem, 32);
    wl::mbarrier_init(smem + 8, 32);
  }
  wl::sync_named(3, 64);
  WL_REG(int, x, 1);
  for (int i = 0; i < 10; ++i) {
    if (wl::warp() == 0) {
      if (i > 0) wl::mbarrier_wait(smem + 8, (i - 1) & 1);
      x[0] = 3 * i + wl::lane();
      wl::st_shared<4>(smem + 64 + 4 * wl::lane(), wl::at(x, 0));
      wl::mbarrier_arrive(smem);
    } else {
      wl::mbarrier_wait(smem, i & 1);
      wl::ld_shared<4>(wl::at(x, 0), smem + 64 + 4 * (wl::lane() ^ 1));
      wl::st_global<4>(reinterpret_cast<int*>(out) + 32 * i + wl::lane(), wl::at(x, 0));
      wl::mbarrier_arrive(smem + 8);
    }
  }
  wl::sync_warp();
}
WL_EXPORT(ping_pong)

// All threads combine with the same few words: sums of every width and type, then extremes of
// either sign.
template <int BYTES, class T> WL_FN void add_width(unsigned* out) {
  constexpr int n = BYTES / static_cast<int>(sizeof(T));
  WL_REG(T, x, n);
  for (int i = 0; i < n; ++i)
    x[i] = wl::cast<T>(static_cast<float>(i + wl::thread() % 2));
  wl::red_add<BYTES>(reinterpret_cast<T*>(out), wl::at(x, 0));
  wl::red_add<BYTES>(reinterpret_cast<T*>(out), wl::at(x, 0), wl::thread() < 2);
}

WL_KERNEL(combined, 32, 1) PARAMETERS {
  add_width<16, float>(out);
  add_width<8, float>(out + 4);
  add_width<4, float>(out + 6);
  add_width<16, int>(out + 8);
  add_width<8, int>(out + 12);
  add_width<4, int>(out + 14);
  add_width<16, wl::f16>(out + 16);
  add_width<8, wl::f16>(out + 20);
  add_width<4, wl::f16>(out + 22);
  add_width<2, wl::f16>(out + 23);
  add_width<16, wl::bf16>(out + 24);
  add_width<8, wl::bf16>(out + 28);
  add_width<4, wl::bf16>(out + 30);
  add_width<2, wl::bf16>(out + 31);
  WL_REG(float, x, 2);
  WL_REG(int, n, 2);
  for (int i = 0; i < 2; ++i) {
    x[i] = (wl::thread() - 16.0f) * (i ? 0.5f : 1.0f);
    n[i] = (wl::thread() - 16) * (i + 1);
  }
  wl::red_max<8>(reinterpret_cast<float*>(out + 32), wl::at(x, 0));
  wl::red_min<8>(reinterpret_cast<float*>(out + 34), wl::at(x, 0));
  wl::red_max<8>(reinterpret_cast<int*>(out + 36), wl::at(n, 0), wl::thread() < 31);
  wl::red_min<8>(reinterpret_cast<int*>(out + 38), wl::at(n, 0));
  wl::sync_threads();
  if (wl::thread() == 0) x[0] = as_float(in[0]);  // NaN
  wl::red_max<4>(reinterpret_cast<float*>(out + 40), wl::at(x, 0));
  wl::red_min<4>(reinterpret_cast<float*>(out + 41), wl::at(x, 0));
  x[0] = -1.0f - wl::thread();
  wl::red_min<4>(reinterpret_cast<float*>(out + 42), wl::at(x, 0));
  wl::sync_threads();
  x[0] = -0.5f;
  wl::red_max<4>(reinterpret_cast<float*>(out + 42), wl::at(x, 0));
}
WL_EXPORT(combined)

// A box added twice to what is there.
WL_KERNEL(reduced_box, 32, 1) PARAMETERS {
  const unsigned smem = WL_SHARED_BASE();
  WL_REG(unsigned, w, 1);
  for (int i = wl::thread(); i < 256; i += 32) {
    wl::ld_global<4>(wl::at(w, 0), in + i);
    wl::st_shared<4>(smem + 4 * i, wl::at(w, 0));
  }
  wl::fence_async_shared();
  wl::sync_threads();
  if (wl::thread() == 0) {
    wl::tma_reduce_add<wl::bf16>(map_out, smem, 0, 4);
    wl::tma_reduce_add<wl::bf16>(map_out, smem, 0, 4);
    wl::bulk_commit();
    wl::bulk_wait<0>();
  }
}
WL_EXPORT(reduced_box)

// Each block hands what it was handed, and one more, to the next.
WL_KERNEL(flags, 64, 1) PARAMETERS {
  int* flag = reinterpret_cast<int*>(out);
  const int block = wl::block_x();
  WL_REG(unsigned, w, 1);
  w[0] = 0;
  if (block > 0) {
    if (wl::thread() == 0) wl::wait_flag(flag + block - 1, 3);
    wl::sync_threads();
    wl::ld_global<4>(wl::at(w, 0), out + 64 * block + wl::thread());
  }
  w[0] += 1 + wl::thread();
  wl::st_global<4>(out + 64 * (block + 1) + wl::thread(), wl::at(w, 0));
  wl::sync_threads();
  if (wl::thread() == 0) wl::signal_flag(flag + block, 3);
}
WL_EXPORT(flags)

WL_KERNEL(registers_moved, 256, 1) PARAMETERS {
  wl::griddepcontrol_wait();
  wl::griddepcontrol_launch_dependents();
  if (wl::warp() < 4) {
    wl::reg_dealloc<40>();
    put_bits(out + wl::thread(), wl::thread());
  } else {
    wl::reg_alloc<208>();
    put_bits(out + wl::thread(), 2 * wl::thread());
  }
}
WL_EXPORT(registers_moved)
