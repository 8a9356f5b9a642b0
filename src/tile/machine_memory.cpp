#include <fmt/ranges.h>
#include "tile/machine.h"
#include "tile/shape.h"

namespace warploom::tile {
namespace {

bool divides_by_zero(const Index& index, const std::map<std::string, std::int64_t>& variables) {
  if (index.op() == IndexOp::constant || index.op() == IndexOp::variable) return false;
  if (divides_by_zero(index.left(), variables) || divides_by_zero(index.right(), variables)) return true;
  return (index.op() == IndexOp::div || index.op() == IndexOp::mod) && index.right().evaluate(variables) < 1;
}

// Calls visit(place, coordinates) for each element of a tile in row-major order; no place where it lies outside the tensor.
template <class Visit>
Status for_elements(const Site& site, const Tile& tile, const Visit& visit) {
  const Tensor& tensor = site.program.tensor(tile.tensor);
  const auto strides = tensor.scope == Scope::global ? tensor.strides : dense_strides(tensor.shape);
  std::vector<std::int64_t> start, step(tile.extent.size(), 0), at = step;
  for (const Index& offset : tile.offset) { WARPLOOM_TRY(start.emplace_back(), value_of(site, offset)); }
  const Tensor* lookup = tile.lookup < 0 ? nullptr : &site.program.tensor(tile.lookup);
  const auto looked_up = [&](std::int64_t i) -> std::int64_t {
    if (i < 0 || i >= lookup->shape[0]) return -1;
    const auto place = static_cast<std::size_t>(i * lookup->strides[0]);
    return static_cast<std::int64_t>(load_as_double(lookup->dtype, site.buffers.at(lookup->name).data(), place));
  };
  for (std::int64_t left = element_count(tile.extent); left > 0; --left) {
    std::optional<std::size_t> place = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      // Unsigned, so that a nonsensical offset wraps to somewhere outside.
      at[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(start[i]) + static_cast<std::uint64_t>(step[i]));
      if (lookup && static_cast<int>(i) == tile.lookup_dim) at[i] = looked_up(at[i]);
      if (at[i] < 0 || at[i] >= tensor.shape[i]) place.reset();
      else if (place) *place += static_cast<std::size_t>(at[i] * strides[i]);
    }
    WARPLOOM_CHECK(visit(place, at));
    for (std::size_t i = step.size(); i-- > 0 && ++step[i] == tile.extent[i];) step[i] = 0;
  }
  return ok();
}

Storage& storage_to_write(const Site& site, TensorId id) {
  std::shared_ptr<Storage>& storage = site.block.tensors[static_cast<std::size_t>(id)];
  if (!storage) {
    const auto count = static_cast<std::size_t>(element_count(site.program.tensor(id).shape));
    storage = std::make_shared<Storage>(Storage{std::vector<double>(count), std::vector<std::uint8_t>(count)});
  }
  return *storage;
}

}  // namespace

tl::unexpected<Error> undefined(const Site& site, std::string message, std::string expected, std::string found) {
  const auto& at = site.block.variables;
  return fail({ErrorCode::kTileRuntime,
               fmt::format("{} (block {}, {}, {})", message, at.at("block_x"), at.at("block_y"), at.at("block_z")),
               fmt::format("{}:{}", site.location.file, site.location.line), std::move(expected), std::move(found),
               "follow the statements that should have made the value"});
}

Result<std::int64_t> value_of(const Site& site, const Index& index) {
  if (divides_by_zero(index, site.block.variables))
    return undefined(site, fmt::format("'{}' divides by a number below 1", index.text()));
  return index.evaluate(site.block.variables);
}

Result<std::vector<double>> read_tile(const Site& site, const Tile& tile, double fill) {
  const Tensor& tensor = site.program.tensor(tile.tensor);
  std::vector<double> values;
  const void* bytes = tensor.scope == Scope::global ? site.buffers.at(tensor.name).data() : nullptr;
  const Storage* storage = site.block.tensors[static_cast<std::size_t>(tile.tensor)].get();
  WARPLOOM_CHECK(for_elements(site, tile, [&](std::optional<std::size_t> place, const auto& at) -> Status {
    const bool written = bytes || (place && storage && storage->written[*place]);
    if (!written)
      return undefined(site, fmt::format("{}[{}] is read {}", tensor.name, fmt::join(at, ", "),
                                         place ? "and was never written" : "outside the tensor"));
    values.push_back(!place ? fill : bytes ? load_as_double(tensor.dtype, bytes, *place) : storage->values[*place]);
    return ok();
  }));
  return values;
}

Status write_tile(const Site& site, const Tile& tile, const std::vector<double>& values,
                  std::optional<ReduceOp> combine) {
  const Tensor& tensor = site.program.tensor(tile.tensor);
  void* bytes = tensor.scope == Scope::global ? site.buffers.at(tensor.name).data() : nullptr;
  Storage* storage = bytes ? nullptr : &storage_to_write(site, tile.tensor);
  auto value = values.begin();
  return for_elements(site, tile, [&](std::optional<std::size_t> place, const auto& at) -> Status {
    double stored = *value++;
    if (combine && place) stored = apply(value_op_of(*combine), load_as_double(tensor.dtype, bytes, *place), stored);
    stored = rounded(tensor.dtype, stored);
    if (bytes && place) store_from_double(tensor.dtype, bytes, *place, stored);
    if (bytes) return ok();
    if (!place)
      return undefined(site, fmt::format("{}[{}] is written outside the tensor", tensor.name, fmt::join(at, ", ")));
    storage->values[*place] = stored;
    storage->written[*place] = 1;
    return ok();
  });
}

Result<std::vector<double>> read_all(const Site& site, TensorId tensor) {
  return read_tile(site, whole(site.program, tensor), 0);
}
Status write_all(const Site& site, TensorId tensor, const std::vector<double>& values) {
  return write_tile(site, whole(site.program, tensor), values);
}

}  // namespace warploom::tile
