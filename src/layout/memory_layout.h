// Memory layouts: where each element of a tile lies in shared memory.
//
// For each tile dimension a list of modes (extent, stride in elements), fastest first: unravel the
// coordinate along that dimension over the extents and sum digit × stride. The sum times the
// element size is a byte offset, to which a swizzle is applied: x ^ ((x & mask) >> shift) with
// `bits` mask bits at base + shift. Swizzle{3,4,3} is the 128-byte swizzle of tma and of
// wgmma (16-byte chunks XORed with the row modulo 8), {2,4,3} the 64-byte, {1,4,3}
// the 32-byte one.
//
// Worked example: a 64×256 tile of 2-byte elements whose second dimension is contiguous, cut into
// 64-column atoms of 128 bytes a row: dimension 0 (64 : 64), dimension 1 (64 : 1)(4 : 4096),
// swizzle {3,4,3}.
//
// Laws (tested): a swizzle is its own inverse and permutes aligned blocks of
// 2^(bits+base+shift) bytes; conflict ways computed by enumeration equal those of the closed form
// (BitMatrix below).
#pragma once
#include <optional>
#include "layout/tv_layout.h"

namespace warploom::layout {
struct Swizzle {
  // bits 0: none
  int bits = 0;
  int base = 4;
  int shift = 3;

  int64_t operator()(int64_t byte) const {
    const int64_t mask = ((int64_t{1} << bits) - 1) << (base + shift);
    return byte ^ ((byte & mask) >> shift);
  }

  friend bool operator==(const Swizzle&, const Swizzle&) = default;
};

struct MemoryMode {
  // stride in elements
  int64_t extent = 1;
  int64_t stride = 0;
  friend bool operator==(const MemoryMode&, const MemoryMode&) = default;
};

struct MemoryLayout {
  std::vector<std::vector<MemoryMode>> dims;  // one list a tile dimension, fastest mode first
  Swizzle swizzle;
  int element_bits = 32;

  int64_t elements() const;  // one past the largest offset, in elements
  int64_t bytes() const;     // to allocate: with a swizzle, its last block is used to the end
  int64_t element_offset(const Coord& coord) const;  // before the swizzle, in elements
  int64_t byte_offset(const Coord& coord) const;     // after the swizzle
  friend bool operator==(const MemoryLayout&, const MemoryLayout&) = default;
};

// Dense, one dimension contiguous (fastest), then the others, the last of them first.
MemoryLayout dense(const std::vector<int64_t>& extents, size_t contiguous, int element_bits);

// The form that tma writes and wgmma reads: dimension `contiguous` cut into swizzle atoms of
// `atom_bytes` (32, 64 or 128) a row, each atom a dense block of rows along the other (single)
// dimension, swizzled by the mode of that width. The contiguous extent is a multiple of the atom's
// elements.
MemoryLayout swizzle_atoms(const std::vector<int64_t>& extents, size_t contiguous, int atom_bytes,
                           int element_bits);

// The widest access in elements that every thread can make along its leading value modes: the
// largest power of two v (at most max_bytes wide) such that values [k·v, (k+1)·v) of each thread
// are v consecutive, v-aligned elements of memory and are not torn apart by the swizzle.
int64_t common_vector(const TvLayout& registers, const MemoryLayout& memory, int max_bytes);

// Shared memory has 32 banks of 4 bytes; one access of `access_bytes` a thread is served in phases
// of 128 / access_bytes threads. The largest number of distinct 4-byte words that one bank must
// serve in any phase of any warp: 1 is conflict-free. `registers` gives each thread's vector number
// `step` (values step·v … step·v + v − 1); the worst over all steps is returned.
int bank_conflict_ways(const TvLayout& registers, const MemoryLayout& memory, int access_bytes);

// Tries no swizzle, then those of tma, then every {bits, base, shift} that keeps
// vectors of `access_bytes` whole and moves them within the 128 bytes of the banks, on the layouts
// of all the given accesses; returns the first with the smallest sum of conflict ways.
struct SharedAccess {
  TvLayout registers;
  int access_bytes;
};

Swizzle choose_swizzle(const std::vector<SharedAccess>& accesses, const MemoryLayout& memory);

std::string to_string(const MemoryLayout& layout);

// Layouts as bit matrices: linear maps over GF(2), the field of two elements with XOR as its sum.
//
// Where every extent is a power of two and no sum carries, a layout sends the XOR of two indices to
// the XOR of their images. It is then a matrix of bits: column i is the image of input bit i.
// Swizzles are such matrices too, and questions about all threads become questions about columns.
// (The view of layouts in Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor
// Computation Using F2".)
//
// Worked example: 2 threads of 2 values on a 2×2 tile of bytes, thread [2 : (1,0)], value [2 :
// (0,1)], in memory that keeps columns together, (2:1)(2:2). Thread bit 0 steps a row, 8 bits on;
// value bit 0 a column, 16 bits on: columns {01000, 10000}.
//
// Bank conflicts in closed form (a law that the tests hold bank_conflict_ways to): let the threads
// of one phase and the elements of one vector span the inputs. The words they touch form a space of
// dimension r = rank(word rows), the banks one of dimension b = rank(bank rows), and each bank that
// is hit serves 2^(r - b) words. The access is free of conflicts exactly if r = b.
struct BitMatrix {
  std::vector<uint64_t> columns;  // the image of each input bit; at most 64

  uint64_t operator()(uint64_t x) const;  // XOR of the columns of x's set bits
};

// (thread bits, then value bits) → bits of the offset in memory after the swizzle, counted in BITS
// so that elements of less than a byte have an address. Nothing where the map is not linear.
std::optional<BitMatrix> bit_matrix(const TvLayout& registers, const MemoryLayout& memory);

// Pictures of layouts, as text and as SVG: a row of the tile a line, dimensions before the last two
// one below the other.
//
// Of a thread-value layout each cell says which thread holds the element in which value, T3V1; "+"
// marks an element that several (thread, value) pairs hold, of which the first is named; "." one
// that none holds.
//
//   tile 2x4, thread [2 : (1,0)] [2 : (0,2)], value [2 : (0,1)]     T0V0 T0V1 T2V0 T2V1
//                                                                  T1V0 T1V1 T3V0 T3V1
//
// Of a memory layout each cell is the shared-memory bank (0 to 31) that holds the element's first
// byte. In SVG a colour stands for a thread, or for a bank. Of rows and columns beyond `most` the
// last line says that they are left out.
struct Picture {
  std::string text;
  std::string svg;
};

Picture draw(const TvLayout& layout, int64_t most = 64);
Picture draw(const MemoryLayout& layout, int64_t most = 64);
}  // namespace warploom::layout
