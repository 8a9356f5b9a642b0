#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>

#include "tile/machine.h"
#include "tile/shape.h"

namespace warploom::tile {
namespace {

double saturated(double value, double low, double high) {
  if (std::isnan(value)) return 0;
  return std::trunc(std::fmin(std::fmax(value, low), high));
}

bool divides_by_zero(const Index& index, const std::map<std::string, std::int64_t>& variables) {
  if (index.op() == IndexOp::constant || index.op() == IndexOp::variable) return false;
  if (divides_by_zero(index.left(), variables) || divides_by_zero(index.right(), variables)) return true;
  return (index.op() == IndexOp::div || index.op() == IndexOp::mod) && index.right().evaluate(variables) < 1;
}

// Walks the elements of a tile in row-major order.
class Walk {
 public:
  static Result<Walk> begin(const Site& site, const Tile& tile) {
    const Tensor& tensor = site.program.tensor(tile.tensor);
    Walk walk;
    walk.shape_ = &tensor.shape;
    walk.extent_ = &tile.extent;
    walk.strides_ = tensor.scope == Scope::global ? tensor.strides : dense_strides(tensor.shape);
    for (const Index& offset : tile.offset) {
      WARPLOOM_TRY(const std::int64_t at, value_of(site, offset));
      walk.start_.push_back(at);
    }
    walk.at_.assign(tile.extent.size(), 0);
    return walk;
  }

  bool inside() const {
    for (std::size_t i = 0; i < at_.size(); ++i)
      if (coordinate(i) < 0 || coordinate(i) >= (*shape_)[i]) return false;
    return true;
  }
  // The element's place in the tensor's memory; of use only inside.
  std::size_t place() const {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < at_.size(); ++i) place += coordinate(i) * strides_[i];
    return static_cast<std::size_t>(place);
  }
  std::vector<std::int64_t> coordinates() const {
    std::vector<std::int64_t> result;
    for (std::size_t i = 0; i < at_.size(); ++i) result.push_back(coordinate(i));
    return result;
  }
  void next() {
    for (std::size_t i = at_.size(); i-- > 0;) {
      if (++at_[i] < (*extent_)[i]) return;
      at_[i] = 0;
    }
  }

 private:
  // Unsigned, so that a nonsensical offset wraps to somewhere outside.
  std::int64_t coordinate(std::size_t i) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start_[i]) + static_cast<std::uint64_t>(at_[i]));
  }
  const std::vector<std::int64_t>*shape_ = nullptr, *extent_ = nullptr;
  std::vector<std::int64_t> strides_, start_, at_;
};

std::string element(const Tensor& tensor, const Walk& walk) {
  return fmt::format("{}[{}]", tensor.name, fmt::join(walk.coordinates(), ", "));
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

double rounded(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::f64: return value;
    case Dtype::f32: return static_cast<float>(value);
    case Dtype::i64: return saturated(value, -0x1p63, 0x1p63 - 1024);  // the largest double below 2^63
    case Dtype::i32: return saturated(value, -0x1p31, 0x1p31 - 1);
    case Dtype::i8: return saturated(value, -128, 127);
    case Dtype::u8: return saturated(value, 0, 255);
    case Dtype::boolean: return value != 0 ? 1 : 0;
    default: break;
  }
  double bits = 0;  // room for any type
  store_from_double(dtype, &bits, 0, value);
  return load_as_double(dtype, &bits, 0);
}

Result<std::int64_t> value_of(const Site& site, const Index& index) {
  if (divides_by_zero(index, site.block.variables))
    return undefined(site, fmt::format("'{}' divides by a number below 1", index.text()));
  return index.evaluate(site.block.variables);
}

Result<std::vector<double>> read_tile(const Site& site, const Tile& tile, double fill) {
  const Tensor& tensor = site.program.tensor(tile.tensor);
  WARPLOOM_TRY(Walk walk, Walk::begin(site, tile));
  std::vector<double> values(static_cast<std::size_t>(element_count(tile.extent)));
  const void* bytes = tensor.scope == Scope::global ? site.buffers.at(tensor.name).data() : nullptr;
  const Storage* storage = site.block.tensors[static_cast<std::size_t>(tile.tensor)].get();
  for (double& value : values) {
    const bool inside = walk.inside();
    if (bytes) {
      value = inside ? load_as_double(tensor.dtype, bytes, walk.place()) : fill;
    } else {
      if (!inside) return undefined(site, fmt::format("{} is read outside the tensor", element(tensor, walk)));
      const std::size_t place = walk.place();
      if (!storage || !storage->written[place])
        return undefined(site, fmt::format("{} is read and was never written", element(tensor, walk)));
      value = storage->values[place];
    }
    walk.next();
  }
  return values;
}

Status write_tile(const Site& site, const Tile& tile, const std::vector<double>& values) {
  const Tensor& tensor = site.program.tensor(tile.tensor);
  WARPLOOM_TRY(Walk walk, Walk::begin(site, tile));
  void* bytes = tensor.scope == Scope::global ? site.buffers.at(tensor.name).data() : nullptr;
  Storage* storage = bytes ? nullptr : &storage_to_write(site, tile.tensor);
  for (const double value : values) {
    const bool inside = walk.inside();
    if (bytes) {
      if (inside) store_from_double(tensor.dtype, bytes, walk.place(), rounded(tensor.dtype, value));
    } else {
      if (!inside) return undefined(site, fmt::format("{} is written outside the tensor", element(tensor, walk)));
      storage->values[walk.place()] = rounded(tensor.dtype, value);
      storage->written[walk.place()] = 1;
    }
    walk.next();
  }
  return ok();
}

Result<std::vector<double>> read_all(const Site& site, TensorId tensor) {
  return read_tile(site, whole(site.program, tensor), 0);
}
Status write_all(const Site& site, TensorId tensor, const std::vector<double>& values) {
  return write_tile(site, whole(site.program, tensor), values);
}

}  // namespace warploom::tile
