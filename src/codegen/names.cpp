#include "codegen/names.h"
#include "synth/sites.h"
#include "tile/syntax.h"
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
    const std::int64_t least = divides ? bounds.of(i.left()).low : 0;
    if (least >= 0 || least < -(1 << 24)) return Index::make(i.op(), left, right);
    const std::int64_t by = right.constant().value_or(1), times = (by - 1 - least) / by;
    const Index raised = Index::make(i.op(), left + right * times, right);
    return i.op() == IndexOp::div ? raised - times : raised;
  }
  // What a line of the text form holds (tile/syntax.h), of which the indices change.
  void item(Index& i) { i = index(i); }
  void item(std::optional<Index>& i) {
    if (i) item(*i);
  }
  void item(Tile& tile) {
    for (Index& at : tile.offset) item(at);
  }
  void item(Value& value) {
    item(value.shift);
    for (Value& operand : value.operands) item(operand);
  }
  template <class T>
  void item(Optional<T> optional) {
    item(optional.value);
  }
  void item(const auto&) {}

  template <class Node>
  void statement(Node& node) {
    line(*this, node);
    if constexpr (requires { node.variable; }) name(node.variable);
    if constexpr (requires { node.body; }) body(node.body);
    if constexpr (requires { node.roles; })
      for (Role& role : node.roles) body(role.body);
  }
  void body(Body& statements) {
    for (Statement& s : statements) std::visit([this](auto& node) { statement(node); }, s.node);
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
