// Pure address arithmetic, one text for both devices. WL_PURE comes from the device's
// kernel_head.h. Source: PTX ISA 9.0, "Asynchronous warpgroup level matrix: matrix descriptor" and
// "tensor: swizzling modes".
#pragma once

namespace wl {
// XORs BITS bits of a byte offset, from bit BASE on, with the bits SHIFT above them: swizzle<3,4,3>
// is the 128-byte swizzle of TMA and of wgmma, <2,4,3> the 64-byte and <1,4,3> the
// 32-byte one.
template <int BITS, int BASE, int SHIFT> WL_PURE unsigned swizzle(unsigned byte_offset) {
  return byte_offset ^ ((byte_offset >> SHIFT) & (((1u << BITS) - 1u) << BASE));
}

// Of indices; of values see value_functions.h.
WL_PURE int min(int a, int b) {
  return a < b ? a : b;
}

WL_PURE int max(int a, int b) {
  return a > b ? a : b;
}

// The 64-bit description of an operand tile in shared memory. lbo and sbo in bytes; modes as in
// TensorMap: 0 no swizzle, 1 128 bytes, 2 64, 3 32. With a swizzle of W bytes:
//   K-major:  lbo ignored; sbo = bytes between groups of 8 rows (8 * W when packed); +32 bytes is
//   the next K slice. MN-major: lbo = bytes between chunks of W bytes along MN; sbo = bytes between
//   groups of 8 k-rows (8 * W).
// Without swizzle the tile is made of 8 x 16-byte core matrices of 128 contiguous bytes:
//   K-major:  lbo = bytes between core matrices along K, sbo = between groups of 8 rows.
//   MN-major: sbo = bytes between core matrices along MN, lbo = between groups of 8 k-rows.
WL_PURE unsigned long long smem_descriptor(unsigned addr, unsigned lbo_bytes, unsigned sbo_bytes,
                                           int swizzle_mode) {
  return static_cast<unsigned long long>((addr & 0x3ffffu) >> 4) |
         static_cast<unsigned long long>((lbo_bytes & 0x3ffffu) >> 4) << 16 |
         static_cast<unsigned long long>((sbo_bytes & 0x3ffffu) >> 4) << 32 |
         static_cast<unsigned long long>(swizzle_mode & 3) << 62;
}
}  // namespace wl
