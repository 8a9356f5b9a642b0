// Tiles of a nest: the boxes of global tensors that a block of a nest's axes touches, and programs
// made of them.
//
// A block takes `extent[a]` elements along every axis a, from origin[a] on. Of a tensor that is a
// box, where each of its dimensions follows at most one axis of extent above 1; its dimensions are
// declared so that those that follow `axes` come last, in that order. So x at {ci, 2p + kh - 1, 2q
// + kw - 1}, axes (ci, p, q) of extents (16, 8, 16), is X[ci +16, 2p + kh - 1 +8 by 2, 2q + kw - 1
// +16 by 2].
#pragma once
#include "kernels/family.h"
#include "tile/build.h"

namespace warploom::kernels {
using tile::Index, tile::TensorId, tile::Value;  // programs are made of them throughout

inline int64_t power_of_two_above(int64_t a) {
  return static_cast<int64_t>(std::bit_ceil(at(a)));
}

// A program under construction with the record of which buffer each of its global tensors is.
struct KernelBuilder {
  explicit KernelBuilder(const std::string& name) : b(name) {}

  tile::Builder b;
  std::map<std::string, std::string> buffers;
  std::map<std::string, TensorId> named;    // tensors that several pieces share
  std::map<std::string, TensorId> lookups;  // indices of gathers, by the graph's names
  std::vector<BufferSpec> workspaces;
  int64_t role = 0;  // of several that compute alike, each in registers of its own

  static std::string name(const std::string& stem, int64_t role) {
    return role ? fmt::format("{}{}", stem, role) : stem;
  }

  TensorId reg(const std::string& stem, Dtype dtype,
               const std::vector<int64_t>& shape);  // the role's of that name
  TensorId workspace(const std::string& name, const std::string& buffer, Dtype dtype,
                     const std::vector<int64_t>& shape);
  void finish(Family::Programs& out);
};

using AxisIfAny = std::optional<size_t>;
// Those of them that there are.
std::vector<size_t> axes_of(std::initializer_list<AxisIfAny> axes);

struct TileCoord {
  std::vector<Index> origin;    // one an axis of the nest
  std::vector<int64_t> extent;  // likewise: 1 unless given

  explicit TileCoord(const LoopNest& nest,
                     std::initializer_list<std::pair<AxisIfAny, int64_t>> extents = {});
  int64_t count(const LoopNest& nest,
                const std::vector<size_t>& axes) const;  // of tiles along them
  void place(const LoopNest& nest, const std::vector<size_t>& axes,
             const Index& number);              // the last axis fastest
  Index first(const Affine& coordinate) const;  // what it is at the origin
  // Of the slots from begin to end along axis k, taken `turns` at a time, those with terms at which
  // none of the bounds is below 0; none where the first is not before the last.
  std::pair<Index, Index> slots_within(const std::vector<Affine>& bounds, size_t k, Index begin,
                                       Index end, int64_t turns = 1) const;
  // A coordinate as a number, over the elements of a register tensor with a dimension for each of
  // these axes.
  Value value_at(const Affine& coordinate, const std::vector<size_t>& axes) const;
};

// An access as a global tensor of a program, declared when the first of its name is made (what it
// is gathered by as another one), and its boxes.
class TensorTile {
 public:
  TensorTile(KernelBuilder& draft, const std::string& name, const LoopNest& nest,
             const Access& access, const std::vector<size_t>& axes, bool output = false);
  tile::Tile at(const TileCoord& where) const;

 private:
  KernelBuilder* draft_;
  Access access_;
  std::vector<size_t> dims_;  // of the access, in the order of the tensor's
  TensorId tensor_;
};
}  // namespace warploom::kernels
