// The algebra of integer layouts (layout.h): what synthesis is calculated with.
//
// Notation: A(i) is the integer that layout A gives for index i; A∘B is "first B, then A"; ⟨A, B⟩ is Layout::list({A, B}).
// Every operation states its law; the tests check each law by enumeration. An operation with a precondition returns Result and
// fails with kLayout, never with a wrong layout. The operations are those of CuTe (NVIDIA CUTLASS documentation, "CuTe layout
// algebra"); unlike there, a composition whose digits would carry is refused rather than computed wrongly.
#pragma once
#include <utility>
#include "layout/layout.h"
namespace warploom::layout {
// A∘B. Law: compose(A, B)(i) = A(B(i)) for i < size(B), and the result has B's form, each leaf refined where needed.
// Precondition: B stays inside A (cosize(B) ≤ size(A)), each leaf of B walks whole digits of coalesced A, and no two leaves of B
// carry into each other's digits.
//   (6,2):(8,2) ∘ (4,3):(3,1) = ((2,2),3):((24,2),8)
Result<Layout> compose(const Layout& a, const Layout& b);

// The layout of what A leaves out: gaps between A's strides first, then copies of A up to `bound`.
// Law: filter(A) and the result reach disjoint integers apart from 0, strides of the result ascend, and ⟨filter(A), result⟩ is a
// bijection onto [0, n) with n ≥ bound, n = bound when the reach of A divides it.
// Precondition: leaves of A nest: sorted by stride, each stride is a multiple of the extent × stride of the one before.
//   complement(4:2, 24) = (2,3):(1,8)
Result<Layout> complement(const Layout& a, std::int64_t bound);

// The longest contiguous run of integers that A reaches from 0, read backwards.
// Law: A(R(i)) = i for i < size(R). Replicated leaves (stride 0) are passed over.
//   right_inverse((4,8):(8,1)) = (8,4):(4,1): integer 5 lies at index 20
Layout right_inverse(const Layout& a);

// Law: L(A(i)) = i for i < size(A); L is a bijection of [0, size(L)), so that integers off A's image go beyond size(A).
// Precondition: that of complement, and no leaf is replicated.
//   left_inverse((4,8):(16,1)) = (16,4):(4,1): integers 8 to 15, which A does not reach, go to 32 and up
Result<Layout> left_inverse(const Layout& a);

// ⟨A∘T, A∘complement(T, size(A))⟩: part 0 is one tile, part 1 says where the tiles are.
// Law: part 0 = A∘T, and the whole reaches the same integers as A, each as often.
// Preconditions: those of compose and complement, and that the reach of T divides size(A).
//   logical_divide(16:1, 4:2) = (4,(2,2)):(2,(1,8))
Result<Layout> logical_divide(const Layout& a, const Layout& tiler);

// ⟨A, complement(A, size(A)·cosize(B))∘B⟩: B's arrangement of copies of A.
// Law: part 0 = A; the copies do not overlap where B is injective; B = n:1 gives n copies side by side.
//   logical_product((2,2):(4,1), 6:1) = ((2,2),(2,3)):((4,1),(2,8))
Result<Layout> logical_product(const Layout& a, const Layout& b);

// How many leading integers lie at the same indices in A and B: the widest vector that copies between them.
// Law: the largest n ≤ the lengths of both right inverses with right_inverse(A)(i) = right_inverse(B)(i) for i < n.
//   max_common_vector((8,4):(1,8), (4,8):(1,4)) = 32; max_common_vector(32:1, (8,4):(1,16)) = 8
std::int64_t max_common_vector(const Layout& a, const Layout& b);

// Splits after the first n indices: first has size n, ⟨first, second⟩ = L as a function of the index. Both are flat.
// Precondition: n divides through the leaves from the left.
//   group((4,8):(8,1), 8) = {(4,2):(8,1), 4:2}
Result<std::pair<Layout, Layout>> group(const Layout& layout, std::int64_t n);

// Both layouts, unchanged as functions of the index, over one flat shape: the common refinement of theirs.
// Precondition: equal sizes, and the cuts of one shape nest in those of the other.
//   common_reshape((4,8):(1,4), (8,4):(4,1)) = {(4,2,4):(1,4,8), (4,2,4):(4,16,1)}
Result<std::pair<Layout, Layout>> common_reshape(const Layout& a, const Layout& b);
}  // namespace warploom::layout
