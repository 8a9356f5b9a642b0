#include "kernels/gpu_matmul.h"
#include "kernels/rows.h"
#include "search/explore.h"

namespace warploom::search {
namespace {
using runtime::Activation, runtime::BiasKind;
using Kind = kernels::NestValue::Kind;

// The activation f such that f(s + b) follows a sum s, found by trying them all at random points:
// two expressions that agree there as closely as fp32 tells are the same function.
std::optional<Activation> activation_of(const kernels::Contraction& c, bool bias) {
  for (const runtime::ActivationRow& row : runtime::activations()) {
    Random random(7, "epilogue");
    bool same = true;
    for (int point = 0; point < 40 && same; ++point) {
      const std::array<double, 2> at = {random.normal() * 2, bias ? random.normal() * 2 : 0};
      const auto known = [&](int v) -> std::optional<double> {
        const std::size_t id = kernels::at(v);
        return id == c.sum                            ? std::optional(at[0])
               : c.nest.values[id].kind == Kind::load ? std::optional(at[1])
                                                      : std::nullopt;
      };
      const auto applied = [](ValueOp op, std::vector<double> x) {
        return x.resize(3), apply(op, x[0], x[1], x[2]);
      };
      const double found = kernels::made_of<double>(c.nest, c.nest.outputs[0].value, known,
                                                    std::identity{}, applied),
                   wanted = static_cast<double>(row.value(static_cast<float>(at[0] + at[1])));
      same = std::abs(found - wanted) <= 2e-6 * (1 + std::abs(wanted));
    }
    if (same) return static_cast<Activation>(&row - runtime::activations().data());
  }
  return std::nullopt;
}

using Axes = std::vector<std::size_t>;

// Whether an access is of a whole tensor, packed, whose dimensions are these axes of its nest in
// this order.
bool packed(const kernels::Nest& nest, const kernels::Access& access, const Axes& axes) {
  std::int64_t expected = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (nest.axes[axes[i]] != 1 && access.stride(axes[i]) != expected) return false;
    expected *= nest.axes[axes[i]];
  }
  return kernels::is_whole(access) && expected == graph::element_count(access.shape);
}

// Only inputs and outputs have buffers of their own at the vendor's.
bool is_input(const graph::Graph& graph, graph::TensorId id) {
  return contains(graph.inputs, id);
}

std::optional<verify::Reference> matmul_reference(const graph::Graph& graph,
                                                  const kernels::Contraction& c, Track track) {
  const auto epilogue = kernels::epilogue_of(c);
  const kernels::Nest& nest = c.nest;
  const kernels::Access &a = nest.loads[c.a], &b = nest.loads[c.b], &out = nest.outputs[0].place;
  if (contains(nest.values, Kind::index, &kernels::NestValue::kind))
    return std::nullopt;  // libraries know no places
  if (!epilogue || c.k.size() != 1 || epilogue->size() > 1 || a.dtype != b.dtype ||
      !is_input(graph, a.tensor) || !is_input(graph, b.tensor))
    return std::nullopt;
  const std::size_t m = c.m.back(), n = c.column, k = c.k[0];
  Axes batch;
  for (std::size_t axis = 0; axis < nest.axes.size(); ++axis)
    if (axis != m && axis != n && axis != k) batch.push_back(axis);
  const auto with = [&](bool batched, const Axes& axes) {
    Axes all = batched ? batch : Axes{};
    all.insert(all.end(), axes.begin(), axes.end());
    return all;
  };
  verify::Reference reference;
  runtime::VendorProblem& p = reference.problem;
  p.kind = runtime::VendorKind::matmul;
  for (const std::size_t axis : batch) p.batch *= nest.axes[axis];
  p.m = nest.axes[m], p.n = nest.axes[n], p.k = nest.axes[k];
  p.in = a.dtype, p.out = out.dtype;
  p.tf32 = p.in == Dtype::f32 && track != Track::fp32;
  // An operand as the library takes it, the same for every element of the batch or another one.
  const auto takes = [&](const kernels::Access& access, std::size_t row, std::size_t column,
                         bool& transposed, bool& batched) {
    batched = batch.empty() || access.uses(batch[0]);
    transposed = !packed(nest, access, with(batched, {row, column}));
    return !transposed || packed(nest, access, with(batched, {column, row}));
  };
  if (!takes(a, m, k, p.transpose_a, p.batched_a) || !takes(b, k, n, p.transpose_b, p.batched_b) ||
      !packed(nest, out, with(true, {m, n})))
    return std::nullopt;
  reference.buffers = {{"A", a.name}, {"B", b.name}, {"C", out.name}};
  for (const int operand : *epilogue) {
    const kernels::Access& bias = nest.loads[operand];
    if (packed(nest, bias, {n}))
      p.bias = BiasKind::per_column;
    else if (packed(nest, bias, {m}))
      p.bias = BiasKind::per_row;
    else if (packed(nest, bias, with(true, {m, n})))
      p.bias = BiasKind::full;
    else
      return std::nullopt;
    if (!is_input(graph, bias.tensor)) return std::nullopt;
    p.bias_dtype = bias.dtype;
    reference.buffers["bias"] = bias.name;
  }
  if (kernels::at(nest.outputs[0].value) != c.sum) {
    const auto activation = activation_of(c, !epilogue->empty());
    if (!activation) return std::nullopt;
    p.activation = *activation;
  }
  return reference;
}

// Whether what is stored is e / Σe, e = exp(x - max x), x as it is read.
bool is_softmax(const kernels::Rows& rows) {
  if (!rows.joint) return false;
  const int high = rows.passes[0].reduces[0], sum = rows.passes[1].reduces[0];
  const kernels::RowTerm& y = rows.term(rows.results[0]);
  if (y.kind != Kind::apply || y.op != ValueOp::mul || y.operands[0] != rows.term(sum).operands[0])
    return false;
  const kernels::RowTerm& inverse = rows.term(y.operands[1]);
  return inverse.kind == Kind::apply && inverse.op == ValueOp::reciprocal &&
         inverse.operands[0] == sum && rows.term(rows.term(high).operands[0]).kind == Kind::load;
}

std::optional<verify::Reference> softmax_reference(const graph::Graph& graph,
                                                   const kernels::Rows& rows) {
  const auto& loads = rows.nest.loads;
  const kernels::Access* out = &rows.nest.outputs[0].place;
  Axes axes = rows.outer;  // the library's rows lie one after another
  axes.insert(axes.end(), rows.row.begin(), rows.row.end());
  if (loads.size() != 1 || rows.nest.outputs.size() != 1 || !is_input(graph, loads[0].tensor) ||
      rows.lanes_outside || loads[0].shape != out->shape || loads[0].strides != out->strides ||
      !packed(rows.nest, *out, axes) || !is_softmax(rows))
    return std::nullopt;
  verify::Reference reference;
  reference.problem.kind = runtime::VendorKind::softmax;
  reference.problem.m = rows.row_count();
  reference.problem.n = rows.row_size();
  reference.problem.in = loads[0].dtype;
  reference.problem.out = out->dtype;
  reference.buffers = {{"X", loads[0].name}, {"Y", out->name}};
  return reference;
}
}  // namespace

std::optional<verify::Reference> vendor_match(const graph::Graph& graph, Track track) {
  if (graph.outputs.size() != 1) return std::nullopt;
  if (const auto matmul = kernels::contraction_of(kernels::nests_of(graph)))
    return matmul_reference(graph, *matmul, track);
  const auto primitive = graph::decompose(graph);
  if (const auto rows =
          primitive ? kernels::read_rows(kernels::nests_of(*primitive)) : std::nullopt)
    return softmax_reference(graph, *rows);
  return std::nullopt;
}
}  // namespace warploom::search
