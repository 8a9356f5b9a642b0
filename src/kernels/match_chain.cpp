#include "kernels/match_chain.h"
namespace warploom::kernels {
using graph::Node;
using graph::TensorId;
using graph::Term;

bool is_computed_float(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16; }

int Chain::add(Term term) {
  expression_.terms.push_back(term);
  return static_cast<int>(expression_.terms.size()) - 1;
}

int Chain::apply(ValueOp op, int a, int b) { return add({.kind = Term::Kind::apply, .op = op, .args = {a, b, 0}}); }

std::optional<int> Chain::leaf(TensorId id) {
  if (const auto scalar = constant_scalar(graph_, id)) return add({.kind = Term::Kind::constant, .value = *scalar});
  if (!is_computed_float(graph_.tensor(id).dtype)) return std::nullopt;
  operands_.push_back(id);
  const int base = core_ == graph::kAbsent ? 0 : 1;
  return add({.kind = Term::Kind::input, .input = base + static_cast<int>(operands_.size()) - 1});
}

std::optional<int> Chain::term_of(TensorId id, bool last) {
  if (const auto found = known_.find(id); found != known_.end()) return found->second;
  if (id == core_) return core();
  const int producer = graph_.producer(id);
  if (producer < 0) {
    const auto term = leaf(id);
    if (term) known_[id] = *term;
    return term;
  }
  const Node& node = graph_.nodes[static_cast<std::size_t>(producer)];
  if (class_of(node.op) != graph::OpClass::pointwise) return std::nullopt;
  const Dtype from = graph_.tensor(node.inputs[0]).dtype, to = graph_.tensor(id).dtype;
  if (node.op == graph::OpKind::Cast && bits_of(to) < bits_of(from) && !last) return std::nullopt;
  const auto own = expression_of(graph_, node);
  if (!own) return std::nullopt;

  std::vector<int> place(own->terms.size());  // where the node's terms went in ours
  for (std::size_t i = 0; i < own->terms.size(); ++i) {
    Term term = own->terms[i];
    if (term.kind == Term::Kind::input) {
      const auto value = term_of(node.inputs[static_cast<std::size_t>(term.input)], false);
      if (!value) return std::nullopt;
      place[i] = *value;
      continue;
    }
    if (term.kind == Term::Kind::apply)
      for (int& arg : term.args) arg = place[static_cast<std::size_t>(arg)];
    place[i] = add(term);
  }
  return known_[id] = place.back();
}

bool Chain::append(TensorId id, bool last) {
  const auto result = term_of(id, last);
  if (!result) return false;
  // The last term is the result; a chain that ends in something computed earlier repeats it.
  if (static_cast<std::size_t>(*result) + 1 != expression_.terms.size())
    add({.kind = Term::Kind::apply, .op = ValueOp::max, .args = {*result, *result, 0}});
  return true;
}

int Chain::core() {
  const auto found = known_.find(core_);
  return found != known_.end() ? found->second : known_[core_] = add({.kind = Term::Kind::input, .input = 0});
}

bool Chain::scale_core(TensorId scale) {
  const int value = core();
  const auto factor = leaf(scale);
  if (factor) known_[core_] = apply(ValueOp::mul, value, *factor);
  return factor.has_value();
}

bool Chain::scale_core(double alpha, double beta, TensorId c) {
  int value = core();
  if (alpha != 1) value = apply(ValueOp::mul, value, add({.kind = Term::Kind::constant, .value = alpha}));
  if (c != graph::kAbsent && beta != 0) {
    auto addend = leaf(c);
    if (!addend) return false;
    if (beta != 1) addend = apply(ValueOp::mul, *addend, add({.kind = Term::Kind::constant, .value = beta}));
    value = apply(ValueOp::add, value, *addend);
  }
  known_[core_] = value;
  return true;
}
}  // namespace warploom::kernels
