// Elements of tiles: where they lie, what they hold, values computed from them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/value_op.h"
#include "tile/block_interpreter.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::tile {
namespace {
Number load_number(Dtype dtype, const void* data, size_t place) {
  if (!is_integer(dtype)) return load_as_double(dtype, data, place);
  return static_cast<Number>(load_integer(dtype, data, as_int64(place)));
}

// As the type holds it: a whole number of a tensor of integers wraps, any other is rounded.
Number stored_number(Dtype dtype, Number value, bool whole) {
  if (!is_integer(dtype)) return rounded(dtype, as_double(value));
  const auto number = as_double(value);
  if (!whole) return static_cast<Number>(saturated_integer(dtype, number));
  return static_cast<Number>(wrapped_integer(dtype, as_int64(value)));
}

void store_number(Dtype dtype, void* data, size_t place, Number value) {
  if (is_integer(dtype))
    store_integer(dtype, data, as_int64(place), as_int64(value));
  else
    store_from_double(dtype, data, place, as_double(value));
}
}  // namespace

// Calls visit(place, coordinates) for each element of a tile in row-major order; no place where
// it lies outside the tensor.
Status BlockInterpreter::for_elements(const Tile& tile, const auto& visit) const {
  const Tensor& tensor = program_.tensor(tile.tensor);
  const auto strides = tensor.strides.empty() ? dense_strides(tensor.shape) : tensor.strides;
  std::vector<int64_t> start;
  std::vector<int64_t> element(tile.extent.size(), 0);
  std::vector<int64_t> at = element;
  for (const Index& offset : tile.offset) {
    WARPLOOM_TRY(start.emplace_back(), value_of(offset));
  }
  const Tensor* lookup = tile.lookup < 0 ? nullptr : &program_.tensor(tile.lookup);
  const auto looked_up = [&](int64_t i, int64_t size) -> int64_t {
    if (i < 0 || i >= lookup->shape[0]) return -1;
    const auto place = as_size(i * lookup->strides[0]);
    const void* const numbers = buffers_.at(lookup->name).data();
    const auto found = as_int64(load_as_double(lookup->dtype, numbers, place));
    return found < 0 ? found + size : found;
  };
  for (int64_t left = element_count(tile.extent); left > 0; --left) {
    std::optional<size_t> place = as_size(tensor.from);
    for (size_t i = 0; i < at.size(); ++i) {
      // Unsigned, so that a nonsensical offset wraps to somewhere outside.
      const auto first = as_uint64(start[i]);
      const auto further = as_uint64(element[i] * tile.step_along(i));
      at[i] = as_int64(first + further);
      if (tile.gathered_along(i)) at[i] = looked_up(at[i], tensor.shape[i]);
      if (at[i] < 0 || at[i] >= tensor.shape[i])
        place.reset();
      else if (place)
        *place += as_size(at[i] * strides[i]);
    }
    WARPLOOM_CHECK(visit(place, at));
    for (size_t i = element.size(); i-- > 0 && ++element[i] == tile.extent[i];)
      element[i] = 0;
  }
  return ok();
}

// A tile's elements in row-major order, of what `holder` holds; `fill` stands for those outside a
// global tensor.
Result<Values> BlockInterpreter::read(const Tile& tile, double fill,
                                      const BlockInterpreter& holder) const {
  const Tensor& tensor = program_.tensor(tile.tensor);
  const void* bytes = nullptr;
  if (tensor.scope == Scope::global) bytes = buffers_.at(tensor.name).data();
  const Storage& storage = holder.tensors_[tensor.as_strided < 0 ? tile.tensor : tensor.as_strided];
  Values values;
  const auto read_element = [&](std::optional<size_t> place, const auto& at) -> Status {
    if (!bytes && !(place && storage && (*storage)[*place])) {
      const char* const why = place ? "and was never written" : "outside the tensor";
      const std::string element = fmt::format("{}[{}]", tensor.name, fmt::join(at, ", "));
      return undefined(fmt::format("{} is read {}", element, why));
    }
    if (!place)
      values.emplace_back(fill);
    else if (bytes)
      values.push_back(load_number(tensor.dtype, bytes, *place));
    else
      values.push_back(*(*storage)[*place]);
    return ok();
  };
  WARPLOOM_CHECK(for_elements(tile, read_element));
  return values;
}

// `combine`: with what a global tensor holds; `whole`: numbers of integers.
Status BlockInterpreter::write(const Tile& tile, const Values& values, bool whole,
                               std::optional<ReduceOp> combine) {
  const Tensor& tensor = program_.tensor(tile.tensor);
  void* bytes = nullptr;
  if (tensor.scope == Scope::global) bytes = buffers_.at(tensor.name).data();
  Storage& storage = tensors_[tile.tensor];
  if (!bytes && !storage)
    storage = std::make_shared<Storage::element_type>(element_count(tensor.shape));
  auto value = values.begin();
  return for_elements(tile, [&](std::optional<size_t> place, const auto& at) -> Status {
    Number stored = *value++;
    if (combine && place) {
      const double held = load_as_double(tensor.dtype, bytes, *place);
      const ValueOp op = reduction_of(*combine).combine;
      stored = apply(op, held, as_double(stored));
    }
    stored = stored_number(tensor.dtype, stored, whole);
    if (bytes && place) store_number(tensor.dtype, bytes, *place, stored);
    if (bytes) return ok();
    if (!place)
      return undefined(
          fmt::format("{}[{}] is written outside the tensor", tensor.name, fmt::join(at, ", ")));
    (*storage)[*place] = stored;
    return ok();
  });
}

Status BlockInterpreter::write(TensorId tensor, const Values& values, bool whole_numbers) {
  return write(whole(program_, tensor), values, whole_numbers);
}

// A value at each element of a shape in row-major order.
Result<std::vector<float>> BlockInterpreter::evaluate(const Value& value,
                                                      const std::vector<int64_t>& shape) const {
  const auto strides = dense_strides(shape);
  std::vector<float> out(element_count(shape), as_float(value.constant));
  const auto fill = [&](const auto& at) {
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = as_float(at(i));
  };
  const auto along = [&](size_t i, size_t d) { return as_int64(i) / strides[d] % shape[d]; };
  if (value.kind == Value::Kind::tensor) {
    const auto& own = program_.tensor(value.tensor).shape;
    const auto steps = dense_strides(own);
    WARPLOOM_TRY(const Values held, read(value.tensor));
    fill([&](size_t i) {
      int64_t place = 0;
      for (size_t d = 0; d < own.size(); ++d)
        place += own[d] == 1 ? 0 : along(i, d) * steps[d];
      return as_float(held[place]);
    });
  } else if (value.kind == Value::Kind::coordinate) {
    WARPLOOM_TRY(const int64_t shift, value_of(value.shift));
    fill([&](size_t i) { return along(i, value.axis) + shift; });
  } else if (value.kind == Value::Kind::op) {
    std::array<std::vector<float>, 3> in = {out, out, out};  // 0 where the operation has fewer
    for (size_t j = 0; j < value.operands.size() && j < 3; ++j) {
      WARPLOOM_TRY(in[j], evaluate(value.operands[j], shape));
    }
    // For + - * / and square roots, rounding the fp64 result gives what fp32 arithmetic gives.
    fill([&](size_t i) -> double {
      const float a = in[0][i];
      const float b = in[1][i];
      const float c = in[2][i];
      if (value.op == ValueOp::fma) return std::fma(a, b, c);
      return apply(value.op, a, b, c);
    });
  }
  return out;
}

// The same on whole numbers.
Result<std::vector<int64_t>> BlockInterpreter::evaluate_whole(
    const Value& value, const std::vector<int64_t>& shape) const {
  const auto strides = dense_strides(shape);
  std::vector<int64_t> out(element_count(shape), saturated_integer(Dtype::i64, value.constant));
  const auto along = [&](size_t i, size_t d) { return as_int64(i) / strides[d] % shape[d]; };
  if (value.kind == Value::Kind::tensor) {
    const auto& own = program_.tensor(value.tensor).shape;
    const auto steps = dense_strides(own);
    WARPLOOM_TRY(const Values held, read(value.tensor));
    for (size_t i = 0; i < out.size(); ++i) {
      int64_t place = 0;
      for (size_t d = 0; d < own.size(); ++d)
        place += own[d] == 1 ? 0 : along(i, d) * steps[d];
      out[i] = as_int64(held[place]);
    }
  } else if (value.kind == Value::Kind::coordinate) {
    WARPLOOM_TRY(const int64_t shift, value_of(value.shift));
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = along(i, value.axis) + shift;
  } else if (value.kind == Value::Kind::op) {
    std::array<std::vector<int64_t>, 3> in = {out, out, out};
    for (size_t j = 0; j < value.operands.size() && j < 3; ++j) {
      WARPLOOM_TRY(in[j], evaluate_whole(value.operands[j], shape));
    }
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t a = in[0][i];
      const int64_t b = in[1][i];
      out[i] = apply_integers(value.op, a, b, in[2][i]);
    }
  }
  return out;
}
}  // namespace warploom::tile
