// Statements on register tensors: loops over vectors of their elements, and matrix products in
// blocks of registers.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "codegen/cpu_emitter.h"
#include "codegen/terms.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
size_t vector_dim_of(const std::vector<int64_t>& shape) {
  size_t dim = shape.size() - 1;
  while (dim > 0 && shape[dim] == 1) --dim;
  return dim;
}

std::string rounded(Dtype dtype, const std::string& value) {
  return is_narrow(dtype) ? fmt::format("wl::rounded<wl::{}>({})", name_of(dtype), value) : value;
}

std::vector<CpuEmitter::Loop> CpuEmitter::open_loops(const std::vector<int64_t>& shape, size_t skip,
                                                     size_t also_skip) {
  std::vector<Loop> loops;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i == skip || i == also_skip || shape[i] == 1) continue;
    loops.push_back({fresh("r"), shape[i], i});
    out_.open("for (long {0} = 0; {0} < {1}; ++{0}) {{", loops.back().variable, shape[i]);
  }
  return loops;
}

// name + Σ loop · stride, dimensions of extent 1 staying where they are.
std::string CpuEmitter::element(TensorId id, const std::vector<Loop>& loops) const {
  const auto strides = strides_of(id);
  Index sum = 0;
  for (const Loop& loop : loops)
    if (tensor(id).shape[loop.dim] > 1)
      sum = sum + Index::variable(loop.variable) * strides[loop.dim];
  return plus(name(id), sum);
}

// A local vector with the value of the text; equal texts are computed once.
std::string CpuEmitter::local(const std::string& text, const std::string& stem) {
  auto [found, added] = known_.try_emplace(text);
  if (added) out_.line("const wl::vf {} = {};", found->second = fresh(stem), text);
  return found->second;
}

// The name of a local vector with the value, or a constant.
std::string CpuEmitter::value_text(const Value& value, const LeafText& leaf,
                                   const std::string& stem) {
  if (value.kind == Value::Kind::constant)
    return fmt::format("wl::splat({})", float_text(value.constant));
  if (value.kind != Value::Kind::op) return leaf(value);
  std::vector<std::string> operands;
  for (const Value& operand : value.operands) operands.push_back(value_text(operand, leaf, stem));
  const auto call = fmt::format("wl::{}({})", name_of(value.op), fmt::join(operands, ", "));
  return local(call, stem);
}

// A vector at element v of `count`. Rows without padding between them must not be overrun.
void CpuEmitter::store(const std::string& to, const std::string& value, const std::string& v,
                       int64_t count, bool padded) {
  if (padded || count % lanes_ == 0) return out_.line("wl::store({}, {});", to, value);
  out_.line("wl::store_first({0}, {1}, {2} - {3} < wl::kLanes ? {2} - {3} : wl::kLanes);", to,
            value, count, v);
}

// Scans and reductions across vectors, a vector at a time (those along vectors join loops:
// cpu_fusion.cpp). A scan stores every turn's value.
template <class Node> void CpuEmitter::fold(const Node& node) {
  constexpr bool kEach = std::is_same_v<Node, Scan>;
  bool reverse = false;
  if constexpr (kEach) reverse = node.reverse;
  const auto& shape = tensor(node.src).shape;
  const Reduction& how = reduction_of(node.op);
  const auto axis = as_size(node.axis);
  const size_t along = vector_dim_of(shape);
  const auto outer = open_loops(shape, along, axis);
  const std::string total = fresh("t");
  const std::string v = fresh("v");
  const std::string k = fresh("k");
  std::vector<Loop> inner = outer;
  out_.open("for (long {0} = 0; {0} < {1}; {0} += wl::kLanes) {{", v, shape[along]);
  inner.push_back({k, shape[axis], axis});
  const Writer::Block around{out_, inner.size()};
  const std::string at = " + " + v;
  const std::string from = element(node.src, inner) + at;
  const std::string to = element(node.dst, kEach ? inner : outer) + at;
  const bool padded = !kEach && along + 1 == shape.size();
  const auto keep = [&] {
    const std::string value = rounded(tensor(node.dst).dtype, total);
    store(to, value, v, shape[along], padded);
  };
  out_.line("wl::vf {} = wl::splat({});", total, float_text(how.identity));
  {
    const auto turns = turns_along(k, shape[axis], reverse);
    out_.line("{0} = wl::{1}(wl::load({2}), {0});", total, name_of(how.combine), from);
    if (kEach) keep();
  }
  if (!kEach) keep();
}

void CpuEmitter::visit(const Map& map) {
  whole_numbers(map);  // others share loops
}

void CpuEmitter::visit(const Fill& fill) {
  whole_numbers(fill);
}

void CpuEmitter::visit(const Reduce& reduce) {
  if (in_integers(program_, *at_)) return whole_numbers_along(reduce);
  fold(reduce);
}

void CpuEmitter::visit(const Scan& scan) {
  if (in_integers(program_, *at_)) return whole_numbers_along(scan);
  fold(scan);
}

void CpuEmitter::visit(const ConvertLayout& node) {
  if (!node.transpose) return visit(Copy{whole(program_, node.src), whole(program_, node.dst)});
  const auto& shape = tensor(node.src).shape;
  const auto at = [&](TensorId id, const std::string& row, const std::string& col) {
    const auto strides = strides_of(id);
    return fmt::format("{}[{} * {} + {} * {}]", name(id), row, strides[0], col, strides[1]);
  };
  const std::string i = fresh("i");
  const std::string j = fresh("j");
  const std::string to = at(node.dst, j, i);
  const std::string from = at(node.src, i, j);
  out_.line("for (long {0} = 0; {0} < {1}; ++{0})", i, shape[0]);
  out_.line("  for (long {0} = 0; {0} < {1}; ++{0}) {2} = {3};", j, shape[1], to, from);
}

namespace {
struct RegisterBlock {
  int64_t rows = 1;
  int64_t vectors = 1;
};

// The block of an accumulator that is kept in registers: rows · vectors accumulators, one row of b,
// one broadcast of a. Loads per multiplication are 1/rows + 1/vectors.
RegisterBlock register_block(int64_t m, int64_t vectors, int64_t registers) {
  RegisterBlock best;
  double least = 1e9;
  for (int64_t v = 1; v <= std::min<int64_t>(vectors, 6); ++v) {
    const int64_t r = std::min(m, (registers - 1 - v) / v);
    if (r < 1) continue;
    const double loads = 1.0 / as_double(r) + 1.0 / as_double(v);
    if (loads < least) {
      least = loads;
      best = {r, v};
    }
  }
  return best;
}
}  // namespace

void CpuEmitter::visit(const Mma& mma) {
  if (tensor(mma.a.tensor).as_strided >= 0) return multiply_windows(mma);
  if (layout(mma.b.tensor).rows_fast != mma.transpose_b)
    return unsupported("a matrix product reads its second operand across its rows",
                       "n contiguous: a shared tensor, or [K, N] registers",
                       fmt::format("'{}'", tensor(mma.b.tensor).name));
  const auto acc = matrix_extent(tensor(mma.acc).shape);
  if (acc.size() != 2 || layout(mma.acc).matrices != 1 || !is_strided(mma.a) || !is_strided(mma.b))
    return unsupported("a matrix product's tile crosses the panels of its operand",
                       "tiles at multiples of their own width", "another offset");

  if (is_integer(tensor(mma.acc).dtype))
    return unsupported("a CPU multiplies floats, which lose large sums of integers",
                       "f32, bf16 or f16", std::string(name_of(tensor(mma.acc).dtype)));
  const CpuLayout& a = layout(mma.a.tensor);
  const int64_t k = matrix_extent(mma.a.extent)[mma.transpose_a ? 0 : 1];
  const int64_t vectors = ceil_div(acc[1], lanes_);
  const bool m_fast = a.rows_fast != mma.transpose_a;  // rows of the product run fastest in a
  const int64_t registers = capabilities_.registers > 0 ? capabilities_.registers : 16;
  const RegisterBlock block = register_block(acc[0], vectors, registers);
  const std::string extents =
      fmt::format("{}, {}, {}, {}", acc[0], vectors, block.rows, block.vectors);
  const int64_t a_row_stride = m_fast ? 1 : a.panel;
  const int64_t a_k_stride = m_fast ? a.panel : 1;
  const int64_t b_stride = layout(mma.b.tensor).panel;
  const int64_t acc_stride = layout(mma.acc).panel;
  const std::string strides =
      fmt::format("{}, {}, {}, {}", a_row_stride, a_k_stride, b_stride, acc_stride);
  out_.line("wl::mma<{}, {}>({}, {}, {}, {});", extents, strides, name(mma.acc), pointer(mma.a),
            pointer(mma.b), k);
}
}  // namespace warploom::codegen
