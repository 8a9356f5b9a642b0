// What a tensor map says, in plain fields: the emulator's TensorMap, and what a host fills a
// CUtensorMap from.
//
// Example, a [1000][512] bf16 matrix copied in boxes of 128 rows by 64 columns with the 128-byte
// swizzle:
//   rank 2, element_bytes 2, dims {512, 1000}, strides {2, 1024}, box {64, 128}, swizzle 1.
// Dimension 0 is the innermost and contiguous. Elements outside dims load as zero and are not
// stored.
#pragma once

namespace wl {
struct TensorMap {
  void* base;
  int rank;
  int element_bytes;
  long long dims[5];     // elements
  long long strides[5];  // bytes; strides[0] == element_bytes, the others multiples of 16
  int box[5];   // elements, each at most 256; box[0] * element_bytes a multiple of 16, at most the
                // swizzle's width
  int swizzle;  // 0 none, 1 128 B, 2 64 B, 3 32 B
  int tf32;     // 1: elements are floats that loading rounds to tf32
};
}  // namespace wl
