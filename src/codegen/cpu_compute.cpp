// Statements on register tensors: loops over vectors of their elements, and matrix products cut into register blocks.
#include "codegen/cpu_emitter.h"
namespace warploom::codegen {
using tile::Index;
using tile::TensorId;
using tile::Value;

std::size_t vector_dim_of(const std::vector<std::int64_t>& shape) {
  std::size_t dim = shape.size() - 1;
  while (dim > 0 && shape[dim] == 1) --dim;
  return dim;
}

std::string rounded(Dtype dtype, const std::string& value) {
  return is_narrow(dtype) ? fmt::format("wl::rounded<wl::{}>({})", name_of(dtype), value) : value;
}

std::vector<CpuEmitter::Loop> CpuEmitter::open_loops(const std::vector<std::int64_t>& shape, std::size_t skip,
                                                     std::size_t also_skip) {
  std::vector<Loop> loops;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i == skip || i == also_skip || shape[i] == 1) continue;
    loops.push_back({fresh("r"), shape[i], i});
    out_.open("for (long {0} = 0; {0} < {1}; ++{0}) {{", loops.back().variable, shape[i]);
  }
  return loops;
}

// name + Σ loop · stride, dimensions of extent 1 staying where they are.
std::string CpuEmitter::element(TensorId id, const std::vector<Loop>& loops) const {
  const auto strides = layout(id).strides(tensor(id).shape);
  Index sum = 0;
  for (const Loop& loop : loops)
    if (tensor(id).shape[loop.dim] > 1) sum = sum + Index::variable(loop.variable) * strides[loop.dim];
  return plus(name(id), sum.text());
}

void CpuEmitter::visit(const tile::Fill& fill) {
  out_.line("for (long {0} = 0; {0} < {1}; {0} += wl::kLanes) wl::store({2} + {0}, {3});", fresh("v"), layout(fill.dst).floats,
            name(fill.dst), rounded(tensor(fill.dst).dtype, fmt::format("wl::splat({})", float_text(fill.value))));
}

// A local vector with the value of the text; equal texts are computed once.
std::string CpuEmitter::local(const std::string& text, const std::string& stem, std::map<std::string, std::string>& known) {
  auto [found, added] = known.try_emplace(text);
  if (added) out_.line("const wl::vf {} = {};", found->second = fresh(stem), text);
  return found->second;
}

// The name of a local vector with the value, or a constant.
std::string CpuEmitter::value_text(const Value& value, const std::function<std::string(const Value&)>& leaf,
                                   std::map<std::string, std::string>& known, const std::string& stem) {
  if (value.kind == Value::Kind::constant) return fmt::format("wl::splat({})", float_text(value.constant));
  if (value.kind != Value::Kind::op) return leaf(value);
  std::vector<std::string> operands;
  for (const Value& operand : value.operands) operands.push_back(value_text(operand, leaf, known, stem));
  return local(fmt::format("wl::{}({})", name_of(value.op), fmt::join(operands, ", ")), stem, known);
}

// A vector at element v of `count`. Rows without padding between them must not be overrun.
void CpuEmitter::store(const std::string& to, const std::string& value, const std::string& v, std::int64_t count, bool padded) {
  if (padded || count % lanes_ == 0) return out_.line("wl::store({}, {});", to, value);
  out_.line("wl::store_first({0}, {1}, {2} - {3} < wl::kLanes ? {2} - {3} : wl::kLanes);", to, value, count, v);
}

void CpuEmitter::visit(const tile::Map& map) {
  const tile::Tensor& dst = tensor(map.dst);
  // Tensors of one shape, and single elements beside them, need no loops over dimensions.
  std::vector<TensorId> operands;
  tensors_of(map.value, operands);
  const bool flat = !has_coordinates(map.value) && std::ranges::all_of(operands, [&](TensorId id) {
    return tensor(id).shape == dst.shape || tile::element_count(tensor(id).shape) == 1;
  });

  const std::size_t along = vector_dim_of(dst.shape);
  const std::vector<Loop> loops = flat ? std::vector<Loop>() : open_loops(dst.shape, along, along);
  const Writer::Block around{out_, loops.size()};
  const std::int64_t count = flat ? layout(map.dst).floats - lanes_ : dst.shape[along];
  const std::string v = fresh("v");
  if (count <= 8 * lanes_) out_.line("#pragma GCC unroll 8");
  const auto vectors = out_.block("for (long {0} = 0; {0} < {1}; {0} += wl::kLanes) {{", v, count);
  std::map<std::string, std::string> known;
  const auto leaf = [&](const Value& value) {
    if (value.kind == Value::Kind::coordinate) {
      Index at = value.shift;
      for (const Loop& loop : loops)
        if (static_cast<int>(loop.dim) == value.axis) at = at + Index::variable(loop.variable);
      if (static_cast<int>(along) == value.axis) at = at + Index::variable(v);
      return local(fmt::format("wl::{}({})", static_cast<int>(along) == value.axis ? "counted" : "splat", at.text()), "x", known);
    }
    const TensorId id = value.tensor;
    const bool spread = tensor(id).shape[along] == 1;
    const std::string place = element(id, loops);
    return local(spread ? "wl::splat(*(" + place + "))" : "wl::load(" + place + " + " + v + ")", "x", known);
  };
  const std::string value = rounded(dst.dtype, value_text(map.value, leaf, known, "x"));
  const std::string to = fmt::format("{} + {}", element(map.dst, loops), v);
  store(to, value, v, count, flat || along + 1 == dst.shape.size());
}

Reduction reduction_of(tile::ReduceOp op) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (op == tile::ReduceOp::sum) return {"wl::add", "wl::sum_of", 0};
  if (op == tile::ReduceOp::max) return {"wl::max", "wl::max_of", -kInfinity};
  return {"wl::min", "wl::min_of", kInfinity};
}

void CpuEmitter::visit(const tile::Reduce& reduce) {
  const tile::Tensor& src = tensor(reduce.src);
  const Reduction how = reduction_of(reduce.op);
  const auto axis = static_cast<std::size_t>(reduce.axis);
  const std::size_t along = vector_dim_of(src.shape);
  const std::string identity = float_text(how.identity), total = fresh("t"), v = fresh("v");
  const std::vector<Loop> loops = open_loops(src.shape, along, axis);
  const Writer::Block around{out_, loops.size()};
  if (axis == along) {
    const std::int64_t whole = src.shape[along] / lanes_ * lanes_, rest = src.shape[along] - whole;
    const std::string from = element(reduce.src, loops);
    const auto scope = out_.block("{{");
    out_.line("wl::vf {} = wl::splat({});", total, identity);
    if (whole > 0)
      out_.line("for (long {0} = 0; {0} < {1}; {0} += wl::kLanes) {2} = {3}(wl::load({4} + {0}), {2});", v, whole, total,
                how.combine, from);
    if (rest > 0)
      out_.line("{0} = {1}(wl::load_first({2} + {3}, {4}, {5}), {0});", total, how.combine, from, whole, rest, identity);
    // A single element is kept in all lanes of its vector, so that the vector that a map loads next was written as one.
    const std::string one = rounded(tensor(reduce.dst).dtype, fmt::format("wl::splat({}({}))", how.horizontal, total));
    const bool single = tile::element_count(tensor(reduce.dst).shape) == 1;
    out_.line("{}({}, {});", single ? "wl::store" : "wl::store_one", element(reduce.dst, loops), single ? one : one + "[0]");
  } else {
    const std::string k = fresh("k");
    const std::int64_t count = src.shape[along];
    auto inner = loops;
    inner.push_back({k, src.shape[axis], axis});
    const auto vectors = out_.block("for (long {0} = 0; {0} < {1}; {0} += wl::kLanes) {{", v, count);
    out_.line("wl::vf {} = wl::splat({});", total, identity);
    out_.line("for (long {0} = 0; {0} < {1}; ++{0}) {2} = {3}(wl::load({4} + {5}), {2});", k, src.shape[axis], total, how.combine,
              element(reduce.src, inner), v);
    const std::string to = fmt::format("{} + {}", element(reduce.dst, loops), v),
                      value = rounded(tensor(reduce.dst).dtype, total);
    store(to, value, v, count, along + 1 == src.shape.size());
  }
}
// Along the dimension that vectors run along one element after another, along others a vector at a time.
void CpuEmitter::visit(const tile::Scan& scan) {
  const tile::Tensor &src = tensor(scan.src), &dst = tensor(scan.dst);
  const Reduction how = reduction_of(scan.op);
  const auto axis = static_cast<std::size_t>(scan.axis);
  const std::size_t along = vector_dim_of(src.shape);
  const std::vector<Loop> loops = open_loops(src.shape, along, axis);
  const std::string total = fresh("t"), v = fresh("v"), k = fresh("k"), x = fresh("x");
  auto inner = loops;
  if (axis != along) {
    out_.open("for (long {0} = 0; {0} < {1}; {0} += wl::kLanes) {{", v, src.shape[along]);
    inner.push_back({k, src.shape[axis], axis});
  }
  const Writer::Block around{out_, inner.size()};
  const std::string place = axis == along ? k : v, from = element(scan.src, inner), to = element(scan.dst, inner);
  out_.line("wl::vf {} = {{}};", total);
  const auto turns = out_.block("for (long {0} = 0; {0} < {1}; ++{0}) {{", k, src.shape[axis]);
  out_.line("const wl::vf {} = wl::{}{} + {}{};", x, axis == along ? "splat(*(" : "load(", from, place,
            axis == along ? "))" : ")");
  out_.line("{0} = {1} == 0 ? {2} : {3}({2}, {0});", total, k, x, how.combine);
  const std::string value = rounded(dst.dtype, total);
  if (axis == along) {
    out_.line("wl::store_one({} + {}, ({})[0]);", to, place, value);
  } else {
    out_.line("wl::store_first({} + {}, {}, {}); ", to, place, value,
              fmt::format("{0} - {1} < wl::kLanes ? {0} - {1} : wl::kLanes", src.shape[along], v));
  }
}

void CpuEmitter::visit(const tile::Rearrange& node) {
  if (!node.transpose) return visit(tile::Copy{whole(program_, node.src), whole(program_, node.dst)});
  const auto &shape = tensor(node.src).shape, from = layout(node.src).strides(shape),
             to = layout(node.dst).strides(tensor(node.dst).shape);
  const std::string i = fresh("i"), j = fresh("j");
  out_.line("for (long {0} = 0; {0} < {1}; ++{0})", i, shape[0]);
  out_.line("  for (long {0} = 0; {0} < {1}; ++{0}) {2}[{0} * {3} + {4} * {5}] = {6}[{4} * {7} + {0} * {8}];", j, shape[1],
            name(node.dst), to[0], i, to[1], name(node.src), from[0], from[1]);
}
namespace {
struct RegisterBlock {
  std::int64_t rows = 1, vectors = 1;
};
// The block of an accumulator that is kept in registers: rows · vectors accumulators, one row of b, one broadcast of a. Loads per
// multiplication are 1/rows + 1/vectors.
RegisterBlock register_block(std::int64_t m, std::int64_t vectors, std::int64_t registers) {
  RegisterBlock best;
  double least = 1e9;
  for (std::int64_t v = 1; v <= std::min<std::int64_t>(vectors, 6); ++v) {
    const std::int64_t r = std::min(m, (registers - 1 - v) / v);
    if (r < 1) continue;
    const double loads = 1.0 / static_cast<double>(r) + 1.0 / static_cast<double>(v);
    if (loads < least) least = loads, best = {r, v};
  }
  return best;
}
}  // namespace
// acc[row + m, column + vectors] += a · b, `row` being an expression.
void CpuEmitter::mma_block(const tile::Mma& mma, std::int64_t m, std::int64_t vectors, const std::string& row,
                           std::int64_t column) {
  const CpuLayout &la = layout(mma.a.tensor), &lb = layout(mma.b.tensor);
  const auto shape_a = tile::matrix_extent(mma.a.extent);
  const std::int64_t k = shape_a[mma.transpose_a ? 0 : 1], pitch = layout(mma.acc).panel;
  const bool m_fast = la.rows_fast != mma.transpose_a;  // rows of the product run fastest in a
  const std::int64_t step_m = m_fast ? 1 : la.panel, step_k = m_fast ? la.panel : 1;
  const Index r = row == "0" ? Index(0) : Index::variable(row);
  const auto place = [&](TensorId id, const Index& offset) { return plus(name(id), offset.text()); };
  out_.line("wl::mma<{}, {}, {}, {}, {}, {}>({}, {}, {}, {});", m, vectors, step_m, step_k, lb.panel, pitch,
            place(mma.acc, r * pitch + column), place(mma.a.tensor, address(mma.a) + r * step_m),
            place(mma.b.tensor, address(mma.b) + column), k);
}

void CpuEmitter::visit(const tile::Mma& mma) {
  if (layout(mma.b.tensor).rows_fast != mma.transpose_b)
    return unsupported("a matrix product reads its second operand across its rows",
                       "n contiguous: a shared tensor, or [K, N] registers", fmt::format("'{}'", tensor(mma.b.tensor).name));
  const auto acc = tile::matrix_extent(tensor(mma.acc).shape);
  if (acc.size() != 2 || layout(mma.acc).matrices != 1 || !is_strided(mma.a) || !is_strided(mma.b))
    return unsupported("a matrix product's tile crosses the panels of its operand", "tiles at multiples of their own width",
                       "another offset");

  const std::int64_t vectors = (acc[1] + lanes_ - 1) / lanes_;
  const RegisterBlock block = register_block(acc[0], vectors, capabilities_.registers > 0 ? capabilities_.registers : 16);
  for (std::int64_t v = 0; v < vectors; v += block.vectors) {
    const std::int64_t width = std::min(block.vectors, vectors - v), whole = acc[0] / block.rows * block.rows;
    if (whole == block.rows) {
      mma_block(mma, block.rows, width, "0", v * lanes_);
    } else {
      const std::string row = fresh("r");
      const auto blocks = out_.block("for (long {0} = 0; {0} < {1}; {0} += {2}) {{", row, whole, block.rows);
      mma_block(mma, block.rows, width, row, v * lanes_);
    }
    if (whole < acc[0]) {
      const std::string row = fresh("r");
      const auto scope = out_.block("{{");
      out_.line("constexpr long {} = {};", row, whole);
      mma_block(mma, acc[0] - whole, width, row, v * lanes_);
    }
  }
}
}  // namespace warploom::codegen
