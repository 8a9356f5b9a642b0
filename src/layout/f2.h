// Layouts as bit matrices: linear maps over GF(2), the field of two elements with XOR as its sum.
//
// Where every extent is a power of two and no sum carries, a layout sends the XOR of two indices to the XOR of their images.
// It is then a matrix of bits: column i is the image of input bit i. Swizzles are such matrices too, and questions about all threads
// become questions about columns. (The view of layouts in Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor
// Computation Using F2".)
//
// Worked example: 2 threads of 2 values on a 2×2 tile of bytes, thread [2 : (1,0)], value [2 : (0,1)], in memory that keeps columns
// together, (2:1)(2:2). Thread bit 0 steps a row, 8 bits on; value bit 0 a column, 16 bits on: columns {01000, 10000}.
//
// Bank conflicts in closed form (a law that the tests hold bank_conflict_ways to): let the threads of one phase and the elements of
// one vector span the inputs. The words they touch form a space of dimension r = rank(word rows), the banks one of dimension
// b = rank(bank rows), and each bank that is hit serves 2^(r - b) words. The access is free of conflicts exactly if r = b.
#pragma once
#include "layout/memory_layout.h"
namespace warploom::layout {
struct BitMatrix {
  std::vector<std::uint64_t> columns;  // the image of each input bit; at most 64

  std::uint64_t operator()(std::uint64_t x) const;  // XOR of the columns of x's set bits
};

// (thread bits, then value bits) → bits of the offset in memory after the swizzle, counted in BITS so that elements of less than
// a byte have an address. kLayout when the map is not linear.
Result<BitMatrix> bit_matrix(const TvLayout& registers, const MemoryLayout& memory);
}  // namespace warploom::layout
