// The device interface of CPU kernels: everything an emitted kernel calls.
//
// A kernel is  extern "C" void NAME(void* const* buffers, long long task, void* scratch):  one call
// computes one block. Register tiles are small arrays on the stack that the compiler keeps in
// vector registers, shared tensors parts of `scratch`, a buffer of the calling thread that lives in
// its L2 cache.
//
// Tiles between memory and buffers: rows of `cols` elements one after another at a row stride,
// converted on the way.
//
// Buffers (scratch and register tiles) hold floats. Three forms of a buffer: rows at a pitch;
// panels, where the columns are cut into groups of P and each group stores its rows one after
// another (wl::multiply_tile reads one panel with no stride at all); and the same with rows and
// columns exchanged. A Box says which part of a tile lies inside the tensor; the rest counts as
// `fill` when it is read and is not written.
#pragma once
#include "functions.h"

namespace wl {
WL_INLINE constexpr long min(long a, long b) {
  return a < b ? a : b;
}

// The coordinate along an axis of `size` that entry `place` of a table of `count` holds, `stride`
// elements apart: one below 0 counts from the end. -1 where the table has no such entry.
template <class I>
WL_INLINE long lookup(const I* table, long place, long count, long stride, long size) {
  if (place < 0 || place >= count) return -1;
  const long found = static_cast<long>(table[place * stride]);
  return found < 0 ? found + size : found;
}

WL_INLINE constexpr long max(long a, long b) {
  return a > b ? a : b;
}

struct Box {
  long row_begin;
  long row_end;
  long col_begin;
  long col_end;
};

struct Along {  // one dimension: a tile's first element, how many, of a tensor's how many, every
                // which
  long at;
  long extent;
  long count;
  long step = 1;

  WL_INLINE long below(long end) const {  // elements of the tile whose coordinates lie below `end`
    const long elements = end <= at ? 0 : (end - at + step - 1) / step;
    return elements < extent ? elements : extent;
  }
};

// The part of a tile that lies inside its tensor.
WL_INLINE Box inside(Along rows, Along cols) {
  return {rows.below(0), rows.below(rows.count), cols.below(0), cols.below(cols.count)};
}

// dst[r][c] = src[r][c], a whole tile. The last vector of a row may be a part of one.
template <long Rows, long Cols, bool Streaming = false, class To, class From>
WL_INLINE void copy_rows(To* dst, long dst_stride, const From* src, long src_stride) {
  for (long r = 0; r < Rows; ++r) {
    To* to = dst + r * dst_stride;
    const From* from = src + r * src_stride;
    for (long c = 0; c + kLanes <= Cols; c += kLanes) {
      if constexpr (Streaming)
        stream(to + c, load(from + c));
      else
        store(to + c, load(from + c));
    }
    if constexpr (constexpr long rest = Cols % kLanes; rest != 0) {
      constexpr long whole = Cols - rest;
      store_first(to + whole, load_some(from + whole, 0, rest, 0), rest);
    }
  }
}

// dst[i] = src[i], past the caches by whole vectors of dst, wherever it begins.
WL_INLINE void stream_run(float* dst, const float* src, long count) {
  const auto beyond = static_cast<long>(reinterpret_cast<unsigned long>(dst) / sizeof(float));
  const long head = min(-beyond & (kLanes - 1), count);
  store_first(dst, load_some(src, 0, head, 0), head);
  long i = head;
  for (; i + kLanes <= count; i += kLanes)
    stream(dst + i, load(src + i));
  const long rest = count - i;
  store_first(dst + i, load_some(src + i, 0, rest, 0), rest);
}

// Asks for Cols elements, into the first or the second cache.
template <long Cols, int Level = 1, class T> WL_INLINE void fetch(const T* p) {
  constexpr int locality = Level == 1 ? 3 : 2;
  const char* const line = reinterpret_cast<const char*>(p);
  for (long i = 0; i < Cols * static_cast<long>(sizeof(T)); i += 64)
    __builtin_prefetch(line + i, 0, locality);
}

// Asks for Cols elements ahead of a walk through memory, on or back: the processor's own
// prefetching stops at a page's end.
inline constexpr long kPrefetchBytes = 8192;  // how far ahead

template <long Cols, int Level = 1, class T> WL_INLINE void prefetch(const T* p) {
  fetch<Cols, Level>(p + kPrefetchBytes / static_cast<long>(sizeof(T)));
}

template <long Cols, int Level = 1, class T> WL_INLINE void prefetch_back(const T* p) {
  fetch<Cols, Level>(p - kPrefetchBytes / static_cast<long>(sizeof(T)));
}

// One element, and all elements of a buffer as they are after a store in T.
template <class T> WL_INLINE float load_one(const T* p) {
  return to_float(*p);
}

template <class T> WL_INLINE void store_one(T* p, float x) {
  *p = cast<T>(x);
}

template <class T> inline void round_all(float* p, long count) {
  for (long i = 0; i < count; i += kLanes)
    store(p + i, rounded<T>(load(p + i)));
}

template <long... I>
WL_INLINE vf evens_and_odds(vf a, vf b,
                            long_list<I...>) {  // the even elements of a, then the odd ones of b
  return __builtin_shufflevector(a, b, (2 * I < kLanes ? 2 * I : 2 * I + 1)...);
}

// Elements v, v + 1, … of a row, Step apart in memory; those not from begin to end count as fill.
template <long Step, class From>
WL_INLINE vf load_row_at(const From* row, long v, long begin, long end, float fill) {
  const From* from = row + v * Step;
  const long low = max(begin - v, 0);
  const long high = max(min(end - v, kLanes), low);
  const bool whole = begin <= v && v + kLanes <= end;
  if constexpr (Step == 1)
    return whole ? load(from) : load_some(from, min(low, kLanes), min(high, kLanes), fill);
  if constexpr (Step == 2) {  // the second vector begins one early, so that nothing behind the last
                              // element is read
    constexpr long second = kLanes - 1;
    if (whole) return evens_and_odds(load(from), load(from + second), lane_numbers{});
    const long first = min(2 * low, 2 * kLanes);
    const long last = high == low ? first : 2 * high - 1;
    const long second_first = max(first - second, 0);
    const long second_last = max(last - second, 0);
    const vf evens = load_some(from, min(first, kLanes), min(last, kLanes), fill);
    const vf odds = load_some(from + second, second_first, second_last, fill);
    return evens_and_odds(evens, odds, lane_numbers{});
  }
  vf out = splat(fill);
  for (long i = low; i < high; ++i)
    out[i] = load_one(from + i * Step);
  return out;
}

// Rows of a tile that is partly outside its tensor, or that takes every Step-th element, into a
// buffer.
template <long Step = 1, class From>
inline void load_rows(float* dst, long dst_stride, const From* src, long src_stride, long rows,
                      long cols, Box box, float fill) {
  for (long r = 0; r < rows; ++r) {
    const bool in = r >= box.row_begin && r < box.row_end;
    const long begin = in ? box.col_begin : 0;
    const long end = in ? box.col_end : 0;
    float* const to = dst + r * dst_stride;
    for (long c = 0; c < cols; c += kLanes) {
      const vf loaded = load_row_at<Step>(src + r * src_stride, c, begin, end, fill);
      store_first(to + c, loaded, min(cols - c, kLanes));
    }
  }
}

template <class To>
inline void store_rows(To* dst, long dst_stride, const float* src, long src_stride, Box box) {
  for (long r = box.row_begin; r < box.row_end; ++r) {
    To* const to = dst + r * dst_stride;
    const float* const from = src + r * src_stride;
    for (long c = box.col_begin; c < box.col_end; c += kLanes)
      store_first(to + c, load(from + c), min(box.col_end - c, kLanes));
  }
}

// Packing into panels of P columns: dst[(c / P) · Rows + r][c % P] = src[r][c].
template <long Rows, long Cols, long P, class From>
WL_INLINE void pack_panels(float* dst, const From* src, long src_stride) {
  constexpr long whole = Cols / P * P;
  for (long r = 0; r < Rows; ++r) {
    const From* const from = src + r * src_stride;
    float* const to = dst + r * P;
    for (long c = 0; c < whole; c += P)
      copy_rows<1, P>(to + c * Rows, 0, from + c, 0);
    if constexpr (whole < Cols) copy_rows<1, Cols - whole>(to + whole * Rows, 0, from + whole, 0);
  }
}

template <class From>
inline void pack_panels(float* dst, const From* src, long src_stride, long rows, long cols,
                        long panel, Box box, float fill) {
  for (long c = 0; c < cols; c += panel) {
    const long width = min(cols - c, panel);
    const Box part = {box.row_begin, box.row_end, box.col_begin - c, box.col_end - c};
    load_rows(dst + c * rows, panel, src + c, src_stride, rows, width, part, fill);
  }
}

// A kLanes × kLanes block with rows and columns exchanged, in registers: at each step, squares of
// `Step` change places.
template <long Step, long... I> WL_INLINE void exchange(vf& a, vf& b, long_list<I...>) {
  const vf upper = __builtin_shufflevector(a, b, ((I & Step) == 0 ? I : kLanes + I - Step)...);
  const vf lower = __builtin_shufflevector(a, b, ((I & Step) == 0 ? I + Step : kLanes + I)...);
  a = upper;
  b = lower;
}

template <long Step> WL_INLINE void exchange_all(vf (&block)[kLanes]) {
  WL_UNROLL
  for (long i = 0; i < kLanes; ++i)
    if ((i & Step) == 0) exchange<Step>(block[i], block[i + Step], lane_numbers{});
}

WL_INLINE void transpose(vf (&block)[kLanes]) {
  exchange_all<1>(block);
  exchange_all<2>(block);
  if constexpr (kLanes > 4) exchange_all<4>(block);
  if constexpr (kLanes > 8) exchange_all<8>(block);
}

// dst[c][r] = src[r][c], in squares of a vector's width that are turned in registers. Where `Asks`,
// what lies beside the tile is asked for.
template <long Rows, long Cols, bool Asks>
WL_INLINE void turn(float* dst, long dst_stride, const float* src, long src_stride) {
  for (long r = 0; r < Rows; r += kLanes)
    for (long c = 0; c < Cols; c += kLanes) {
      const float* const from = src + r * src_stride + c;
      float* const to = dst + c * dst_stride + r;
      vf block[kLanes];
      WL_UNROLL
      for (long i = 0; i < kLanes; ++i) {
        block[i] = load(from + i * src_stride);
        if constexpr (Asks) __builtin_prefetch(from + i * src_stride + Cols);
      }
      transpose(block);
      WL_UNROLL
      for (long i = 0; i < kLanes; ++i)
        store(to + i * dst_stride, block[i]);
    }
}

// The same past the caches, by way of a buffer in the first of them: memory takes a few hundred
// bytes of one row after another far faster than a line of each of many rows in turn. Meanwhile
// what lies beside the tile is asked for, row after row as well.
template <long Rows, long Cols, int Level>
WL_INLINE void stream_turned(float* dst, long dst_stride, const float* src, long src_stride) {
  constexpr long pitch = Rows + 16;
  alignas(64) float turned[Cols * pitch];
  turn<Rows, Cols, false>(turned, pitch, src, src_stride);
  long asked = 0;
  for (long c = 0; c < Cols; ++c) {
    WL_UNROLL
    for (long r = 0; r < Rows; r += kLanes)
      stream(dst + c * dst_stride + r, load(turned + c * pitch + r));
    for (; asked * Cols < (c + 1) * Rows; ++asked)
      fetch<Cols, Level>(src + asked * src_stride + Cols);
  }
}

inline constexpr long kTurned = 64;  // rows and columns of a tile that the first cache holds turned

template <long Rows, long Cols, int Level>
WL_INLINE void stream_band(float* dst, long dst_stride, const float* src, long src_stride) {
  constexpr long rest = Cols % kTurned;
  constexpr long whole = Cols - rest;
  for (long c = 0; c < whole; c += kTurned)
    stream_turned<Rows, kTurned, Level>(dst + c * dst_stride, dst_stride, src + c, src_stride);
  if constexpr (rest != 0)
    stream_turned<Rows, rest, Level>(dst + whole * dst_stride, dst_stride, src + whole, src_stride);
}

// dst[c][r] = src[r][c], a whole tile, from memory to memory: rows and columns multiples of a
// vector.
template <long Rows, long Cols, bool Streaming, int Level = 1>
WL_INLINE void copy_transposed(float* dst, long dst_stride, const float* src, long src_stride) {
  if constexpr (Streaming) {
    constexpr long rest = Rows % kTurned;
    constexpr long whole = Rows - rest;
    for (long r = 0; r < whole; r += kTurned)
      stream_band<kTurned, Cols, Level>(dst + r, dst_stride, src + r * src_stride, src_stride);
    if constexpr (rest != 0)
      stream_band<rest, Cols, Level>(dst + whole, dst_stride, src + whole * src_stride, src_stride);
  } else {
    turn<Rows, Cols, true>(dst, dst_stride, src, src_stride);
  }
}

// Packing with rows and columns exchanged, into panels of P rows (a multiple of kLanes): dst[(r /
// P) · cols + c][r % P] = src[r][c]. Rows up to a multiple of kLanes are written.
template <class From>
inline void pack_transposed(float* dst, const From* src, long src_stride, long rows, long cols,
                            long panel, Box box, float fill) {
  for (long r = 0; r < rows; r += kLanes)
    for (long c = 0; c < cols; c += kLanes) {
      const bool whole_rows = box.row_begin <= r && r + kLanes <= box.row_end;
      const bool whole_cols = box.col_begin <= c && c + kLanes <= box.col_end;
      const bool whole = whole_rows && whole_cols;
      vf block[kLanes];
      if (whole) {
        WL_UNROLL
        for (long i = 0; i < kLanes; ++i)
          block[i] = load(src + (r + i) * src_stride + c);
      } else {
        float part[kLanes * kLanes];
        const Box here = {box.row_begin - r, box.row_end - r, box.col_begin - c, box.col_end - c};
        load_rows(part, kLanes, src + r * src_stride + c, src_stride, kLanes, kLanes, here, fill);
        for (long i = 0; i < kLanes; ++i)
          block[i] = load(part + i * kLanes);
      }
      transpose(block);
      float* to = dst + r / panel * panel * cols + r % panel + c * panel;
      if (c + kLanes <= cols) {
        WL_UNROLL
        for (long i = 0; i < kLanes; ++i)
          store(to + i * panel, block[i]);
      } else {
        for (long i = 0; i < cols - c; ++i)
          store(to + i * panel, block[i]);
      }
    }
}
}  // namespace wl

#include "dot.h"
#include "multiply.h"
#include "tiles.h"
#include "windows.h"
