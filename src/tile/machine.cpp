#include "tile/machine.h"
#include <fmt/ranges.h>
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
  std::vector<std::int64_t> start, element(tile.extent.size(), 0), at = element;
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
      at[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(start[i]) +
                                        static_cast<std::uint64_t>(element[i] * tile.step_along(i)));
      if (lookup && static_cast<int>(i) == tile.lookup_dim) at[i] = looked_up(at[i]);
      if (at[i] < 0 || at[i] >= tensor.shape[i]) place.reset();
      else if (place) *place += static_cast<std::size_t>(at[i] * strides[i]);
    }
    WARPLOOM_CHECK(visit(place, at));
    for (std::size_t i = element.size(); i-- > 0 && ++element[i] == tile.extent[i];) element[i] = 0;
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

Status write_tile(const Site& site, const Tile& tile, const std::vector<double>& values, std::optional<ReduceOp> combine) {
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
    if (!place) return undefined(site, fmt::format("{}[{}] is written outside the tensor", tensor.name, fmt::join(at, ", ")));
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
namespace {
// A register tensor's elements as an operand of a Map: broadcast along dimensions of extent 1.
struct Operand {
  std::vector<double> values;
  std::vector<std::int64_t> strides;  // of the destination's dimensions; 0 where it broadcasts
};
using Operands = std::map<TensorId, Operand>;

Status gather(const Site& site, const Value& value, Operands& operands) {
  for (const Value& operand : value.operands) WARPLOOM_CHECK(gather(site, operand, operands));
  if (value.kind == Value::Kind::coordinate) WARPLOOM_CHECK(value_of(site, value.shift));
  if (value.kind != Value::Kind::tensor || operands.count(value.tensor)) return ok();
  const std::vector<std::int64_t>& shape = site.program.tensor(value.tensor).shape;
  Operand operand;
  WARPLOOM_TRY(operand.values, read_all(site, value.tensor));
  operand.strides = dense_strides(shape);
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 1) operand.strides[i] = 0;
  operands.emplace(value.tensor, std::move(operand));
  return ok();
}

float evaluate(const Site& site, const Value& value, const Operands& operands, const std::vector<std::int64_t>& at) {
  if (value.kind == Value::Kind::constant) return static_cast<float>(value.constant);
  if (value.kind == Value::Kind::tensor) {
    const Operand& operand = operands.at(value.tensor);
    std::int64_t place = 0;
    for (std::size_t i = 0; i < at.size(); ++i) place += at[i] * operand.strides[i];
    return static_cast<float>(operand.values[static_cast<std::size_t>(place)]);
  }
  if (value.kind == Value::Kind::coordinate)
    return static_cast<float>(at[static_cast<std::size_t>(value.axis)] + value.shift.evaluate(site.block.variables));
  float arguments[3] = {0, 0, 0};
  for (std::size_t i = 0; i < value.operands.size() && i < 3; ++i) arguments[i] = evaluate(site, value.operands[i], operands, at);
  if (value.op == ValueOp::fma) return std::fma(arguments[0], arguments[1], arguments[2]);
  // For + - * / and square roots, rounding the fp64 result gives what fp32 arithmetic gives.
  return static_cast<float>(apply(value.op, arguments[0], arguments[1], arguments[2]));
}

struct Matrix {
  std::vector<double> values;
  std::int64_t row = 0, column = 0;  // strides
  std::int64_t rows = 0, columns = 0;
  double at(std::int64_t i, std::int64_t j) const { return values[static_cast<std::size_t>(i * row + j * column)]; }
};

Result<Matrix> read_matrix(const Site& site, const Tile& tile, bool transposed) {
  const std::vector<std::int64_t> extent = matrix_extent(tile.extent);
  Matrix matrix{{}, extent[1], 1, extent[0], extent[1]};
  WARPLOOM_TRY(matrix.values, read_tile(site, tile, 0));
  if (transposed) std::swap(matrix.row, matrix.column), std::swap(matrix.rows, matrix.columns);
  return matrix;
}

// acc + a·b with an exact product and one rounding to the accumulator's type.
double accumulate(Dtype type, double acc, double a, double b) {
  if (type == Dtype::f64) return std::fma(a, b, acc);
  if (type == Dtype::f32) return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(acc));
  return static_cast<std::int32_t>(static_cast<std::int64_t>(acc) + static_cast<std::int64_t>(a) * static_cast<std::int64_t>(b));
}
}  // namespace
Status run(const Site& site, const Site& source, const Copy& copy) {
  WARPLOOM_TRY(const std::vector<double> values, read_tile(source, copy.src, copy.fill));
  return write_tile(site, copy.dst, values, copy.combine);
}

Status run(const Site& site, const Signal& signal) {
  WARPLOOM_TRY(const std::vector<double> flag, read_tile(site, signal.flag, 0));
  WARPLOOM_TRY(const std::int64_t by, value_of(site, signal.by));
  return write_tile(site, signal.flag, {flag[0] + static_cast<double>(by)});
}

// Blocks run one after another, so that only those before this one can have signalled.
Status run(const Site& site, const Wait& wait) {
  WARPLOOM_TRY(const std::vector<double> flag, read_tile(site, wait.flag, 0));
  WARPLOOM_TRY(const std::int64_t least, value_of(site, wait.least));
  if (flag[0] >= static_cast<double>(least)) return ok();
  return undefined(site,
                   fmt::format("a wait for '{}' that no block before this one ends", site.program.tensor(wait.flag.tensor).name),
                   fmt::format("at least {}", least), fmt::format("{}", flag[0]));
}

Status run(const Site& site, const Fill& fill) {
  const std::int64_t count = element_count(site.program.tensor(fill.dst).shape);
  return write_all(site, fill.dst, std::vector<double>(static_cast<std::size_t>(count), fill.value));
}

Status run(const Site& site, const Map& map) {
  const std::vector<std::int64_t>& shape = site.program.tensor(map.dst).shape;
  Operands operands;
  WARPLOOM_CHECK(gather(site, map.value, operands));
  std::vector<double> results(static_cast<std::size_t>(element_count(shape)));
  std::vector<std::int64_t> at(shape.size(), 0);
  for (double& result : results) {
    result = evaluate(site, map.value, operands, at);
    for (std::size_t i = at.size(); i-- > 0 && ++at[i] == shape[i];) at[i] = 0;
  }
  return write_all(site, map.dst, results);
}

Status run(const Site& site, const Mma& mma) {
  WARPLOOM_TRY(const Matrix a, read_matrix(site, mma.a, mma.transpose_a));
  WARPLOOM_TRY(const Matrix b, read_matrix(site, mma.b, mma.transpose_b));
  WARPLOOM_TRY(std::vector<double> acc, read_all(site, mma.acc));
  const Dtype type = site.program.tensor(mma.acc).dtype;
  for (std::int64_t m = 0; m < a.rows; ++m)
    for (std::int64_t k = 0; k < a.columns; ++k)
      for (std::int64_t n = 0; n < b.columns; ++n) {
        double& sum = acc[static_cast<std::size_t>(m * b.columns + n)];
        sum = accumulate(type, sum, a.at(m, k), b.at(k, n));
      }
  return write_all(site, mma.acc, acc);
}

ValueOp value_op_of(ReduceOp op) {
  constexpr ValueOp kOps[] = {ValueOp::add, ValueOp::max, ValueOp::min};
  return kOps[static_cast<std::size_t>(op)];
}

float combine(ReduceOp op, float a, float b) { return static_cast<float>(apply(value_op_of(op), a, b)); }

Status run(const Site& site, const Reduce& reduce) {
  const std::vector<std::int64_t>& shape = site.program.tensor(reduce.src).shape;
  const auto axis = static_cast<std::size_t>(reduce.axis);
  const auto length = static_cast<std::size_t>(shape[axis]);
  const auto inner = static_cast<std::size_t>(dense_strides(shape)[axis]);
  WARPLOOM_TRY(const std::vector<double> values, read_all(site, reduce.src));
  std::vector<double> results(values.size() / length);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::size_t first = i / inner * inner * length + i % inner;
    auto sum = static_cast<float>(values[first]);
    for (std::size_t k = 1; k < length; ++k) sum = combine(reduce.op, sum, static_cast<float>(values[first + k * inner]));
    results[i] = sum;
  }
  return write_all(site, reduce.dst, results);
}

Status run(const Site& site, const Scan& scan) {
  const std::vector<std::int64_t>& shape = site.program.tensor(scan.src).shape;
  const auto axis = static_cast<std::size_t>(scan.axis);
  const auto length = static_cast<std::size_t>(shape[axis]);
  const auto inner = static_cast<std::size_t>(dense_strides(shape)[axis]);
  WARPLOOM_TRY(std::vector<double> values, read_all(site, scan.src));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i / inner % length == 0) values[i] = static_cast<float>(values[i]);
    else values[i] = combine(scan.op, static_cast<float>(values[i - inner]), static_cast<float>(values[i]));
  }
  return write_all(site, scan.dst, values);
}

Status run(const Site& site, const Rearrange& rearrange) {
  WARPLOOM_TRY(const std::vector<double> values, read_all(site, rearrange.src));
  if (!rearrange.transpose) return write_all(site, rearrange.dst, values);
  const auto columns = static_cast<std::size_t>(site.program.tensor(rearrange.src).shape[1]);
  const std::size_t rows = values.size() / columns;
  std::vector<double> transposed;
  for (std::size_t i = 0; i < values.size(); ++i) transposed.push_back(values[i % rows * columns + i / rows]);
  return write_all(site, rearrange.dst, transposed);
}

Status run(const Site& site, const Reinterpret& reinterpret) {
  WARPLOOM_TRY(std::vector<double> values, read_all(site, reinterpret.src));
  const Tensor &src = site.program.tensor(reinterpret.src), &dst = site.program.tensor(reinterpret.dst);
  std::vector<std::byte> bytes(values.size());  // at most a byte each
  for (std::size_t i = 0; i < values.size(); ++i) store_from_double(src.dtype, bytes.data(), i, values[i]);
  values.resize(static_cast<std::size_t>(element_count(dst.shape)));
  load_run(dst.dtype, bytes.data(), 0, 1, static_cast<std::int64_t>(values.size()), values.data());
  return write_all(site, reinterpret.dst, values);
}
}  // namespace warploom::tile
