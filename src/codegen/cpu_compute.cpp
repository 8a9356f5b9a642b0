// Statements on register tensors: loops over vectors of their elements, and matrix products in
// blocks of registers.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
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
  while (dim > 0 && shape[dim] == 1)
    --dim;
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
  for (const Value& operand : value.operands)
    operands.push_back(value_text(operand, leaf, stem));
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
// A tile of a product whose sums stay in registers.
struct RegisterTile {
  int64_t rows = 1;
  int64_t vectors = 1;
};

// Cycles a step of k takes of a tile: two multiply-adds or two loads in each, and at least as long
// as a sum waits for itself.
int64_t half_cycles(int64_t rows, int64_t vectors) {
  constexpr int64_t kLatency = 8;
  return std::max({rows * vectors, rows + vectors, kLatency});
}

// The tiles of a product of m rows and so many vectors that take the fewest cycles, the last ones
// of rows and columns included: their sums, a row of b and a broadcast of a are in registers.
RegisterTile register_tile(int64_t m, int64_t vectors, int64_t registers) {
  RegisterTile best;
  int64_t least = INT64_MAX;
  for (int64_t v = std::min<int64_t>(vectors, 6); v >= 1; --v)
    for (int64_t r = std::min(m, (registers - 1 - v) / v); r >= 1; --r) {
      const auto of_rows = [&](int64_t wide) {
        const int64_t rest = m % r == 0 ? 0 : half_cycles(m % r, wide);
        return wide == 0 ? 0 : m / r * half_cycles(r, wide) + rest;
      };
      const int64_t all = vectors / v * of_rows(v) + of_rows(vectors % v);
      if (all >= least) continue;
      least = all;
      best = {r, v};
    }
  return best;
}
}  // namespace

// Of a tile's two dimensions that a product sees: how far elements are apart.
std::array<int64_t, 2> CpuEmitter::matrix_strides(const Tile& tile) const {
  const auto strides = strides_of(tile.tensor);
  std::vector<int64_t> left;
  for (size_t d = 0; d < strides.size(); ++d)
    left.push_back(strides[d] * tile.step_along(d));
  const auto kept = matrix_extent(tile.extent).size();
  std::array<int64_t, 2> out = {0, 1};
  // Those of extent 1 that matrix_extent() drops, from the front.
  size_t extra = tile.extent.size() - kept;
  std::vector<int64_t> own;
  for (size_t d = 0; d < left.size(); ++d) {
    if (tile.extent[d] == 1 && extra > 0) {
      --extra;
      continue;
    }
    own.push_back(left[d]);
  }
  if (own.size() == 2) out = {own[0], own[1]};
  return out;
}

// Why a product cannot read an operand where it lies; empty where it can.
std::string CpuEmitter::hinders(const Tile& tile, int64_t column_stride) const {
  const Tensor& operand = tensor(tile.tensor);
  if (matrix_extent(tile.extent).size() != 2) return "a tile of more than two dimensions";
  if (operand.scope != Scope::global)
    return is_strided(tile) ? "" : "a tile that crosses the panels of its operand";
  if (!conditions(tile).empty()) return "a tile that may lie partly outside";
  return column_stride == 1 ? "" : "columns that are apart";
}

void CpuEmitter::visit(const Mma& mma) {
  if (tensor(mma.a.tensor).as_strided >= 0) return multiply_windows(mma);
  if (group_of(mma.b) > 1) return multiply_pairs(mma);
  const bool fresh = std::exchange(begins_, "false") == "true";
  auto a_strides = matrix_strides(mma.a);
  auto b_strides = matrix_strides(mma.b);
  if (mma.transpose_a) std::swap(a_strides[0], a_strides[1]);
  if (mma.transpose_b) std::swap(b_strides[0], b_strides[1]);
  if (b_strides[1] != 1)
    return unsupported("a matrix product reads its second operand across its rows",
                       "n contiguous: a shared tensor, or [K, N] registers or memory",
                       fmt::format("'{}'", tensor(mma.b.tensor).name));
  const auto acc = matrix_extent(tensor(mma.acc).shape);
  std::string hindered = hinders(mma.a, 1);
  if (hindered.empty()) hindered = hinders(mma.b, b_strides[1]);
  if (hindered.empty() && (acc.size() != 2 || layout(mma.acc).matrices != 1))
    hindered = "an accumulator of more than two dimensions";
  if (!hindered.empty())
    return unsupported("a matrix product cannot read its operands where they lie",
                       "matrices inside their tensors, at multiples of their own width", hindered);

  if (is_integer(tensor(mma.acc).dtype))
    return unsupported("a CPU multiplies floats, which lose large sums of integers",
                       "f32, bf16 or f16", std::string(name_of(tensor(mma.acc).dtype)));
  const int64_t k = matrix_extent(mma.a.extent)[mma.transpose_a ? 0 : 1];
  const int64_t registers = capabilities_.registers > 0 ? capabilities_.registers : 16;
  const int64_t vectors = ceil_div(acc[1], lanes_);
  const RegisterTile tile = register_tile(acc[0], vectors, registers);
  // Rows of buffers are whole vectors.
  const bool in_memory = tensor(mma.b.tensor).scope == Scope::global;
  const int64_t columns = in_memory ? acc[1] : vectors * lanes_;
  const std::string strides = fmt::format("{}, {}, {}, {}", a_strides[0], a_strides[1],
                                          b_strides[0], layout(mma.acc).panel);
  const std::string operands =
      fmt::format("{}, {}, {}, {}", name(mma.acc), pointer(mma.a), pointer(mma.b), k);
  if (tile.rows == acc[0] && tile.vectors == vectors)
    return out_.line("wl::multiply_tile<{}, {}, {}, {}>({});", fresh, acc[0], columns, strides,
                     operands);
  out_.line("wl::multiply<{}, {}, {}, {}, {}, {}>({});", fresh, acc[0], columns, tile.rows,
            tile.vectors * lanes_, strides, operands);
}

// Such a product makes its own zeros, in registers. Worked example: `fill acc 0`, or for a product
// of windows `if (k < 1) { fill acc 0 }`, and `mma acc += a * b`.
std::optional<std::string> CpuEmitter::begins_product(const Body& body, size_t place) const {
  const auto* mma = place + 1 < body.size() ? body[place + 1].as<Mma>() : nullptr;
  if (!mma) return std::nullopt;
  const bool of_windows = tensor(mma->a.tensor).as_strided >= 0;
  const auto* branch = of_windows ? body[place].as<If>() : nullptr;
  const bool is_inside = branch && branch->body.size() == 1;
  const auto* fill = (is_inside ? branch->body[0] : body[place]).as<Fill>();
  const bool begins = fill && fill->value == 0 && fill->dst == mma->acc;
  const bool sums = tensor(mma->acc).dtype == Dtype::f32 || group_of(mma->b) > 1;
  if (!begins || !sums) return std::nullopt;
  if (!is_inside) return "true";
  return fmt::format("{} < {}", branch->left.text(), branch->right.text());
}
}  // namespace warploom::codegen
