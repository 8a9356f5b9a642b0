// Layouts as bit matrices: linear maps over GF(2), the field of two elements with XOR as its sum.
//
// Where every extent is a power of two and no sum carries, a layout sends the XOR of two indices to the XOR of their images.
// It is then a matrix of bits: column i is the image of input bit i. Swizzles are such matrices too, composition is the matrix
// product, and questions about all threads become questions about ranks. (The view of layouts in Zhou et al., "Linear Layouts:
// Robust Code Generation of Efficient Tensor Computation Using F2".)
//
// Worked example: (4,2):(2,1) sends index bits 0 1 2 to offset bits 1 2 0, columns {010, 100, 001}. Its inverse has the columns
// {100, 001, 010}: it is (2,4):(4,1).
//
// Bank conflicts in closed form: let the threads of one phase and the elements of one vector span the inputs. The words they
// touch form a space of dimension r = rank(word rows), the banks one of dimension b = rank(bank rows), and each bank that is
// hit serves 2^(r - b) words. The access is free of conflicts exactly if r = b.
#pragma once
#include "layout/memory_layout.h"
namespace warploom::layout {
struct BitMatrix {
  int rows = 0;                        // output bits, at most 64
  std::vector<std::uint64_t> columns;  // the image of each input bit; at most 64

  std::uint64_t operator()(std::uint64_t x) const;  // XOR of the columns of x's set bits
  friend bool operator==(const BitMatrix&, const BitMatrix&) = default;
};

BitMatrix identity_bits(int n);

// Law: compose(a, b)(x) = a(b(x)). kLayout when b has more rows than a has columns.
Result<BitMatrix> compose(const BitMatrix& a, const BitMatrix& b);
int rank(const BitMatrix& a);
// Law: inverse(a)(a(x)) = x and a(inverse(a)(y)) = y. kLayout when a is not square or not of full rank.
Result<BitMatrix> inverse(const BitMatrix& a);
// A basis of all x with a(x) = 0: for a layout, the index bits (and combinations of them) that only replicate.
// Law: rank(a) + size of the kernel = number of columns.
std::vector<std::uint64_t> kernel(const BitMatrix& a);

// Index bits → integer bits. kLayout when an extent is no power of two or leaves carry into each other.
Result<BitMatrix> bit_matrix(const Layout& layout);
// Byte offset bits → byte offset bits, `bits` of them. kLayout when the swizzle reads bits beyond.
Result<BitMatrix> bit_matrix(const Swizzle& swizzle, int bits);
// (thread bits, then value bits) → bits of the offset in memory after the swizzle, counted in BITS so that elements of less than
// a byte have an address. kLayout when the map is not linear.
Result<BitMatrix> bit_matrix(const TvLayout& registers, const MemoryLayout& memory);

// What bank_conflict_ways finds by counting, from two ranks. kLayout when the map is not linear.
Result<int> conflict_ways_closed_form(const TvLayout& registers, const MemoryLayout& memory, int access_bytes);
}  // namespace warploom::layout
