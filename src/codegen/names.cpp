#include "codegen/names.h"
#include "synth/sites.h"
namespace warploom::codegen {
using namespace tile;
namespace {
struct Renamer {
  const std::function<bool(const std::string&)>& taken;
  const synth::Bounds& bounds;
  std::set<std::string> used;                // names that stay
  std::map<std::string, std::string> fresh;  // of loop variables and others that change

  void name(std::string& name) {
    const auto [known, is_new] = fresh.try_emplace(name, name);
    while (is_new && (taken(known->second) || (known->second != name && used.contains(known->second)))) known->second += '_';
    used.insert(name = known->second);
  }
  Index index(const Index& i) const {
    if (i.op() == IndexOp::constant) return i;
    if (i.op() == IndexOp::variable) {
      const auto found = fresh.find(i.name());
      return found == fresh.end() ? i : Index::variable(found->second);
    }
    const Index left = index(i.left()), right = index(i.right());
    const bool divides = i.op() == IndexOp::div || i.op() == IndexOp::mod;
    const auto reach = divides ? bounds.range(i.left()) : std::nullopt;
    if (!reach || reach->first >= 0 || reach->first < -(1 << 24)) return Index::make(i.op(), left, right);
    const std::int64_t by = right.constant().value_or(1), times = (by - 1 - reach->first) / by;
    const Index raised = Index::make(i.op(), left + right * times, right);
    return i.op() == IndexOp::div ? raised - times : raised;
  }
  void tile(Tile& tile) const {
    for (Index& at : tile.offset) at = index(at);
  }
  void value(Value& value) const {
    value.shift = index(value.shift);
    for (Value& operand : value.operands) this->value(operand);
  }
  void body(Body& statements) {
    for (Statement& s : statements) std::visit([this](auto& node) { statement(node); }, s.node);
  }
  template <class Node>
  void statement(Node& s) {
    if constexpr (requires { s.src.offset; }) tile(s.src), tile(s.dst);
    if constexpr (requires { s.a.offset; }) tile(s.a), tile(s.b);
    if constexpr (requires { s.flag; }) tile(s.flag);
    if constexpr (requires { s.by; }) s.by = index(s.by);
    if constexpr (requires { s.least; }) s.least = index(s.least);
    if constexpr (requires { s.peer; })
      if (s.peer) s.peer = index(*s.peer);
    if constexpr (requires { s.value.shift; }) value(s.value);
    if constexpr (requires { s.left; }) s.left = index(s.left), s.right = index(s.right);
    if constexpr (requires { s.variable; }) {
      s.begin = index(s.begin), s.end = index(s.end), s.step = index(s.step);
      name(s.variable);
    }
    if constexpr (requires { s.body; }) body(s.body);
    if constexpr (requires { s.roles; })
      for (Role& role : s.roles) body(role.body);
  }
};
}  // namespace
Program in_source_terms(const Program& given, const std::function<bool(const std::string&)>& taken) {
  Program program = given;
  const synth::Bounds bounds(given);
  Renamer renamer{taken, bounds, {}, {}};
  for (const Tensor& t : program.tensors) renamer.used.insert(t.name);
  for (const Pipeline& p : program.pipelines) renamer.used.insert(p.name);
  for (const synth::Site& site : synth::sites_of(given))
    if (const auto* loop = std::get_if<For>(&site.statement->node)) renamer.used.insert(loop->variable);
  for (Tensor& t : program.tensors) renamer.name(t.name);
  for (Pipeline& p : program.pipelines) renamer.name(p.name);
  renamer.body(program.body);
  return program;
}

void restore_names(Kernel& kernel, const Program& renamed, const Program& program) {
  for (Argument& argument : kernel.args) {
    const auto found = std::ranges::find(renamed.tensors, argument.buffer, &Tensor::name);
    argument.buffer = program.tensor(static_cast<TensorId>(found - renamed.tensors.begin())).name;
  }
}
}  // namespace warploom::codegen
