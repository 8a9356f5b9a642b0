// Integer layouts: functions from an index to an integer, written shape:stride.
//
// A Layout is a tree. A leaf is a mode extent:stride, the function i -> i * stride on [0, extent); an inner node is a list of
// layouts and adds what they give. An index runs through the leaves from left to right, the first leaf fastest. The idea of
// nested shapes and strides is that of CuTe (NVIDIA CUTLASS documentation, "CuTe layouts").
//
// Worked example: ((2,2),4):((1,8),2) has size 16, cosize 16, rank 2.
//   index 3 is coordinate ((1,1),0): 1*1 + 1*8 + 0*2 = 9
//   index 16 would be one past the end; the last leaf simply runs on beyond its extent
//
// Extents are at least 1, strides at least 0 (0 is replication: many indices, one integer). algebra.h combines layouts.
#pragma once
#include <vector>
#include "base/error.h"
namespace warploom::layout {
// One leaf of a layout.
struct Mode {
  std::int64_t extent = 1, stride = 0;
  friend bool operator==(const Mode&, const Mode&) = default;
};

class Layout {
 public:
  Layout() = default;  // 1:0
  Layout(std::int64_t extent, std::int64_t stride) : mode_{extent, stride} {}
  static Layout list(std::vector<Layout> parts);       // side by side: size multiplies, integers add
  static Layout flat(const std::vector<Mode>& modes);  // a list of leaves; one mode is a leaf, none is 1:0

  bool is_leaf() const { return leaf_; }
  const Mode& mode() const { return mode_; }                   // of a leaf
  const std::vector<Layout>& parts() const { return parts_; }  // of a list
  const Layout& part(int i) const;                             // the i-th top-level part; a leaf is its own part 0

  int rank() const;                 // number of top-level parts, 1 for a leaf
  std::int64_t size() const;        // product of the extents
  std::int64_t cosize() const;      // one past the largest integer reached
  std::vector<Mode> modes() const;  // the leaves from left to right
  std::int64_t operator()(std::int64_t index) const;

  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  bool leaf_ = true;
  Mode mode_;
  std::vector<Layout> parts_;
};

// The same function on [0, size), flat, with as few leaves as there can be: drops extents of 1, joins a leaf with its left
// neighbour when its stride is the neighbour's extent times stride. (2,(1,6)):(1,(6,2)) → 12:1.
Layout coalesce(const Layout& layout);

// coalesce after dropping every leaf of stride 0: the same set of integers, each reached once where the rest is injective.
//   (2,4,8):(1,0,2) → 16:1
Layout filter(const Layout& layout);

std::string to_string(const Layout& layout);  // "((2,2),4):((1,8),2)"
// Reads what to_string writes, spaces allowed. kLayout for anything else.
Result<Layout> parse_layout(std::string_view text);

// The error of every operation of this room: ErrorCode::kLayout.
tl::unexpected<Error> layout_error(std::string message, std::string expected, std::string found);
}  // namespace warploom::layout
