// Tiles of a nest: the boxes of global tensors that a block of a nest's axes touches, and kernels
// made of them.
//
// A block takes extent[a] elements along every axis a, from origin[a] on. Of a tensor that is a
// box, where each of its dimensions follows at most one axis of extent above 1. Its dimensions are
// declared so that those that follow the tile's axes come last, in their order. Worked example:
//
//   x at {ci, 2p + kh - 1, 2q + kw - 1}, tile axes (ci, p, q) of extents (16, 8, 16)
//   → X[ci +16, 2p + kh - 1 +8 by 2, 2q + kw - 1 +16 by 2]
#pragma once
#include <fmt/format.h>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "codegen/launch_list.h"
#include "kernels/family.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
using tile::Index, tile::TensorId, tile::Value;  // programs are made of them throughout

inline int64_t power_of_two_above(int64_t a) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(a)));
}

// A program under construction with the record of which buffer each of its global tensors is.
struct KernelBuilder {
  explicit KernelBuilder(const std::string& name) : b(name) {}

  tile::Builder b;
  std::map<std::string, std::string> buffers;      // by the name of a global tensor
  std::map<std::string, TensorId> named;           // tensors that several pieces share
  std::map<std::string, TensorId> gather_indices;  // by the graph's names
  std::vector<BufferSpec> workspaces;
  int64_t role = 0;  // of several that compute alike, each in registers of its own

  static std::string name(const std::string& stem, int64_t role) {
    return role ? fmt::format("{}{}", stem, role) : stem;
  }

  // The role's register tensor of that name, declared when it is first asked for.
  TensorId reg(const std::string& stem, Dtype dtype, const std::vector<int64_t>& shape);
  TensorId workspace(const std::string& name, const std::string& buffer, Dtype dtype,
                     const std::vector<int64_t>& shape);
  void finish(Family::Programs& out);
};

using AxisIfAny = std::optional<size_t>;
// Those of them that there are.
std::vector<size_t> axes_of(std::initializer_list<AxisIfAny> axes);

struct TileCoord {
  std::vector<Index> origin;    // by axis of the nest
  std::vector<int64_t> extent;  // likewise: 1 unless given

  explicit TileCoord(const LoopNest& nest,
                     std::initializer_list<std::pair<AxisIfAny, int64_t>> extents = {});

  int64_t count(const LoopNest& nest,
                const std::vector<size_t>& axes) const;  // of tiles along them
  // Goes to the tile of that number along the axes, the last axis fastest.
  void place(const LoopNest& nest, const std::vector<size_t>& axes, const Index& number);
  // The same of so many tiles along each of the axes, which need not be all of an axis.
  void place(const std::vector<size_t>& axes, const std::vector<int64_t>& tiles,
             const Index& number);
  Index first(const Affine& coordinate) const;  // its value at the origin
  // Of the blocks of k from begin to end along axis k, taken `turns` at a time, those with terms at
  // which none of the constraints is below 0; none where the first is not before the last.
  std::pair<Index, Index> stages_within(const std::vector<Affine>& constraints, size_t k,
                                        Index begin, Index end, int64_t turns = 1) const;
  // A coordinate as a number, over the elements of a register tensor with a dimension for each of
  // these axes.
  Value value_at(const Affine& coordinate, const std::vector<size_t>& axes) const;

 private:
  // The greatest value of a coordinate within the tile, axis k apart.
  Index largest_but_for(const Affine& coordinate, size_t k) const;
};

// An access as a global tensor of a program, and its boxes. The tensor is declared when the first
// of its name is made, what it is gathered by as another one.
class TensorTile {
 public:
  TensorTile(KernelBuilder& draft, const std::string& name, const LoopNest& nest,
             const Access& access, const std::vector<size_t>& axes, bool output = false);
  tile::Tile at(const TileCoord& where) const;

 private:
  void declare(const std::string& name, const LoopNest& nest, bool output);
  void declare_gather_indices();

  KernelBuilder* draft_;
  Access access_;
  std::vector<size_t> dims_;  // of the access, in the order of the tensor's
  TensorId tensor_ = -1;
};
}  // namespace warploom::kernels
