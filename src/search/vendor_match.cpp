#include <numeric>
#include "base/random.h"
#include "kernels/match.h"
#include "kernels/rows.h"
#include "search/explore.h"
namespace warploom::search {
namespace {
using runtime::Activation;
using runtime::BiasKind;

using Function = float (*)(float);
constexpr std::pair<Activation, Function> kActivations[] = {
#define WARPLOOM_ACTIVATION(name, dnnl, lt, value) {Activation::name, [](float x) -> float { return value; }},
#include "runtime/activations.def"
};

// The activation f with epilogue(s, b) = f(s + b), found by trying them all at random points: two expressions that agree there
// as closely as fp32 tells are the same function.
std::optional<Activation> activation_of(const graph::Expression& epilogue, bool bias) {
  for (const auto& [activation, function] : kActivations) {
    Random random(7, "epilogue");
    bool same = true;
    for (int point = 0; point < 40 && same; ++point) {
      const std::array<double, 2> at = {random.normal() * 2, bias ? random.normal() * 2 : 0};
      const double found = graph::evaluate(epilogue, {at.data(), bias ? 2u : 1u}),
                   wanted = static_cast<double>(function(static_cast<float>(at[0] + at[1])));
      same = std::abs(found - wanted) <= 2e-6 * (1 + std::abs(wanted));
    }
    if (same) return activation;
  }
  return std::nullopt;
}

// Whether a tensor, as it is seen, is packed and row-major.
template <class Seen>
bool packed(const Seen& seen) {
  std::int64_t expected = 1;
  for (std::size_t i = seen.shape.size(); i-- > 0;) {
    if (seen.shape[i] != 1 && seen.strides[i] != expected) return false;
    expected *= seen.shape[i];
  }
  return true;
}

// The same of a matrix, as it is (false) or with rows and columns exchanged (true); nothing where it is neither.
std::optional<bool> transposed(const kernels::View& view) {
  if (packed(view)) return false;
  return packed(view.transposed()) ? std::optional(true) : std::nullopt;
}

std::int64_t matrices(const kernels::View& view) {
  return std::accumulate(view.shape.begin(), view.shape.end() - 2, std::int64_t{1}, std::multiplies<>());
}

std::optional<BiasKind> bias_of(const kernels::MatmulRegion& region, const kernels::View& view) {
  const std::array<std::int64_t, 3> shape = {matrices(view), view.shape.end()[-2], view.shape.end()[-1]};
  if (!packed(view)) return std::nullopt;
  if (shape == std::array<std::int64_t, 3>{1, 1, region.n}) return BiasKind::per_column;
  if (shape == std::array<std::int64_t, 3>{1, region.m, 1}) return BiasKind::per_row;
  if (shape == std::array<std::int64_t, 3>{region.batch_count(), region.m, region.n}) return BiasKind::full;
  return std::nullopt;
}

// Only inputs and outputs have buffers of their own at the vendor's.
bool is_input(const graph::Graph& graph, graph::TensorId id) { return std::ranges::count(graph.inputs, id) > 0; }

std::optional<verify::Reference> matmul_reference(const graph::Graph& graph, const kernels::MatmulRegion& region, Track track) {
  const auto a = transposed(region.a), b = transposed(region.b);
  for (const kernels::View* operand : {&region.a, &region.b})
    if (matrices(*operand) != 1 && matrices(*operand) != region.batch_count()) return std::nullopt;
  if (!a || !b || !packed(region.out) || region.operands.size() > 1 || region.a.dtype != region.b.dtype ||
      !is_input(graph, region.a.tensor) || !is_input(graph, region.b.tensor))
    return std::nullopt;
  verify::Reference reference;
  runtime::VendorProblem& p = reference.problem;
  p.batch = region.batch_count();
  p.m = region.m, p.n = region.n, p.k = region.k;
  p.transpose_a = *a, p.transpose_b = *b;
  p.batched_a = matrices(region.a) == p.batch, p.batched_b = matrices(region.b) == p.batch;
  p.in = region.a.dtype, p.out = region.out.dtype;
  p.tf32 = p.in == Dtype::f32 && track != Track::fp32;
  reference.buffers = {{"A", region.a.name}, {"B", region.b.name}, {"C", region.out.name}};
  if (!region.operands.empty()) {
    const auto bias = bias_of(region, region.operands[0]);
    if (!bias || !is_input(graph, region.operands[0].tensor)) return std::nullopt;
    p.bias = *bias;
    p.bias_dtype = region.operands[0].dtype;
    reference.buffers["bias"] = region.operands[0].name;
  }
  if (region.has_epilogue) {
    const auto activation = activation_of(region.epilogue, !region.operands.empty());
    if (!activation) return std::nullopt;
    p.activation = *activation;
  }
  return reference;
}

// By its terms, as they are written of the operator and of its formula alike.
bool is_softmax(const kernels::Rows& rows) {
  using Kind = kernels::RowTerm::Kind;
  std::string text;
  for (const kernels::RowTerm& term : rows.terms) {
    if (term.kind != Kind::load && term.kind != Kind::apply && term.kind != Kind::reduce) return false;
    text += fmt::format("{}({}) ", term.kind == Kind::load ? "load" : name_of(term.op), fmt::join(term.args, ", "));
  }
  return rows.results[0] == 6 && text == "load() max(0) sub(0, 1) exp(2) add(3) reciprocal(4) mul(3, 5) ";
}

std::optional<verify::Reference> softmax_reference(const graph::Graph& graph, const kernels::Rows& rows) {
  const auto& loads = rows.nest.loads;
  const kernels::Access* out = &rows.nest.outputs[0].place;
  if (loads.size() != 1 || rows.nest.outputs.size() != 1 || !is_input(graph, loads[0].tensor) || rows.lanes_outside ||
      loads[0].shape != out->shape || loads[0].strides != out->strides || !packed(*out) || !is_softmax(rows))
    return std::nullopt;
  return verify::Reference{{.kind = runtime::VendorKind::softmax,
                            .m = rows.row_count(),
                            .n = rows.row_size(),
                            .in = loads[0].dtype,
                            .out = out->dtype},
                           {{"X", loads[0].name}, {"Y", out->name}}};
}
}  // namespace
std::optional<verify::Reference> vendor_match(const graph::Graph& graph, Track track) {
  if (graph.outputs.size() != 1) return std::nullopt;
  if (const auto matmul = kernels::match_matmul(kernels::nests_of(graph))) return matmul_reference(graph, *matmul, track);
  const auto primitive = graph::decompose(graph);
  if (const auto rows = primitive ? kernels::read_rows(kernels::nests_of(*primitive)) : std::nullopt)
    return softmax_reference(graph, *rows);
  return std::nullopt;
}
}  // namespace warploom::search
