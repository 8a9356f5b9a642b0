#include "kernels/contraction.h"
namespace warploom::kernels {
namespace {
using Kind = NestValue::Kind;
using TermKind = graph::Term::Kind;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// The loads whose product a value is.
std::optional<std::pair<std::size_t, std::size_t>> product(const Nest& nest, const NestValue& value) {
  const auto& terms = value.expression.terms;
  if (value.kind != Kind::map || value.operands.size() != 2 || terms.empty() || value.dtype != Dtype::f32) return std::nullopt;
  const graph::Term& last = terms.back();
  if (last.kind != TermKind::apply || last.op != ValueOp::mul || last.args[0] == last.args[1]) return std::nullopt;
  std::size_t loads[2] = {0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const graph::Term& factor = terms[at(last.args[i])];
    if (factor.kind != TermKind::input) return std::nullopt;
    const NestValue& operand = nest.values[at(value.operands[at(factor.input)])];
    if (operand.kind != Kind::load) return std::nullopt;
    loads[i] = at(operand.load);
  }
  return std::pair{loads[0], loads[1]};
}
}  // namespace
std::int64_t Contraction::count(const std::vector<std::size_t>& axes) const {
  std::int64_t product = 1;
  for (const std::size_t axis : axes) product *= nest.axes[axis];
  return product;
}

std::optional<Contraction> contraction_of(const graph::Graph& primitive) {
  auto nest = nest_of(primitive);
  if (!nest || nest->outputs.size() != 1) return std::nullopt;
  Contraction c{std::move(*nest), 0, 0, 0, {}, {}, {}, {}, {}, {}};
  const Nest& n = c.nest;
  const std::vector<bool> reduced = n.reduced();
  int sums = 0;
  for (std::size_t v = 0; v < n.values.size(); ++v)
    if (n.values[v].kind == Kind::reduce) ++sums, c.sum = v;
  if (sums != 1 || n.values[c.sum].op != ValueOp::add) return std::nullopt;
  const auto factors = product(n, n.values[at(n.values[c.sum].operands[0])]);
  if (!factors) return std::nullopt;
  const Access& out = n.outputs[0].place;
  int fastest = -1;
  for (std::size_t d = 0; d < out.at.size(); ++d)
    for (std::size_t a = 0; a < n.axes.size(); ++a)
      if (out.at[d].steps[a] * out.strides[d] == 1) fastest = static_cast<int>(a);
  if (fastest < 0) return std::nullopt;
  const bool first = n.loads[factors->first].uses(at(fastest)), second = n.loads[factors->second].uses(at(fastest));
  if (first == second) return std::nullopt;
  c.a = first ? factors->second : factors->first, c.b = first ? factors->first : factors->second;
  const Access &load_a = n.loads[c.a], &load_b = n.loads[c.b];
  for (std::size_t a = 0; a < n.axes.size(); ++a) {
    const bool in_a = load_a.uses(a), in_b = load_b.uses(a);
    if (reduced[a] ? !(in_a && in_b) : !(in_a || in_b)) return std::nullopt;
    (reduced[a] ? c.k : in_a && in_b ? c.batch : in_a ? c.m : c.n).push_back(a);
  }
  // What is known before the sum may vary along k as its factors; nothing behind it, nor the output.
  for (std::size_t v = 0; v < n.values.size(); ++v)
    for (const std::size_t k : c.k)
      if (n.values[v].varies[k] && v > c.sum) return std::nullopt;
  if (c.m.empty() || c.n.empty() || c.k.empty()) return std::nullopt;
  // The output's fastest axis last.
  std::erase(c.n, at(fastest));
  c.n.push_back(at(fastest));
  const auto moves_pixels = [&](std::size_t k) {
    for (const Affine& coordinate : load_b.at)
      for (const std::size_t axis : c.n)
        if (coordinate.steps[k] != 0 && coordinate.steps[axis] != 0) return true;
    return false;
  };
  for (const std::size_t k : c.k)
    if (!moves_pixels(k) && (!c.channel || n.axes[k] > n.axes[*c.channel])) c.channel = k;
  for (const std::size_t k : c.k)
    if (k != c.channel) c.window = k;
  return c;
}
}  // namespace warploom::kernels
