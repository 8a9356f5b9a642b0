// Statements on whole numbers: loops over their elements, which the compiler makes vectors of. An
// array holds those of i32 and i64 as long long, of 8 bits as float; what is stored wraps to the
// tensor's type.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/integers.h"
#include "base/value_op.h"
#include "codegen/cpu_emitter.h"
#include "codegen/terms.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
constexpr size_t kNone = as_size(-1);
}  // namespace

std::string whole_element(const std::string& pointer) {
  return fmt::format("static_cast<long long>(*({}))", pointer);
}

// As an element of the tensor's type, however its array or the memory holds it.
std::string CpuEmitter::stored_whole(TensorId id, const std::string& value) const {
  const Dtype dtype = tensor(id).dtype;
  if (dtype == Dtype::i64) return value;
  if (dtype == Dtype::boolean) return fmt::format("({}) != 0 ? 1 : 0", value);
  return fmt::format("static_cast<{}>({})", cpu_type(dtype), value);
}

std::string CpuEmitter::whole_text(const Value& value, const Map& map,
                                   const std::vector<Loop>& loops) {
  if (value.kind == Value::Kind::constant)
    return whole_literal(saturated_integer(Dtype::i64, value.constant));
  if (value.kind == Value::Kind::tensor) return whole_element(element(value.tensor, loops));
  if (value.kind == Value::Kind::coordinate) {
    Index at = value.shift;
    for (const Loop& loop : loops)
      if (as_int(loop.dim) == value.axis) at = at + Index::variable(loop.variable);
    return fmt::format("static_cast<long long>({})", at.text());
  }
  std::vector<std::string> operands;
  for (const Value& operand : value.operands)
    operands.push_back(whole_text(operand, map, loops));
  const std::string name = fresh("w");
  out_.line("const long long {} = wl::integers::{}({});", name, name_of(value.op),
            fmt::join(operands, ", "));
  return name;
}

void CpuEmitter::whole_numbers(const Map& map) {
  const auto loops = open_loops(tensor(map.dst).shape, kNone, kNone);
  out_.open("{{");
  const Writer::Block around{out_, loops.size() + 1};
  const std::string value = whole_text(map.value, map, loops);
  out_.line("*({}) = {};", element(map.dst, loops), stored_whole(map.dst, value));
}

void CpuEmitter::whole_numbers(const Fill& fill) {
  const auto loops = open_loops(tensor(fill.dst).shape, kNone, kNone);
  const Writer::Block around{out_, loops.size()};
  const int64_t value = saturated_integer(tensor(fill.dst).dtype, fill.value);
  out_.line("*({}) = {};", element(fill.dst, loops), whole_literal(value));
}

// Scans and reductions along an axis, one line after another.
template <class Node> void CpuEmitter::whole_numbers_along(const Node& node) {
  constexpr bool kEach = std::is_same_v<Node, Scan>;
  bool reverse = false;
  if constexpr (kEach) reverse = node.reverse;
  const auto& shape = tensor(node.src).shape;
  const Reduction& how = reduction_of(node.op);
  const auto axis = as_size(node.axis);
  const auto outer = open_loops(shape, axis, kNone);
  out_.open("{{");
  const Writer::Block around{out_, outer.size() + 1};
  const std::string total = fresh("t");
  const std::string k = fresh("k");
  std::vector<Loop> inner = outer;
  inner.push_back({k, shape[axis], axis});
  const std::string start = whole_literal(saturated_integer(Dtype::i64, how.identity));
  out_.line("long long {} = {};", total, start);
  const auto keep = [&](const std::vector<Loop>& loops) {
    out_.line("*({}) = {};", element(node.dst, loops), stored_whole(node.dst, total));
  };
  {
    const auto turns = turns_along(k, shape[axis], reverse);
    const std::string value = whole_element(element(node.src, inner));
    out_.line("{0} = wl::integers::{1}({0}, {2});", total, name_of(how.combine), value);
    if (kEach) keep(inner);
  }
  if (!kEach) keep(outer);
}

template void CpuEmitter::whole_numbers_along(const Reduce& node);
template void CpuEmitter::whole_numbers_along(const tile::Scan& node);
}  // namespace warploom::codegen
