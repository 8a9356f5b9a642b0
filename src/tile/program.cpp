#include "tile/program.h"

#include "tile/shape.h"

namespace warploom::tile {

Tile whole(const Program& program, TensorId id) {
  const std::vector<std::int64_t>& shape = program.tensor(id).shape;
  return Tile{id, std::vector<Index>(shape.size(), Index(0)), shape};
}

std::vector<std::int64_t> squeezed(const std::vector<std::int64_t>& extent) {
  std::vector<std::int64_t> kept;
  for (const std::int64_t e : extent)
    if (e != 1) kept.push_back(e);
  if (kept.empty()) kept.push_back(1);
  return kept;
}

std::vector<std::int64_t> matrix_extent(std::vector<std::int64_t> extent) {
  for (std::size_t i = 0; extent.size() > 2 && i < extent.size();)
    if (extent[i] == 1) extent.erase(extent.begin() + static_cast<std::ptrdiff_t>(i));
    else ++i;
  return extent;
}

std::int64_t element_count(const std::vector<std::int64_t>& extent) {
  std::int64_t count = 1;
  for (const std::int64_t e : extent) {
    if (e < 1) return 0;
    if (__builtin_mul_overflow(count, e, &count)) return -1;
  }
  return count;
}

std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::uint64_t stride = 1;  // unsigned: a nonsensical shape may wrap, and verify() refuses it
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(shape[i]);
  }
  return strides;
}

std::int64_t cluster_size(const Program& program) { return element_count(program.cluster); }

}  // namespace warploom::tile
