// Integer layouts: functions from coordinates to integers, written shape:stride.
//
// A Layout is a tree. A leaf is a mode extent:stride, the function i -> i * stride on [0, extent); an inner
// node is a list of layouts and adds what they give. Because the tree holds modes, shape tree and stride tree
// always have the same form. The idea of nested shapes and strides is that of CuTe (NVIDIA CUTLASS
// documentation, "CuTe layouts"); as there, an integer index into a layout runs through the leaves from left
// to right, the first leaf fastest.
//
// Worked example: ((2,2),4):((1,8),2) has size 16, cosize 16, rank 2, depth 2.
//   index 3 is coordinate ((1,1),0): 1*1 + 1*8 + 0*2 = 9
//   coordinate (3,2) names the same first part by its index: 9 + 2*2 = 13
//   index 16 would be one past the end; the last leaf simply runs on beyond its extent
//
// Extents are at least 1, strides at least 0 (0 is replication: many coordinates, one integer). The
// operations that combine layouts are in algebra.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace warploom::layout {

// A nested tuple of integers: a leaf, 4, or a list, (2,(3,4)). Write IntTree{2, {3, 4}}.
struct IntTree {
  bool is_leaf = true;
  std::int64_t leaf = 0;
  std::vector<IntTree> kids;  // empty for a leaf

  IntTree() = default;
  IntTree(std::int64_t value) : leaf(value) {}  // NOLINT: a number is a tree
  IntTree(std::initializer_list<IntTree> list) : is_leaf(false), kids(list) {}
  static IntTree list(std::vector<IntTree> kids);
  friend bool operator==(const IntTree&, const IntTree&) = default;
};

// One leaf of a layout.
struct Mode {
  std::int64_t extent = 1, stride = 0;
  friend bool operator==(const Mode&, const Mode&) = default;
};

class Layout {
 public:
  Layout() = default;  // 1:0
  Layout(std::int64_t extent, std::int64_t stride) : mode_{extent, stride} {}
  static Layout list(std::vector<Layout> parts);
  static Layout flat(const std::vector<Mode>& modes);  // a list of leaves; one mode is a leaf, none is 1:0

  bool is_leaf() const { return leaf_; }
  const Mode& mode() const { return mode_; }                   // of a leaf
  const std::vector<Layout>& parts() const { return parts_; }  // of a list
  const Layout& part(int i) const;                             // the i-th top-level part; a leaf is its own part 0

  int rank() const;                 // number of top-level parts, 1 for a leaf
  int depth() const;                // 0 for a leaf
  std::int64_t size() const;        // product of the extents
  std::int64_t cosize() const;      // one past the largest integer reached
  std::vector<Mode> modes() const;  // the leaves from left to right
  IntTree shape() const;
  IntTree stride() const;

  std::int64_t operator()(std::int64_t index) const;
  // The coordinate may be coarser than the layout: where it has a leaf and the layout a list, the leaf is an
  // index into it. It must not be finer, nor longer or shorter.
  std::int64_t operator()(const IntTree& coord) const;

  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  bool leaf_ = true;
  Mode mode_;
  std::vector<Layout> parts_;
};

// shape and stride must have the same form, extents be at least 1 and strides at least 0; kLayout otherwise.
//   make_layout({2,{3,4}}, {1,{2,6}}) = (2,(3,4)):(1,(2,6))
Result<Layout> make_layout(const IntTree& shape, const IntTree& stride);
// Compact, the first leaf fastest: make_layout({2,{3,4}}) = (2,(3,4)):(1,(2,6)).
Layout make_layout(const IntTree& shape);
// The layouts side by side, as the parts of one: size multiplies, integers add.
Layout make_layout(std::vector<Layout> parts);

// The same function on integers with no lists in lists: ((2,2),4):((1,8),2) → (2,2,4):(1,8,2).
Layout flatten(const Layout& layout);

// The same function on [0, size) with as few leaves as there can be: drops extents of 1, joins a leaf with
// its left neighbour when its stride is the neighbour's extent times stride. (2,(1,6)):(1,(6,2)) → 12:1.
// Always flat.
Layout coalesce(const Layout& layout);

// coalesce after dropping every leaf of stride 0: the same set of integers, each reached once where the rest
// is injective.
//   (2,4,8):(1,0,2) → 16:1
Layout filter(const Layout& layout);

std::string to_string(const IntTree& tree);
std::string to_string(const Layout& layout);  // "((2,2),4):((1,8),2)"
// Reads what to_string writes, spaces allowed. kLayout for anything else.
Result<Layout> parse_layout(std::string_view text);

}  // namespace warploom::layout
