#include "kernels/contraction.h"
namespace warploom::kernels {
namespace {
using Kind = NestValue::Kind;
using TermKind = graph::Term::Kind;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// The factors that a value is the product of: loads that vary along what it is summed over, a number, and values that do not.
struct Factors {
  const Nest& nest;
  const std::vector<int>& over;  // axes
  std::vector<std::size_t> loads = {};
  std::vector<int> scales = {};
  double number = 1;

  bool take(int v) {
    const NestValue& value = nest.values[at(v)];
    if (std::none_of(over.begin(), over.end(), [&](int k) { return value.varies[at(k)]; })) return scales.push_back(v), true;
    if (value.kind == Kind::load) return loads.push_back(at(value.load)), nest.loads[at(value.load)].lookup_dim < 0;
    return value.kind == Kind::map && value.dtype == Dtype::f32 &&
           take(value, static_cast<int>(value.expression.terms.size()) - 1);
  }
  bool take(const NestValue& value, int index) {
    const auto& terms = value.expression.terms;
    const graph::Term& term = terms[at(index)];
    if (term.kind == TermKind::input) return take(value.operands[at(term.input)]);
    if (term.kind == TermKind::constant) return number *= term.value, true;
    const auto is_zero = [&](int i) { return terms[at(i)].kind == TermKind::constant && terms[at(i)].value == 0; };
    if (term.op == ValueOp::sub && is_zero(term.args[1])) return take(value, term.args[0]);  // a zero point of 0
    return term.op == ValueOp::mul && take(value, term.args[0]) && take(value, term.args[1]);
  }
};

constexpr double kMaxTreeNodes = 4096;  // a tile value is a tree where an expression shares terms
bool fits_a_tree(const graph::Expression& expression) {
  std::vector<double> nodes;
  for (const graph::Term& term : expression.terms) {
    nodes.push_back(1);
    if (term.kind == TermKind::apply)
      for (int i = 0; i < arity_of(term.op); ++i) nodes.back() += nodes[at(term.args[at(i)])];
  }
  return nodes.back() <= kMaxTreeNodes;
}

struct Composer {
  const Contraction& c;
  Epilogue made = {};
  std::map<int, int> known = {};  // terms of values
  int add(graph::Term term) { return made.expression.terms.push_back(term), static_cast<int>(made.expression.terms.size()) - 1; }

  std::optional<int> term_of(int v) {
    if (const auto found = known.find(v); found != known.end()) return found->second;
    const NestValue& value = c.nest.values[at(v)];
    int term = -1;
    if (at(v) == c.sum) {
      term = add({.kind = TermKind::input, .input = 0});
      const auto multiply = [&](int factor) {
        term = add({.kind = TermKind::apply, .op = ValueOp::mul, .args = {term, factor, 0}});
      };
      for (const int scale : c.scales) {
        const auto factor = term_of(scale);
        if (!factor) return std::nullopt;
        multiply(*factor);
      }
      if (c.scale != 1) multiply(add({.kind = TermKind::constant, .value = c.scale}));
    } else if (value.kind == Kind::load) {
      made.operands.push_back(value.load);
      term = add({.kind = TermKind::input, .input = static_cast<int>(made.operands.size())});
    } else {
      if (value.kind != Kind::map || value.dtype != Dtype::f32) return std::nullopt;
      std::vector<int> place;
      for (graph::Term own : value.expression.terms) {
        if (own.kind == TermKind::input) {
          const auto input = term_of(value.operands[at(own.input)]);
          if (!input) return std::nullopt;
          place.push_back(*input);
          continue;
        }
        if (own.kind == TermKind::apply)
          for (int& arg : own.args) arg = place[at(arg)];
        place.push_back(add(own));
      }
      term = place.back();
    }
    return known[v] = term;
  }
};
}  // namespace
std::int64_t Contraction::count(const std::vector<std::size_t>& axes) const {
  std::int64_t product = 1;
  for (const std::size_t axis : axes) product *= nest.axes[axis];
  return product;
}

std::optional<Contraction> contraction_of(const Nest& nest) {
  if (nest.outputs.size() != 1) return std::nullopt;
  Contraction c{.nest = nest};
  const Nest& n = c.nest;
  const std::vector<bool> reduced = n.reduced();
  int sums = 0;
  for (std::size_t v = 0; v < n.values.size(); ++v)
    if (n.values[v].kind == Kind::reduce) ++sums, c.sum = v;
  if (sums != 1 || n.values[c.sum].op != ValueOp::add) return std::nullopt;
  Factors product{n, n.values[c.sum].axes};
  if (!product.take(n.values[c.sum].operands[0])) return std::nullopt;
  const auto& factors = product.loads;
  if (factors.size() != 2 || factors[0] == factors[1]) return std::nullopt;
  c.scales = product.scales, c.scale = product.number;
  const Access& out = n.outputs[0].place;
  int fastest = -1;
  for (std::size_t d = 0; d < out.at.size(); ++d)
    for (std::size_t a = 0; a < n.axes.size(); ++a)
      if (out.at[d].steps[a] * out.strides[d] == 1) fastest = static_cast<int>(a);
  if (fastest < 0) return std::nullopt;
  const bool first = n.loads[factors[0]].uses(at(fastest)), second = n.loads[factors[1]].uses(at(fastest));
  if (first == second) return std::nullopt;
  c.a = factors[first ? 1 : 0], c.b = factors[first ? 0 : 1];
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
  if (c.n.empty() || c.k.empty()) return std::nullopt;
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

std::optional<Epilogue> epilogue_of(const Contraction& contraction) {
  Composer composer{contraction};
  const auto last = composer.term_of(contraction.nest.outputs[0].value);
  if (!last) return std::nullopt;
  // The last term is the result; one that is known earlier is repeated.
  if (at(*last) + 1 != composer.made.expression.terms.size())
    composer.add({.kind = TermKind::apply, .op = ValueOp::max, .args = {*last, *last, 0}});
  return fits_a_tree(composer.made.expression) ? std::optional(std::move(composer.made)) : std::nullopt;
}
}  // namespace warploom::kernels
