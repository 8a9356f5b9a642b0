// Matrix products whose first operand is windows of a patch, and stores that turn a tile round.
//
// Windows overlap, so they are not copied out: row i of the product is where a window begins in the
// patch, and its k-th element lies some way from there. Both ways are nested loops, the same for
// all, and known when the kernel is compiled:
//
//   2 rows of 7 pixels, 16 channels of 3 × 3 elements, patch [16, 4, 9]:
//     Rows   Walk<2, 9, 7, 1>            from row to row 9 elements, from pixel to pixel 1
//     Depth  Walk<16, 36, 3, 9, 3, 1>    channels, rows and elements of the window
#pragma once

namespace wl {
// Loops within each other, a count and a stride in elements each, the outermost first.
template <long... Loops> struct Walk {
  static constexpr long kCount = 1;
};

template <long Count, long Stride, long... Inner> struct Walk<Count, Stride, Inner...> {
  static constexpr long kCount = Count * Walk<Inner...>::kCount;
};

// c[i][v] += Σ a[i·Step + …] · b[v]: R rows of an operand whose terms lie along the loops, and as
// many rows of b, one behind another.
template <int R, int V, long Step, long Panel>
WL_INLINE void add_terms(vf (&c)[R][V], const float* a, const float*& b, Walk<>) {
  vf row[V];
  WL_UNROLL
  for (int v = 0; v < V; ++v)
    row[v] = load(b + v * kLanes);
  b += Panel;
  WL_UNROLL
  for (int i = 0; i < R; ++i) {
    const vf x = splat(a[i * Step]);
    WL_UNROLL
    for (int v = 0; v < V; ++v)
      c[i][v] = fma(x, row[v], c[i][v]);
  }
}

template <int R, int V, long Step, long Panel, long Count, long Stride, long... Inner>
WL_INLINE void add_terms(vf (&c)[R][V], const float* a, const float*& b,
                         Walk<Count, Stride, Inner...>) {
  for (long i = 0; i < Count; ++i)
    add_terms<R, V, Step, Panel>(c, a + i * Stride, b, Walk<Inner...>{});
}

// acc += windows · b for one block of registers. Terms are added up from 0, the sum to acc then, or
// written where that begins.
template <int R, int V, long Step, class Depth, long P, long Panel>
WL_INLINE void window_block(float* acc, const float* a, const float* b, bool begins) {
  vf c[R][V] = {};
  add_terms<R, V, Step, Panel>(c, a, b, Depth{});
  if (!begins) {
    WL_UNROLL
    for (int i = 0; i < R * V; ++i)
      c[i / V][i % V] += load(acc + i / V * P + i % V * kLanes);
  }
  WL_UNROLL
  for (int i = 0; i < R * V; ++i)
    store(acc + i / V * P + i % V * kLanes, c[i / V][i % V]);
}

// The rows along the last loop in blocks of R, the last of which may be smaller; those along the
// others one after another.
template <int R, int V, class Depth, long P, long Panel, long Count, long Step>
WL_INLINE void window_rows(float* acc, const float* a, const float* b, bool begins,
                           Walk<Count, Step>) {
  for (long i = 0; i + R <= Count; i += R)
    window_block<R, V, Step, Depth, P, Panel>(acc + i * P, a + i * Step, b, begins);
  if constexpr (constexpr long i = Count / R * R; i < Count)
    window_block<Count - i, V, Step, Depth, P, Panel>(acc + i * P, a + i * Step, b, begins);
}

template <int R, int V, class Depth, long P, long Panel, long Count, long Stride, long... Inner>
WL_INLINE void window_rows(float* acc, const float* a, const float* b, bool begins,
                           Walk<Count, Stride, Inner...>) {
  constexpr long rows = Walk<Inner...>::kCount;
  for (long i = 0; i < Count; ++i)
    window_rows<R, V, Depth, P, Panel>(acc + i * rows * P, a + i * Stride, b, begins,
                                       Walk<Inner...>{});
}

// acc[i][j] += Σ_k window_i[k] · b[k][j]: the rows of acc lie P floats apart, b in panels of
// `Panel` columns, rows one after another in each; NV vectors of columns in all. Blocks of R rows
// and V vectors stay in registers for the whole of k.
template <class Rows, class Depth, int NV, int R, int V, long P, long Panel>
WL_CALLED void mma_windows(float* acc, const float* a, const float* b, bool begins) {
  constexpr long panel_floats = Panel * Depth::kCount;
  for (long v = 0; v + V <= NV; v += V) {
    const long j = v * kLanes;
    const float* const from = b + j / Panel * panel_floats + j % Panel;
    window_rows<R, V, Depth, P, Panel>(acc + j, a, from, begins, Rows{});
  }
  if constexpr (constexpr long v = NV / V * V; v < NV) {
    constexpr long j = v * kLanes;
    const float* const from = b + j / Panel * panel_floats + j % Panel;
    window_rows<R, NV - v, Depth, P, Panel>(acc + j, a, from, begins, Rows{});
  }
}

// dst[c · dst_stride + r] = src[r · src_stride + c], by blocks that are turned in registers. Rows
// of src may be read up to a multiple of kLanes elements.
template <class To>
inline void store_transposed(To* dst, long dst_stride, const float* src, long src_stride, long rows,
                             long cols) {
  for (long c = 0; c < cols; c += kLanes)
    for (long r = 0; r < rows; r += kLanes) {
      const long high = min(rows - r, kLanes);
      vf block[kLanes];
      WL_UNROLL
      for (long i = 0; i < kLanes; ++i)
        block[i] = i < high ? load(src + (r + i) * src_stride + c) : vf{};
      transpose(block);
      To* const to = dst + c * dst_stride + r;
      if (high == kLanes && c + kLanes <= cols) {
        WL_UNROLL
        for (long i = 0; i < kLanes; ++i)
          store(to + i * dst_stride, block[i]);
      } else {
        for (long i = 0; i < min(cols - c, kLanes); ++i)
          store_first(to + i * dst_stride, block[i], high);
      }
    }
}
}  // namespace wl
