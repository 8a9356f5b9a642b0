// Tensors that an epilogue reads beside the sum: biases, residuals, scales.
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>
#include "kernels/kernel_builder.h"
#include "kernels/pieces/epilogue.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "tile/program.h"

namespace warploom::kernels {
using tile::Tile;

std::vector<int64_t> shape_of(const TileCoord& tile, const std::vector<size_t>& axes, size_t rows,
                              const std::function<bool(size_t)>& uses) {
  std::vector<int64_t> shape = {1, 1};
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = uses(axes[i]) ? tile.extent[axes[i]] : 1;
    shape[i < rows ? 0 : 1] *= extent;
  }
  return shape;
}

TensorId load_beside(KernelBuilder& draft, const Contraction& c, const std::string& name,
                     const Access& access, const TileCoord& tile, const std::vector<size_t>& axes,
                     size_t rows, const std::string& set) {
  std::string global = name;
  global[0] = static_cast<char>(std::toupper(name[0]));
  const auto uses = [&](size_t axis) { return access.uses(axis); };
  const auto shape = shape_of(tile, axes, rows, uses);
  const TensorId x = draft.reg(name + set, access.dtype, shape);
  const Tile from = TensorTile(draft, global, c.nest, access, axes).at(tile);
  draft.b.copy(from, draft.b.all(x), access.padding_value);
  return x;
}
}  // namespace warploom::kernels
